// DMA commands between GM and UB. Operand values are captured at issue; the command runs on its pipe.
#include <cstring>

#include "store_atomic.h"
#include "transfer.h"

namespace pto::engine {
namespace {

void Fill(uint8_t* p, int64_t bytes, uint64_t value, int element) {
  for (int64_t i = 0; i < bytes; ++i) p[i] = static_cast<uint8_t>(value >> (8 * (i % element)));
}

bool RunGmUb(Core& core, const Command& c) {
  const CommandUnit u(core, c, "MTE2");
  const Context& m = u.context;
  const Transfer t = UnpackTransfer(c);
  if (!Begin(core, u, t)) return true;
  const int pads = static_cast<int>(c.inst->c);
  const int element = static_cast<int>(c.inst->e), value_bytes = static_cast<int>(c.inst->flag);
  const int64_t left = pads == 3 ? static_cast<int64_t>(t.rest[1]) * element : 0;
  const int64_t right = pads == 3 ? static_cast<int64_t>(t.rest[2]) * element : 0;
  if (left < 0 || left > kBlock || right < 0 || right > kBlock) u.Fail("a padding is not between 0 and 32 bytes");
  const int64_t written = left + t.len + right;
  // Without pad operands the rest of the last block of a row is unspecified.
  const uint8_t poison = 0xFF;
  const bool compact = Compact(t, t.rows.dst) && left == 0 && right == 0;
  ForRows(t, [&](int64_t src, int64_t dst, int64_t row) {
    const int64_t begin = compact ? dst % kBlock : 0;
    const int64_t total =
        compact && row + 1 < t.rows.count ? t.len : (begin + written + kBlock - 1) / kBlock * kBlock - begin;
    uint8_t* to = m.Ub(u.in, t.dst, dst, total, compact && row > 0 ? 1 : kBlock, Access::kWrite);
    const uint8_t* from = m.Gm(u.in, t.src, src, t.len, Access::kRead, element);
    std::memcpy(to + left, from, static_cast<size_t>(t.len));
    core.dma_bytes += t.len;
    if (total == t.len) return;
    if (pads) {
      Fill(to, left, t.rest[0], value_bytes);
      Fill(to + left + t.len, total - left - t.len, t.rest[0], value_bytes);
    } else {
      std::memset(to + t.len, poison, static_cast<size_t>(total - t.len));
      if (m.monitor) m.monitor->Touch(m, u.in, m.ub_memory, to + t.len - m.ub, total - t.len, Access::kSpoil);
    }
  });
  return true;
}

// The last value is the atomic mode at issue.
bool RunUbGm(Core& core, const Command& c) {
  const CommandUnit u(core, c, "MTE3");
  const Context& m = u.context;
  const Transfer t = UnpackTransfer(c);
  if (!Begin(core, u, t)) return true;
  const StoreAtomic mode = StoreAtomic::Unpack(t.rest[0]);
  const int element = static_cast<int>(c.inst->e);
  // Sums of floats depend on the order of the cores, everything else does not.
  if (IsFloat(mode.type) && mode.operation == StoreAtomic::kAdd) core.AwaitTurn();
  const bool compact = Compact(t, t.rows.src);
  ForRows(t, [&](int64_t src, int64_t dst, int64_t row) {
    const uint8_t* from = m.Ub(u.in, t.src, src, t.len, compact && row > 0 ? 1 : kBlock, Access::kRead);
    uint8_t* to = m.Gm(u.in, t.dst, dst, t.len, mode.GmAccess(), element);
    if (__builtin_expect(mode.type == DType::kNone, 1)) {
      std::memcpy(to, from, static_cast<size_t>(t.len));
    } else {
      CombineRow(u, mode, to, from, t.len);
    }
    core.dma_bytes += t.len;
  });
  return true;
}

// Lengths and gaps in blocks of 32 bytes; a gap runs from the end of a burst to the start of the next one.
bool RunUbUb(Core& core, const Command& c) {
  const CommandUnit u(core, c, "V");
  const Context& m = u.context;
  const Transfer t = UnpackTransfer(c);
  if (!Begin(core, u, t)) return true;
  const int64_t len = t.len * kBlock;
  for (int64_t r = 0; r < t.rows.count; ++r) {
    const uint8_t* from = m.Ub(u.in, t.src, r * (len + t.rows.src * kBlock), len, kBlock, Access::kRead);
    uint8_t* to = m.Ub(u.in, t.dst, r * (len + t.rows.dst * kBlock), len, kBlock, Access::kWrite);
    std::memmove(to, from, static_cast<size_t>(len));
    core.dma_bytes += len;
  }
  return true;
}

// imm: first slot in the extra list, d: number of values
template <CommandFn kRun, Pipe kPipe>
const Inst* Issue(Context& c, const Inst* in) {
  const uint32_t* slots = c.code->extra.data() + in->imm;
  constexpr uint32_t kMode = kPipe == kPipeMte3 ? 1 : 0;
  uint64_t* values = c.core->queue(kPipe).Push(kRun, in, in->d + kMode);
  for (uint32_t i = 0; i < in->d; ++i) values[i] = c.S<uint64_t>(slots[i]);
  if (kMode) values[in->d] = c.core->store_atomic.Pack();
  c.core->Issued(kPipe);
  return in + 1;
}

void Compile(Builder& b, const Op& op, Handler issue, Space from, Space to, bool with_loops, bool with_pad) {
  const int64_t loops = with_loops ? b.IntegerAttribute(op, "loops", 0) : 0;
  const int64_t pad = with_pad ? b.IntegerAttribute(op, "pad", 0) : 0;
  b.Expect(loops >= 0 && loops <= kMaxLoops, std::to_string(loops) + " outer loops");
  b.Expect(pad == 0 || pad == 1 || pad == 3, "pad has " + std::to_string(pad) + " operands");
  b.ExpectCounts(op, static_cast<size_t>(6 + 3 * loops + pad), 0);
  b.ExpectPointer(op.operands[0]);
  b.ExpectPointer(op.operands[1]);
  const ValueType &src = b.Type(op.operands[0]), &dst = b.Type(op.operands[1]);
  b.Expect(src.space == from && dst.space == to, std::string("copies from ") + Name(from) + " to " + Name(to) +
                                                     ", found " + Name(src.space) + " and " + Name(dst.space));
  b.Expect(ByteSize(src.dtype) == ByteSize(dst.dtype), "source and destination elements differ in width");
  std::vector<uint32_t> slots = {b.Scalar(op.operands[0]), b.Scalar(op.operands[1])};
  int value_bytes = 1;
  for (size_t i = 2; i < op.operands.size(); ++i) {
    const bool value = pad && i == static_cast<size_t>(6 + 3 * loops);
    if (value) {
      b.ExpectScalar(op.operands[i]);
      value_bytes = ByteSize(b.Type(op.operands[i]).dtype);
      b.Expect(value_bytes <= 4, "a pad value has 8, 16 or 32 bits");
      b.Expect(value_bytes == ByteSize(dst.dtype) || ByteSize(dst.dtype) == 1,
               "the pad value is as wide as an element of the destination");
    }
    slots.push_back(value ? b.Scalar(op.operands[i]) : b.Int64(op.operands[i]));
  }
  const int64_t first = static_cast<int64_t>(b.code().extra.size());
  b.code().extra.insert(b.code().extra.end(), slots.begin(), slots.end());
  Inst& in = b.Emit(issue);
  in.imm = first, in.d = static_cast<uint32_t>(slots.size()), in.b = static_cast<uint32_t>(loops);
  in.c = static_cast<uint32_t>(pad), in.e = static_cast<uint32_t>(ByteSize(dst.dtype)),
  in.flag = static_cast<uint8_t>(value_bytes);
}

void CompileGmUb(Builder& b, const Op& op) {
  Compile(b, op, &Issue<&RunGmUb, kPipeMte2>, Space::kGm, Space::kUb, true, true);
}
void CompileUbGm(Builder& b, const Op& op) {
  Compile(b, op, &Issue<&RunUbGm, kPipeMte3>, Space::kUb, Space::kGm, true, false);
}
void CompileUbUb(Builder& b, const Op& op) {
  Compile(b, op, &Issue<&RunUbUb, kPipeV>, Space::kUb, Space::kUb, false, false);
}

// --- set_atomic_*: the scalar unit sets the mode, later commands take it along ---

template <DType kType>
const Inst* SetType(Context& c, const Inst* in) {
  c.core->store_atomic.type = kType;
  return in + 1;
}
template <StoreAtomic::Operation kOperation>
const Inst* SetOperation(Context& c, const Inst* in) {
  c.core->store_atomic.operation = kOperation;
  return in + 1;
}
const Inst* SetNone(Context& c, const Inst* in) {
  c.core->store_atomic = StoreAtomic();
  return in + 1;
}

template <Handler kHandler>
void CompileMode(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 0);
  b.scope().function->ordered = true;
  b.Emit(kHandler);
}

}  // namespace

