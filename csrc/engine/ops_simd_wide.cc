// 32-bit integers beyond 32 bits: addition and subtraction with carry predicates, products of 64 bits.
#include "clones.h"
#include "simd.h"

namespace pto::engine {
namespace {

// d: register, e: carry out, a, b: registers, c: mask, imm: slot of the carry in. A carry is the lowest bit of a lane's
// group; that of a subtraction is 1 when nothing was borrowed, so a - b is a + ~b + carry.
template <bool kSubtract, bool kCarryIn>
PTO_CLONES const Inst* AddCarry(Context& c, const Inst* in) {
  const uint32_t *a = c.V<uint32_t>(in->a), *b = c.V<uint32_t>(in->b);
  const uint64_t* m = c.M(in->c);
  uint32_t out[64];
  uint64_t carry[4] = {};
  for (int i = 0; i < 64; ++i) {
    const uint64_t first = kCarryIn ? LaneActive<4>(c.M(static_cast<uint32_t>(in->imm)), i) : kSubtract;
    const uint64_t sum = static_cast<uint64_t>(a[i]) + (kSubtract ? ~b[i] : b[i]) + first;
    out[i] = static_cast<uint32_t>(sum);
    carry[i / 16] |= (sum >> 32) << (4 * (i % 16));
  }
  std::memcpy(c.v + in->d, out, sizeof(out));
  ZeroInactive<4>(c.v + in->d, m);
  uint64_t* e = c.M(in->e);
  for (int i = 0; i < 4; ++i) e[i] = carry[i] & m[i];
  return in + 1;
}

// d: low half, e: high half
template <class T, class Wide>
PTO_CLONES const Inst* MultiplyWide(Context& c, const Inst* in) {
  const T *a = c.V<T>(in->a), *b = c.V<T>(in->b);
  uint32_t low[64], high[64];
  for (int i = 0; i < 64; ++i) {
    const uint64_t product = static_cast<uint64_t>(static_cast<Wide>(a[i]) * static_cast<Wide>(b[i]));
    low[i] = static_cast<uint32_t>(product), high[i] = static_cast<uint32_t>(product >> 32);
  }
  std::memcpy(c.v + in->d, low, sizeof(low));
  std::memcpy(c.v + in->e, high, sizeof(high));
  ZeroInactive<4>(c.v + in->d, c.M(in->c));
  ZeroInactive<4>(c.v + in->e, c.M(in->c));
  return in + 1;
}

DType Expect32(Builder& b, const Op& op) {
  b.ExpectVector(op.operands[0]);
  b.ExpectSame(op.operands[0], op.operands[1]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const DType t = b.Type(op.operands[0]).dtype;
  b.Expect(IsInteger(t) && ByteSize(t) == 4, std::string("32-bit integers are needed, found ") + Name(t));
  b.ExpectMask(op.operands.back(), 4);
  return t;
}

template <bool kSubtract, bool kCarryIn>
void CompileCarry(Builder& b, const Op& op) {
  b.ExpectCounts(op, kCarryIn ? 4 : 3, 2);
  Expect32(b, op);
  b.ExpectMask(op.results[1], 4);
  if (kCarryIn) b.ExpectMask(op.operands[2], 4);
  const uint32_t x = b.Vector(op.operands[0]), y = b.Vector(op.operands[1]), m = b.Mask(op.operands.back());
  const uint32_t carry = kCarryIn ? b.Mask(op.operands[2]) : 0;
  const Place d = b.Define(op.results[0]), out = b.Define(op.results[1]);
  Inst& in = b.Emit(&AddCarry<kSubtract, kCarryIn>, kCountVector);
  in.d = d.slot, in.e = out.slot, in.a = x, in.b = y, in.c = m, in.imm = carry;
}

void CompileMultiplyWide(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 2);
  const DType t = Expect32(b, op);
  b.ExpectSame(op.operands[0], op.results[1]);
  const uint32_t x = b.Vector(op.operands[0]), y = b.Vector(op.operands[1]), m = b.Mask(op.operands[2]);
  const Place low = b.Define(op.results[0]), high = b.Define(op.results[1]);
  Inst& in = b.Emit(IsUnsigned(t) ? &MultiplyWide<uint32_t, uint64_t> : &MultiplyWide<int32_t, int64_t>, kCountVector);
  in.d = low.slot, in.e = high.slot, in.a = x, in.b = y, in.c = m;
}

}  // namespace

const OpTable& SimdWideOps() {
  static const OpTable table = {
      {"vaddc", kOnVector, &CompileCarry<false, false>}, {"vaddcs", kOnVector, &CompileCarry<false, true>},
      {"vsubc", kOnVector, &CompileCarry<true, false>},  {"vsubcs", kOnVector, &CompileCarry<true, true>},
      {"vmull", kOnVector, &CompileMultiplyWide},
  };
  return table;
}

}  // namespace pto::engine
