// Commands of a pipe whose operands are slots in a list and whose other parameters are known at compile time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "builder.h"
#include "core.h"
#include "cube_memory.h"

namespace pto::engine {

// A command inside a core, with its failures attributed to the pipe.
struct CommandUnit {
  Context context;
  const Inst* in;
  CommandUnit(Core& core, const Command& c, const char* pipe) : context(core.scalar()), in(c.inst) {
    context.pipe = pipe;
  }
  [[noreturn]] void Fail(const std::string& s) const { context.Fail(in, s); }

  // Address of n bytes of a memory of the cube core.
  uint8_t* In(const MemoryView& m, uint64_t pointer, int64_t delta, int64_t n, int64_t alignment, Access access) const {
    uint8_t* const at = Place(m, pointer, delta, n, alignment);
    if (__builtin_expect(context.monitor != nullptr, 0))
      context.monitor->Touch(context, in, m.id, at - m.base, n, access);
    return at;
  }
  // Without telling the monitor.
  uint8_t* Place(const MemoryView& m, uint64_t pointer, int64_t delta, int64_t n, int64_t alignment) const {
    const int64_t at = OffsetOf(pointer) + delta;
    if (__builtin_expect(at < 0 || n < 0 || at > m.bytes - n, 0)) {
      Fail(std::string(m.name) + " access out of bounds: " + std::to_string(n) + " bytes at address " +
           std::to_string(at) + ", it has " + std::to_string(m.bytes) + " bytes");
    }
    if (__builtin_expect((at & (alignment - 1)) != 0, 0)) {
      Fail(std::string("misaligned access: ") + m.name + " address " + std::to_string(at) + " is not a multiple of " +
           std::to_string(alignment) + " bytes");
    }
    return m.base + at;
  }

  // A value that has to fit a field of the instruction.
  int64_t Field(const char* name, uint64_t value, int64_t low, int64_t high) const {
    const int64_t v = static_cast<int64_t>(value);
    if (v < low || v > high) {
      Fail(std::string(name) + " is " + std::to_string(v) + ", not " + std::to_string(low) + " to " +
           std::to_string(high));
    }
    return v;
  }
};

// imm: first slot in the extra list, d: number of operands, a: number of the details
template <CommandFn kRun, Pipe kPipe>
const Inst* IssueCommand(Context& c, const Inst* in) {
  const uint32_t* slots = c.code->extra.data() + in->imm;
  uint64_t* values = c.core->queue(kPipe).Push(kRun, in, in->d);
  for (uint32_t i = 0; i < in->d; ++i) values[i] = c.S<uint64_t>(slots[i]);
  c.core->Issued(kPipe);
  return in + 1;
}

// Slots of the operands of an operation: pointers and values of any type as they are, integers widened to 64 bits.
inline std::vector<uint32_t> OperandSlots(Builder& b, const std::vector<uint32_t>& operands) {
  std::vector<uint32_t> slots;
  for (uint32_t v : operands) {
    const ValueType& t = b.Type(v);
    slots.push_back(t.kind == Kind::kScalar && IsInteger(t.dtype) ? b.Int64(v) : b.Scalar(v));
  }
  return slots;
}

template <class Details>
Inst& EmitCommand(Builder& b, Handler issue, const std::vector<uint32_t>& slots, Details details) {
  const int64_t first = static_cast<int64_t>(b.code().extra.size());
  b.code().extra.insert(b.code().extra.end(), slots.begin(), slots.end());
  auto& all = b.scope().function->details;
  all.push_back(std::make_shared<Details>(std::move(details)));
  Inst& in = b.Emit(issue);
  in.imm = first, in.d = static_cast<uint32_t>(slots.size()), in.a = static_cast<uint32_t>(all.size() - 1);
  return in;
}

template <class Details>
const Details& DetailsOf(const Core& core, const Command& c) {
  return *static_cast<const Details*>(core.function().details[c.inst->a].get());
}

inline void ExpectSpace(const Builder& b, uint32_t value, Space space) {
  b.ExpectPointer(value);
  b.Expect(b.Type(value).space == space,
           std::string("expected a pointer into ") + Name(space) + ", found one into " + Name(b.Type(value).space));
}

}  // namespace pto::engine
