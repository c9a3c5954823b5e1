// Turns a tree of operations into Code. Each op family has a file with a table: name -> compile function.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "code.h"
#include "program.h"

namespace pto::engine {

// Where an operation may stand. kUniform: a scalar operation that a simt region may run once for all its threads
// when all operands are the same for every thread.
enum Unit : uint8_t { kOnScalar = 1, kOnVector = 2, kOnSimt = 4, kUniform = 8 };

// Operations that only one kind of core has say so in the same byte.
enum OnlyOn : uint8_t { kCubeCore = 16, kVectorCore = 32 };
constexpr uint8_t kScalarAnywhere = kOnScalar | kOnVector | kUniform;

class Builder;
using CompileFn = void (*)(Builder&, const Op&);

struct OpEntry {
  const char* name;
  uint8_t units;
  CompileFn compile;
};
using OpTable = std::vector<OpEntry>;

// The family tables (one per ops_*.cc).
const OpTable& ScalarOps();
const OpTable& ScalarMemoryOps();
const OpTable& ControlOps();
const OpTable& MteOps();
const OpTable& SyncOps();
const OpTable& SimdArithmeticOps();
const OpTable& SimdReduceOps();
const OpTable& SimdMemoryOps();
const OpTable& SimdGatherOps();
const OpTable& SimdStreamOps();
const OpTable& SimdWideOps();
const OpTable& SimdCountOps();
const OpTable& SortOps();
const OpTable& SimdConvertOps();
const OpTable& SimdMaskOps();
const OpTable& SimdMoveOps();
const OpTable& SimtOps();
const OpTable& SimtMemoryOps();
const OpTable& SimtWarpOps();
const OpTable& SimtAtomicOps();
const OpTable& WideIntegerOps();
const OpTable& BufferTokenOps();
const OpTable& CrossCoreOps();
const OpTable& IntraBlockOps();
const OpTable& CubeCopyOps();
const OpTable& CubeLoadOps();
const OpTable& MadOps();
const OpTable& FixpipeOps();
const OpTable& DebugOps();

// Null when no table has the operation for one of `units`.
const OpEntry* FindOp(const std::string& name, uint8_t units);
bool IsKnownOp(const std::string& name);

enum class Bank : uint8_t { kScalar, kVector, kMask, kLane };

// Where a value lives.
struct Place {
  Bank bank = Bank::kScalar;
  uint32_t slot = 0;
  uint32_t bytes = 8;     // kScalar: 8, or more for a short vector; kLane: of one thread
  uint32_t element = 8;   // kLane: bytes of one element (a short vector has several, element-major)
  bool constant = false;  // bits is known
  uint64_t bits = 0;
};

// What all bodies of one function share.
struct FunctionScope {
  const FunctionTree* tree = nullptr;
  CompiledFunction* function = nullptr;
  CoreKind core = CoreKind::kVector;
  bool mixed = false;  // the kernel has another side for the other kind of core
  const std::string* file = nullptr;
  std::vector<bool> defined;
  std::vector<bool> used;                            // as an operand somewhere
  std::vector<uint16_t> views;                       // of pointers (FindPointerViews)
  std::unordered_set<std::string>* names = nullptr;  // opcode names that outlive the tree
};

class Builder {
 public:
  Builder(FunctionScope& scope, Builder* parent, uint8_t unit, Code& code);

  // Body of the function; `terminated` by the end of the list.
  void CompileBody(const Region& region);
  void Finish();

  uint8_t unit() const { return unit_; }
  Code& code() { return code_; }
  FunctionScope& scope() { return scope_; }
  const Op& current() const { return *op_; }

  [[noreturn]] void Fail(const std::string& message) const;

