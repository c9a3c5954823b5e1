// vcvt: conversions between element types, with their lane placement.
//
// Same width: lane i to lane i. Narrowing by k: source lane i to lane k*i + part, the other lanes are 0. Widening by k:
// source lane k*i + part to lane i. The mask always belongs to the source lanes.
#include "clones.h"
#include "convert.h"
#include "dispatch.h"
#include "simd.h"

namespace pto::engine {
namespace {

// The mask bits of source lanes k*i + part, moved to where lane i of the wide result is looked up.
template <int kNarrowBytes>
inline void SourceMask(const uint64_t* m, int part, uint64_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = m[i] >> (part * kNarrowBytes);
}

// Any pair. e: rounding, flag: saturate, imm: part
template <class S, class D>
PTO_CLONES const Inst* Convert(Context& c, const Inst* in) {
  const S* s = c.V<S>(in->a);
  const uint64_t* m = c.M(in->c);
  const Rounding r = static_cast<Rounding>(in->e);
  const bool saturate = in->flag != 0;
  D out[kLanes<D>] = {};
  constexpr int kNarrow = sizeof(S) > sizeof(D) ? static_cast<int>(sizeof(S) / sizeof(D)) : 1;
  constexpr int kWiden = sizeof(D) > sizeof(S) ? static_cast<int>(sizeof(D) / sizeof(S)) : 1;
  constexpr int kCount = sizeof(S) > sizeof(D) ? kLanes<S> : kLanes<D>;
  const int part = static_cast<int>(in->imm);
  for (int i = 0; i < kCount; ++i) {
    const int from = kWiden > 1 ? kWiden * i + part : i;
    const int to = kNarrow > 1 ? kNarrow * i + part : i;
    if (LaneActive<sizeof(S)>(m, from)) out[to] = ConvertNumber<D>(s[from], r, saturate);
  }
  std::memcpy(c.v + in->d, out, 256);
  return in + 1;
}

// f32 to f16 or bf16, nearest even.
template <class D>
PTO_CLONES const Inst* NarrowNearest(Context& c, const Inst* in) {
  const float* __restrict s = c.V<float>(in->a);
  uint32_t* __restrict d = c.V<uint32_t>(in->d);
  const int shift = 16 * static_cast<int>(in->imm);
  if (in->flag) {
    constexpr uint32_t kInf = std::is_same_v<D, F16> ? 0x7C00 : 0x7F80;
    for (int i = 0; i < 64; ++i) {
      const uint32_t bits = FromFloat<D>(s[i]).bits, magnitude = bits & 0x7FFF;
      const uint32_t clamped = magnitude == kInf ? bits - 1 : bits;
      d[i] = (magnitude > kInf ? 0 : clamped) << shift;
    }
  } else {
    for (int i = 0; i < 64; ++i) d[i] = static_cast<uint32_t>(FromFloat<D>(s[i]).bits) << shift;
  }
  ZeroInactive<4>(d, c.M(in->c));
  return in + 1;
}

template <class S>
PTO_CLONES const Inst* WidenHalf(Context& c, const Inst* in) {
  const uint32_t* __restrict s = c.V<uint32_t>(in->a);
  float* __restrict d = c.V<float>(in->d);
  const int part = static_cast<int>(in->imm), shift = 16 * part;
  for (int i = 0; i < 64; ++i) d[i] = ToFloat(S{static_cast<uint16_t>(s[i] >> shift)});
  uint64_t m[4];
  SourceMask<2>(c.M(in->c), part, m);
  ZeroInactive<4>(d, m);
  return in + 1;
}

PTO_CLONES const Inst* IntToFloatNearest(Context& c, const Inst* in) {
  const int32_t* __restrict s = c.V<int32_t>(in->a);
  float* __restrict d = c.V<float>(in->d);
  for (int i = 0; i < 64; ++i) d[i] = static_cast<float>(s[i]);
  ZeroInactive<4>(d, c.M(in->c));
  return in + 1;
}

// Saturating toward zero or to nearest even.
template <bool kNearest>
PTO_CLONES const Inst* FloatToIntSaturating(Context& c, const Inst* in) {
  const float* __restrict s = c.V<float>(in->a);
  int32_t* __restrict d = c.V<int32_t>(in->d);
  for (int i = 0; i < 64; ++i) {
    const float x = kNearest ? std::nearbyint(s[i]) : s[i];
    const float safe = x < 0x1p31f ? (x >= -0x1p31f ? x : -0x1p31f) : 0.0f;
    const int32_t v = static_cast<int32_t>(x != x ? 0.0f : safe);
    d[i] = x >= 0x1p31f ? INT32_MAX : v;
  }
  ZeroInactive<4>(d, c.M(in->c));
  return in + 1;
}

struct Pair {
  DType from, to;
  Handler handler;
};

const Pair kPairs[] = {
    {DType::kF32, DType::kF16, &Convert<float, F16>},         {DType::kF32, DType::kBF16, &Convert<float, BF16>},
    {DType::kF32, DType::kI16, &Convert<float, int16_t>},     {DType::kF32, DType::kI32, &Convert<float, int32_t>},
    {DType::kF32, DType::kI64, &Convert<float, int64_t>},     {DType::kF16, DType::kF32, &Convert<F16, float>},
    {DType::kF16, DType::kBF16, &Convert<F16, BF16>},         {DType::kF16, DType::kI32, &Convert<F16, int32_t>},
    {DType::kF16, DType::kI16, &Convert<F16, int16_t>},       {DType::kF16, DType::kI8, &Convert<F16, int8_t>},
    {DType::kF16, DType::kU8, &Convert<F16, uint8_t>},        {DType::kBF16, DType::kF32, &Convert<BF16, float>},
    {DType::kBF16, DType::kF16, &Convert<BF16, F16>},         {DType::kBF16, DType::kI32, &Convert<BF16, int32_t>},
    {DType::kU8, DType::kF16, &Convert<uint8_t, F16>},        {DType::kU8, DType::kU16, &Convert<uint8_t, uint16_t>},
    {DType::kU8, DType::kU32, &Convert<uint8_t, uint32_t>},   {DType::kI8, DType::kF16, &Convert<int8_t, F16>},
    {DType::kI8, DType::kI16, &Convert<int8_t, int16_t>},     {DType::kI8, DType::kI32, &Convert<int8_t, int32_t>},
    {DType::kU16, DType::kU8, &Convert<uint16_t, uint8_t>},   {DType::kU16, DType::kU32, &Convert<uint16_t, uint32_t>},
    {DType::kI16, DType::kF16, &Convert<int16_t, F16>},       {DType::kI16, DType::kF32, &Convert<int16_t, float>},
    {DType::kI16, DType::kU32, &Convert<int16_t, uint32_t>},  {DType::kI16, DType::kI32, &Convert<int16_t, int32_t>},
    {DType::kI16, DType::kU8, &Convert<int16_t, uint8_t>},    {DType::kU32, DType::kU8, &Convert<uint32_t, uint8_t>},
    {DType::kU32, DType::kU16, &Convert<uint32_t, uint16_t>}, {DType::kU32, DType::kI16, &Convert<uint32_t, int16_t>},
    {DType::kI32, DType::kF32, &Convert<int32_t, float>},     {DType::kI32, DType::kU8, &Convert<int32_t, uint8_t>},
    {DType::kI32, DType::kU16, &Convert<int32_t, uint16_t>},  {DType::kI32, DType::kI16, &Convert<int32_t, int16_t>},
    {DType::kI32, DType::kI64, &Convert<int32_t, int64_t>},   {DType::kI64, DType::kF32, &Convert<int64_t, float>},
    {DType::kI64, DType::kI32, &Convert<int64_t, int32_t>},
};

// Frequent conversions have loops of their own.
Handler FastHandler(DType from, DType to, Rounding r, bool saturate) {
  if (from == DType::kF32 && to == DType::kF16 && r == Rounding::kR) return &NarrowNearest<F16>;
  if (from == DType::kF32 && to == DType::kBF16 && r == Rounding::kR) return &NarrowNearest<BF16>;
  if (from == DType::kF16 && to == DType::kF32) return &WidenHalf<F16>;
  if (from == DType::kBF16 && to == DType::kF32) return &WidenHalf<BF16>;
  if (from == DType::kI32 && to == DType::kF32 && r == Rounding::kR) return &IntToFloatNearest;
  if (from == DType::kF32 && to == DType::kI32 && saturate) {
    if (r == Rounding::kZ) return &FloatToIntSaturating<false>;
    if (r == Rounding::kR) return &FloatToIntSaturating<true>;
  }
  return nullptr;
}

void CompileConvert(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectVector(op.results[0]);
  const DType from = b.Type(op.operands[0]).dtype, to = b.Type(op.results[0]).dtype;
  b.ExpectMask(op.operands[1], ByteSize(from));
  Handler h = nullptr;
  for (const Pair& p : kPairs) {
    if (p.from == from && p.to == to) h = p.handler;
  }
  if (!h) b.Fail(std::string("conversion from ") + Name(from) + " to " + Name(to) + " is not supported");

  Rounding r = Rounding::kR;
  const std::string word = b.TextAttribute(op, "rnd", "");
  if (!word.empty()) b.Expect(ParseRounding(word, &r), "unsupported rounding " + word);
  if (r == Rounding::kO)
    b.Expect(from == DType::kF32 && to == DType::kF16, "rounding to odd exists only from f32 to f16");
  const std::string sat = b.TextAttribute(op, "sat", "");
  b.Expect(sat.empty() || sat == "SAT" || sat == "NOSAT", "sat is SAT or NOSAT, found " + sat);
  bool saturate = sat == "SAT";
  // These clamp in either mode.
  if (from == DType::kF16 && to == DType::kI16) saturate = true;
  if (from == DType::kI16 && to == DType::kU32) saturate = true;
  // f16 to s32 has no such operand and cannot overflow but for infinities and NaN.
  if (from == DType::kF16 && to == DType::kI32) saturate = true;

  const int s = ByteSize(from), d = ByteSize(to), ratio = s > d ? s / d : d / s;
  const std::string part = b.TextAttribute(op, "part", "");
  int index = 0;
  if (ratio == 1) {
    b.Expect(part.empty(), "this conversion has no part");
  } else if (ratio == 2) {
    b.Expect(part == "EVEN" || part == "ODD", "part is EVEN or ODD, found " + (part.empty() ? "none" : part));
    index = part == "ODD";
  } else {
    b.Expect(part.size() == 2 && part[0] == 'P' && part[1] >= '0' && part[1] <= '3',
             "part is P0 to P3, found " + (part.empty() ? "none" : part));
    index = part[1] - '0';
  }
  if (Handler fast = FastHandler(from, to, r, saturate)) h = fast;
  const uint32_t a = b.Vector(op.operands[0]), m = b.Mask(op.operands[1]);
  const Place place = b.Define(op.results[0]);
  Inst& in = b.Emit(h, kCountVector);
  in.d = place.slot, in.a = a, in.c = m, in.e = static_cast<uint32_t>(r), in.flag = saturate, in.imm = index;
}

}  // namespace

const OpTable& SimdConvertOps() {
  static const OpTable table = {
      {"vcvt", kOnVector, &CompileConvert},
  };
  return table;
}

}  // namespace pto::engine
