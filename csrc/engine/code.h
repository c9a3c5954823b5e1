// Compiled code: flat instruction arrays with explicit jumps, and the state their handlers work on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine.h"
#include "global_memory.h"
#include "memory.h"
#include "monitor.h"
#include "pointer_views.h"

namespace pto::engine {

class Core;
struct Code;
struct Context;
struct Inst;

// Executes one instruction and returns the next one; null ends or parks the unit.
using Handler = const Inst* (*)(Context&, const Inst*);

// What an instruction counts as in the statistics.
enum Counter : uint8_t { kCountNothing = 0, kCountScalar = 1, kCountVector = 2, kCounters = 3 };

struct Inst {
  Handler fn = nullptr;
  uint32_t d = 0, a = 0, b = 0, c = 0;  // byte offsets of slots, or small numbers
  int64_t imm = 0;
  uint32_t e = 0;    // one more slot or number
  int32_t jump = 0;  // relative, in instructions
  uint8_t counter = kCountScalar;
  uint8_t flag = 0;
};

struct DebugInfo {
  const std::string* op = nullptr;
  int line = 0;
};

// Registers that an instruction of a vecscope writes and reads: a range of Code::registers, those written first. The
// types are those of its first result and of its first operand that is a vector.
struct Flow {
  uint32_t first = 0;
  uint8_t written = 0, read = 0;
  DType result = DType::kNone, operand = DType::kNone;
};

// A vector register (even) or predicate (odd) by its slot.
constexpr uint32_t VectorNumber(uint32_t slot) { return slot / 256 * 2; }
constexpr uint32_t MaskNumber(uint32_t slot) { return slot / 32 * 2 + 1; }

// The views that an instruction accesses: a range of Code::view_uses.
struct ViewRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

struct Capture {
  uint32_t from = 0;  // slot in the scalar unit's frame
  uint32_t to = 0;    // slot in the vector function's frame
};

// An alloc_buffer of a simt region: its number in the function and its place among the lane arrays.
struct LaneBuffer {
  uint32_t number = 0;
  uint32_t slot = 0;
};

// One compiled body: a kernel (scalar unit) or a vector function (vecscope, simt).
struct Code {
  std::vector<Inst> insts;
  std::vector<DebugInfo> debug;
  std::vector<Flow> flow;           // by instruction; of a vecscope
  std::vector<uint32_t> registers;  // what flow names
  std::vector<ViewRange> views;     // by instruction; empty when there are none
  std::vector<ViewUse> view_uses;   // what views names
  std::vector<uint64_t> image;      // initial scalar frame: constants in place, zeros elsewhere
  std::vector<Capture> captures;
  std::vector<uint32_t> extra;  // operand lists longer than an instruction holds
  size_t vector_bytes = 0;      // vector registers, or lane arrays of a simt region
  size_t mask_bytes = 0;
  std::vector<LaneBuffer> lane_buffers;  // alloc_buffers of a simt region
  bool simt = false;
  bool writes_gm = false;  // a simt region stores to GM, or has atomics there
  int dims[3] = {1, 1, 1};
  int threads = 1;
  int narrowest = 8;  // bytes of the narrowest element that a simt region accesses
  std::vector<std::unique_ptr<Code>> children;
  const Function* function = nullptr;
  const std::string* file = nullptr;
};

struct MaskState {
  const uint8_t* active = nullptr;  // one byte (0 or 1) per thread; meaningless when all
  int lo = 0, hi = 0;               // bounds of the active threads
  int count = 0;
  bool all = true;
};

// State of one executing unit: the scalar unit of a core, or the vector function its V pipe runs.
struct Context {
  uint8_t* s = nullptr;  // scalar frame
  uint8_t* v = nullptr;  // vector registers or lane arrays
  uint8_t* m = nullptr;  // mask registers
  uint8_t* ub = nullptr;
  int64_t ub_bytes = 0;
  const Tensor* tensors = nullptr;
  uint32_t n_tensors = 0;
  const GlobalMemory* global = nullptr;
  StackBuffer* buffers = nullptr;
  int64_t budget = 0;  // steps left
  int64_t counts[kCounters] = {};
  int64_t thread_instructions = 0;
  bool perturbed = false;  // approximate functions are off by up to their documented error
  uint64_t seed = 0;       // of the perturbation
  const Code* code = nullptr;
  Core* core = nullptr;
  const char* pipe = "S";
  Monitor* monitor = nullptr;  // null: nobody watches
  Memory ub_memory = Memory::kUb0;

  // SIMT only.
  MaskState mask;
  int threads = 1;
  int64_t* addresses = nullptr;  // one per thread, for the memory handlers