const OpTable& MteOps() {
  static const OpTable table = {
      {"mte_gm_ub", kOnScalar | kVectorCore, &CompileGmUb},
      {"mte_ub_gm", kOnScalar | kVectorCore, &CompileUbGm},
      {"mte_ub_ub", kOnScalar | kVectorCore, &CompileUbUb},
      {"set_atomic_none", kOnScalar, &CompileMode<&SetNone>},
      {"set_atomic_f32", kOnScalar, &CompileMode<&SetType<DType::kF32>>},
      {"set_atomic_f16", kOnScalar, &CompileMode<&SetType<DType::kF16>>},
      {"set_atomic_bf16", kOnScalar, &CompileMode<&SetType<DType::kBF16>>},
      {"set_atomic_s32", kOnScalar, &CompileMode<&SetType<DType::kI32>>},
      {"set_atomic_s16", kOnScalar, &CompileMode<&SetType<DType::kI16>>},
      {"set_atomic_s8", kOnScalar, &CompileMode<&SetType<DType::kI8>>},
      {"set_atomic_add", kOnScalar, &CompileMode<&SetOperation<StoreAtomic::kAdd>>},
      {"set_atomic_max", kOnScalar, &CompileMode<&SetOperation<StoreAtomic::kMax>>},
      {"set_atomic_min", kOnScalar, &CompileMode<&SetOperation<StoreAtomic::kMin>>},
  };
  return table;
}

}  // namespace pto::engine
