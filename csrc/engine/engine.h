// The interface of the execution engine: everything callers outside csrc/engine need.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "dtypes.h"

namespace pto::engine {

// Where something went wrong. Unknown parts are empty or negative.
struct ErrorPlace {
  std::string function;
  std::string op;
  std::string file;
  int line = -1;
  int64_t core = -1;      // block index
  std::string core_name;  // which core of a block with several: AIC, AIV0, AIV1
  std::string pipe;
};

// Every refusal or stop of the engine. what() is the whole readable text; message is the bare sentence.
class Error : public std::runtime_error {
 public:
  Error(const std::string& message, ErrorPlace place = {});

  std::string message;
  ErrorPlace place;
  // The same as in `place`, for short access.
  int line;
  std::string file, function, op;
};

// A kernel parameter as the host sees it.
struct Parameter {
  std::string name;
  ValueType type;
};

// A kernel of a program. Opaque: the compiled form lives behind it.
class Function {
 public:
  virtual ~Function() = default;
  std::string name;
  std::string kernel_kind;
  int line = 0;
  std::vector<Parameter> parameters;
};

// A parsed, validated and compiled program. Immutable, may be shared by threads.
class Program {
 public:
  // Throws Error when the bytes are not a valid program.
  static std::shared_ptr<const Program> Parse(const void* data, size_t size);

  // Null when there is no such function.
  const Function* Find(const std::string& name) const;

  const std::vector<std::unique_ptr<Function>>& functions() const { return functions_; }
  const std::string& source_file() const { return source_file_; }

 private:
  Program() = default;
  std::string source_file_;
  std::vector<std::unique_ptr<Function>> functions_;
  std::unordered_set<std::string> op_names_;  // what the functions' debug information points at
};

// One launch argument, in the order of the function's parameters.
struct Arg {
  enum Kind { kPointer, kScalar };
  Kind kind = kScalar;
  void* data = nullptr;       // kPointer: first byte of the tensor
  int64_t extent_bytes = -1;  // kPointer: its size; -1 when not known (no upper bound is checked then)
  uint64_t bits = 0;          // kScalar: raw bits, as wide as the parameter's type

  static Arg Pointer(void* data, int64_t extent_bytes) { return {kPointer, data, extent_bytes, 0}; }
  static Arg Scalar(uint64_t bits) { return {kScalar, nullptr, -1, bits}; }
};

// The order in which a mad adds the products of one element of the result.
struct MadOrder {
  enum Kind : uint8_t { kAscending, kBlocked, kReverse, kRandom };
  Kind kind = kAscending;
  uint64_t seed = 0;  // kRandom: of the permutation of k

  // "ascending", "blocked" (a sum of its own for every C0 block of k), "reverse" or "random:SEED". False: none of them.
  static bool Parse(const std::string& text, MadOrder* order);
};

// In which order the pipes of a core do what nothing orders (policies.h).
enum class Policy : uint8_t { kLate, kEager, kRandom };

// How much is checked. Bounds of memories and tensors, alignment, flags and deadlocks always are. kBounds: also reads
// of what was never written. kFull: also that accesses to the same bytes are ordered.
enum class Check : uint8_t { kOff, kBounds, kFull };

struct LaunchReport;  // report.h

struct LaunchOptions {
  int host_threads = 0;                           // 0: hardware concurrency
  int64_t ub_bytes = 256 * 1024;                  // unified buffer of one vector core
  int poison_byte = 0xFF;                         // what fresh UB holds; 0xFF reads as NaN in every float type
  int64_t max_steps_per_core = INT64_C(1) << 40;  // instructions before a core counts as endless
  bool collect_stats = true;
  // Seed: approximate functions give any of the results their documented error allows. None: the host's results.
  std::optional<uint64_t> perturbation;
  Policy policy = Policy::kLate;
  uint64_t policy_seed = 0;  // kRandom
  Check check = Check::kOff;
  bool timing = false;                          // run the timing model
  bool timeline = false;                        // and keep what happened when
  int64_t max_events = 1000000;                 // of the timeline
  std::atomic<int64_t>* blocks_done = nullptr;  // counts the blocks that have ended
  LaunchReport* report = nullptr;               // takes findings, times and notes; without it a finding is an error
  // Cores of one block take turns. 0: round robin in equal turns; any other number: turns of random length and order.
  uint64_t interleaving_seed = 0;
  MadOrder mad_order;
  // Takes what the blocks print, in their order; standard output when empty.
  std::function<void(const std::string&)> print;
};

struct LaunchStats {
  int64_t cores = 0;
  int64_t scalar_instructions = 0;
  int64_t vector_instructions = 0;
  int64_t vf_scalar_instructions = 0;  // scalar work inside vector functions
  int64_t simt_thread_instructions = 0;
  int64_t vector_functions = 0;  // vecscope and simt commands
  int64_t dma_commands = 0;
  int64_t dma_bytes = 0;
  int64_t mad_commands = 0;
  int64_t mad_operations = 0;  // 2 * m * n * k
};

// Runs block indices 0..grid-1 and returns when all have finished. Throws Error for the first failing block (the
// lowest block index, independent of the number of host threads). `stats` may be null.
void Launch(const Program& program, const std::string& function, const std::vector<Arg>& args, int64_t grid,
            const LaunchOptions& options, LaunchStats* stats);

// The opcodes the engine knows, sorted.
std::vector<std::string> SupportedOps();

// What is documented about an approximate function (accuracy_table.h). ulp 0: there is no figure.
struct AccuracyFigure {
  std::string op, region;
  std::vector<DType> types;
  int ulp;
  std::string source, certainty;
};
std::vector<AccuracyFigure> AccuracyFigures();

}  // namespace pto::engine