  template <class T>
  T& S(uint32_t slot) {
    return *reinterpret_cast<T*>(s + slot);
  }
  template <class T>
  T* V(uint32_t slot) {
    return reinterpret_cast<T*>(v + slot);
  }
  uint64_t* M(uint32_t slot) { return reinterpret_cast<uint64_t*>(m + slot); }

  // Stops the program at this instruction.
  [[noreturn]] void Fail(const Inst* in, const std::string& message) const;
  [[noreturn]] void FailSteps(const Inst* in) const;

  // Address of n bytes at pointer + delta, or Fail. `alignment` is that of host addresses; offsets in tensors are
  // for the caller to check.
  uint8_t* Gm(const Inst* in, uint64_t pointer, int64_t delta, int64_t n, Access access, int64_t alignment) const {
    uint8_t* const at = GmPlace(in, pointer, delta, n, access, alignment);
    if (__builtin_expect(monitor != nullptr, 0)) {
      const uint32_t t = ObjectOf(pointer);
      const bool known = t - 1 < n_tensors;
      monitor->TouchGm(*this, in, {known ? t : 0, at, known ? OffsetOf(pointer) + delta : 0, n}, access);
    }
    return at;
  }
  // Without telling the monitor.
  uint8_t* GmPlace(const Inst* in, uint64_t pointer, int64_t delta, int64_t n, Access access, int64_t alignment) const {
    const uint32_t t = ObjectOf(pointer);
    const int64_t offset = OffsetOf(pointer) + delta;
    if (__builtin_expect(t - 1 < n_tensors && offset >= 0, 1)) {
      const Tensor& tensor = tensors[t - 1];
      if (__builtin_expect(tensor.extent < 0 || offset + n <= tensor.extent, 1)) return tensor.data + offset;
    }
    return GmByAddress(in, pointer, delta, n, access, alignment);
  }
  // The same for a pointer that belongs to no tensor.
  uint8_t* GmByAddress(const Inst* in, uint64_t pointer, int64_t delta, int64_t n, Access access,
                       int64_t alignment) const;
  uint8_t* Ub(const Inst* in, uint64_t pointer, int64_t delta, int64_t n, int64_t alignment, Access access) const {
    uint8_t* const at = UbPlace(in, pointer, delta, n, alignment);
    if (__builtin_expect(monitor != nullptr, 0)) monitor->Touch(*this, in, ub_memory, at - ub, n, access);
    return at;
  }
  // Without telling the monitor.
  uint8_t* UbPlace(const Inst* in, uint64_t pointer, int64_t delta, int64_t n, int64_t alignment) const {
    const int64_t offset = OffsetOf(pointer) + delta;
    if (__builtin_expect(offset < 0 || offset > ub_bytes - n, 0)) FailUb(in, offset, n);
    if (__builtin_expect((offset & (alignment - 1)) != 0, 0)) FailAlignment(in, offset, alignment);
    return ub + offset;
  }
  [[noreturn]] void FailGm(const Inst* in, uint64_t pointer, int64_t offset, int64_t n) const;
  [[noreturn]] void FailUb(const Inst* in, int64_t offset, int64_t n) const;
  [[noreturn]] void FailAlignment(const Inst* in, int64_t offset, int64_t alignment) const;

  // The stack buffer of a pointer, for `wanted` threads and elements of `bytes`; bound at its first use.
  const StackBuffer& Stack(const Inst* in, uint64_t pointer, int wanted, int bytes) const {
    const StackBuffer& b = buffers[ObjectOf(pointer)];
    if (__builtin_expect(b.threads != wanted || b.element_bytes != bytes, 0)) BindStack(in, pointer, wanted, bytes);
    return b;
  }
  void BindStack(const Inst* in, uint64_t pointer, int wanted, int bytes) const;
  [[noreturn]] void FailStack(const Inst* in, int64_t element, int64_t count) const;
};

// Which core a body runs on.
enum class CoreKind : uint8_t { kVector, kCube };

class CompiledFunction : public Function {
 public:
  CoreKind core = CoreKind::kVector;
  bool mixed = false;                             // a block has a cube core and vector cores
  std::unique_ptr<CompiledFunction> vector_side;  // of a mixed kernel, whose cube side this is then
  Code code;
  std::vector<uint32_t> parameter_slots;
  std::vector<PointerView> views;
  std::vector<StackBuffer> buffers;            // without addresses; those of the scalar unit have threads 0
  std::vector<std::shared_ptr<void>> formats;  // of print (ops_debug.cc)
  std::vector<std::shared_ptr<void>> details;  // of commands: what is known at compile time (commands.h)
  bool ordered = false;                        // something in it shows the order of the cores, or prints
  DebugInfo cross;                             // a wait for other cores: all of them have to be there at once
};

}  // namespace pto::engine