  // Checks on the current operation.
  const ValueType& Type(uint32_t value) const { return scope_.tree->types[value]; }
  void Expect(bool condition, const std::string& message) const {
    if (!condition) Fail(message);
  }
  void ExpectCounts(const Op& op, size_t operands, size_t results) const;
  void ExpectScalar(uint32_t value) const;
  void ExpectInteger(uint32_t value) const;
  void ExpectPointer(uint32_t value) const;
  void ExpectVector(uint32_t value) const;
  void ExpectMask(uint32_t value, int element_bytes) const;  // granularity must fit the element width
  void ExpectSame(uint32_t a, uint32_t b) const;
  int64_t IntegerAttribute(const Op& op, const char* key, int64_t fallback) const;
  std::string TextAttribute(const Op& op, const char* key, const std::string& fallback) const;

  // Operands and results.
  Place Find(uint32_t value);       // captures from the parent when needed
  uint32_t Scalar(uint32_t value);  // slot of a scalar or pointer
  uint32_t Int64(uint32_t value);   // slot of the integer widened to 64 bits
  uint32_t Vector(uint32_t value);
  uint32_t Mask(uint32_t value);
  bool IsVarying(uint32_t value) const;  // simt only
  bool IsUsed(uint32_t value) const { return scope_.used[value]; }
  uint32_t Lanes(uint32_t value);    // slot of lane arrays; a uniform value is spread
  uint32_t Lanes64(uint32_t value);  // the same, widened to 64 bits
  Place Define(uint32_t value);
  void DefineConstant(uint32_t value, uint64_t bits);
  void DefineAs(uint32_t value, const Place& place);  // a result that is stored elsewhere already

  uint32_t ScalarTemp(uint32_t bytes = 8);
  uint32_t ScalarConstant(uint64_t bits);
  uint32_t LaneTemp(uint32_t bytes_per_thread);
  uint32_t MaskTemp();

  Inst& Emit(Handler fn, uint8_t counter = kCountScalar);
  uint32_t Here() const { return static_cast<uint32_t>(code_.insts.size()); }
  // Jump of the instruction at `from` to the one emitted next.
  void LandHere(uint32_t from) { code_.insts[from].jump = static_cast<int32_t>(Here() - from); }

  // Parallel moves: all sources are read before any target is written. `merge`: only active threads (simt).
  void Move(const std::vector<Place>& to, const std::vector<Place>& from, bool merge);

  // Compiles the operations of a nested region without its final yield; returns the yield's operands.
  const std::vector<uint32_t>& CompileRegion(const Region& region);
  void BeginScope() { scopes_.emplace_back(); }
  void EndScope();

  // Number of a new stack buffer.
  uint32_t AddBuffer(int64_t count, int element_bytes);

  // SIMT state.
  int divergence_depth = 0;

 private:
  void CompileOp(const Op& op);
  void NoteFlow(uint32_t first, const std::vector<Place>& written, const std::vector<Place>& read,
                DType result = DType::kNone, DType operand = DType::kNone);
  void NoteViews(uint32_t first, const Op& op);
  DType VectorType(const std::vector<uint32_t>& values) const;  // of the first vector, kNone: there is none
  std::vector<Place> Registers(const std::vector<uint32_t>& values) const;
  Place Allocate(const ValueType& type, bool varying);
  Place Spread(uint32_t value, const Place& place);
  void AnalyseUniformity(const Region& region);
  bool Analyse(const Region& region);
  bool MarkVarying(uint32_t value);

  FunctionScope& scope_;
  Builder* parent_;
  uint8_t unit_;
  Code& code_;
  const Op* op_ = nullptr;
  std::unordered_map<uint32_t, Place> places_;
  std::unordered_map<uint32_t, Place> spread_;  // uniform value -> lane copy, for constants and captures
  std::unordered_map<uint64_t, uint32_t> constants_;
  std::vector<std::vector<uint32_t>> scopes_;
  std::vector<Inst> prologue_;
  std::vector<DebugInfo> prologue_debug_;
  std::vector<bool> varying_;
};

}  // namespace pto::engine
