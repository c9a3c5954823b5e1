// vcvt: conversions between element types, with their lane placement.
//
// Same width: lane i to lane i. Narrowing by k: source lane i to lane k*i + part, the other lanes are 0. Widening by k:
// source lane k*i + part to lane i. The mask always belongs to the source lanes.
#include "arith.h"
#include "clones.h"
#include "convert.h"
#include "dispatch.h"
#include "low_precision.h"
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

// --- formats of 8 and 4 bits; flag: saturate, e: rounding, imm: part ---

template <float (*kDecode)(uint8_t)>
struct Decoded {
  float value[256];
  Decoded() {
    for (int i = 0; i < 256; ++i) value[i] = kDecode(static_cast<uint8_t>(i));
  }
  static const Decoded& Get() {
    static const Decoded table;
    return table;
  }
};

template <float (*kDecode)(uint8_t)>
const Inst* WidenByte(Context& c, const Inst* in) {
  const float* value = Decoded<kDecode>::Get().value;
  const uint32_t* s = c.V<uint32_t>(in->a);
  float* d = c.V<float>(in->d);
  const int part = static_cast<int>(in->imm);
  for (int i = 0; i < 64; ++i) d[i] = value[s[i] >> (8 * part) & 0xFF];
  uint64_t m[4];
  SourceMask<1>(c.M(in->c), part, m);
  ZeroInactive<4>(d, m);
  return in + 1;
}

const Inst* WidenHif8ToHalf(Context& c, const Inst* in) {
  const float* value = Decoded<&DecodeHif8>::Get().value;
  const uint8_t* s = c.V<uint8_t>(in->a);
  const uint64_t* m = c.M(in->c);
  F16 out[128];
  for (int i = 0; i < 128; ++i) {
    const int from = 2 * i + static_cast<int>(in->imm);
    out[i] = LaneActive<1>(m, from) ? FromFloat<F16>(value[s[from]]) : F16{0};
  }
  std::memcpy(c.v + in->d, out, kVectorBytes);
  return in + 1;
}

// F: a code from a number of type S, saturating or not, hybrid or not.
template <class F, class S>
const Inst* NarrowToByte(Context& c, const Inst* in) {
  const S* s = c.V<S>(in->a);
  const uint64_t* m = c.M(in->c);
  uint8_t out[kVectorBytes] = {};
  constexpr int kStep = static_cast<int>(sizeof(S));
  for (int i = 0; i < kLanes<S>; ++i) {
    if (!LaneActive<sizeof(S)>(m, i)) continue;
    out[kStep * i + static_cast<int>(in->imm)] = F::Encode(s[i], in->flag != 0, in->e != 0);
  }
  std::memcpy(c.v + in->d, out, kVectorBytes);
  return in + 1;
}
template <class F>
PTO_CLONES const Inst* NarrowToFloat8(Context& c, const Inst* in) {
  const float* __restrict s = c.V<float>(in->a);
  uint32_t* __restrict d = c.V<uint32_t>(in->d);
  const int shift = 8 * static_cast<int>(in->imm);
  if (in->flag) {
    for (int i = 0; i < 64; ++i) d[i] = EncodeFloat8<F>(s[i], true) << shift;
  } else {
    for (int i = 0; i < 64; ++i) d[i] = EncodeFloat8<F>(s[i], false) << shift;
  }
  ZeroInactive<4>(d, c.M(in->c));
  return in + 1;
}

struct ToHif8 {
  template <class S>
  static uint8_t Encode(S x, bool saturate, bool hybrid) {
    return EncodeHif8(x, hybrid, saturate);
  }
};
struct ToE8M0 {
  static uint8_t Encode(BF16 x, bool saturate, bool) { return EncodeE8M0(x, saturate); }
};

const Inst* WidenE8M0(Context& c, const Inst* in) {
  const uint8_t* s = c.V<uint8_t>(in->a);
  const uint64_t* m = c.M(in->c);
  BF16 out[128];
  for (int i = 0; i < 128; ++i) {
    const int from = 2 * i + static_cast<int>(in->imm);
    out[i] = LaneActive<1>(m, from) ? DecodeE8M0(s[from]) : BF16{0};
  }
  std::memcpy(c.v + in->d, out, kVectorBytes);
  return in + 1;
}

// A byte holds lanes 2j (low half) and 2j+1; byte 4j + part of the register is used.
template <class F>
const Inst* WidenPair(Context& c, const Inst* in) {
  const uint8_t* s = c.V<uint8_t>(in->a);
  const uint64_t* m = c.M(in->c);
  BF16 out[128] = {};
  for (int j = 0; j < 64; ++j) {
    const int from = 4 * j + static_cast<int>(in->imm);
    if (!LaneActive<1>(m, from)) continue;
    out[2 * j] = FromFloat<BF16>(F::Decode(s[from] & 0xF));
    out[2 * j + 1] = FromFloat<BF16>(F::Decode(s[from] >> 4));
  }
  std::memcpy(c.v + in->d, out, kVectorBytes);
  return in + 1;
}

// The mask bit of the even lane counts for both.
template <class F>
const Inst* NarrowPair(Context& c, const Inst* in) {
  const BF16* s = c.V<BF16>(in->a);
  const uint64_t* m = c.M(in->c);
  const Rounding r = static_cast<Rounding>(in->e);
  uint8_t out[kVectorBytes] = {};
  for (int j = 0; j < 64; ++j) {
    if (!LaneActive<2>(m, 2 * j)) continue;
    const int low = EncodeFloat4<F>(ToFloat(s[2 * j]), r), high = EncodeFloat4<F>(ToFloat(s[2 * j + 1]), r);
    out[4 * j + static_cast<int>(in->imm)] = static_cast<uint8_t>(low | high << 4);
  }
  std::memcpy(c.v + in->d, out, kVectorBytes);
  return in + 1;
}

struct Trunc {
  static float Float(float a) { return std::trunc(a); }
};

// To an integral value of the same type.
template <class F, class T>
PTO_CLONES const Inst* Truncate(Context& c, const Inst* in) {
  const T* __restrict s = c.V<T>(in->a);
  T* __restrict d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = Apply1<F>(s[i]);
  ZeroInactive<sizeof(T)>(d, c.M(in->c));
  return in + 1;
}

// f32 times a scalar, rounded, then to f16 with ties away from zero. b: scalar, imm: part
const Inst* MultiplyNarrow(Context& c, const Inst* in) {
  const float* s = c.V<float>(in->a);
  const float factor = c.S<float>(in->b);
  uint32_t* d = c.V<uint32_t>(in->d);
  const int shift = 16 * static_cast<int>(in->imm);
  for (int i = 0; i < 64; ++i) {
    d[i] = static_cast<uint32_t>(NarrowFloat<F16>(static_cast<double>(s[i] * factor), Rounding::kA, false).bits)
           << shift;
  }
  ZeroInactive<4>(d, c.M(in->c));
  return in + 1;
}

struct Pair {
  DType from, to;
  Handler handler;
};

const Pair kPairs[] = {
    {DType::kF32, DType::kF16, &Convert<float, F16>},
    {DType::kF32, DType::kBF16, &Convert<float, BF16>},
    {DType::kF32, DType::kI16, &Convert<float, int16_t>},
    {DType::kF32, DType::kI32, &Convert<float, int32_t>},
    {DType::kF32, DType::kI64, &Convert<float, int64_t>},
    {DType::kF16, DType::kF32, &Convert<F16, float>},
    {DType::kF16, DType::kBF16, &Convert<F16, BF16>},
    {DType::kF16, DType::kI32, &Convert<F16, int32_t>},
    {DType::kF16, DType::kI16, &Convert<F16, int16_t>},
    {DType::kF16, DType::kI8, &Convert<F16, int8_t>},
    {DType::kF16, DType::kU8, &Convert<F16, uint8_t>},
    {DType::kBF16, DType::kF32, &Convert<BF16, float>},
    {DType::kBF16, DType::kF16, &Convert<BF16, F16>},
    {DType::kBF16, DType::kI32, &Convert<BF16, int32_t>},
    {DType::kU8, DType::kF16, &Convert<uint8_t, F16>},
    {DType::kU8, DType::kU16, &Convert<uint8_t, uint16_t>},
    {DType::kU8, DType::kU32, &Convert<uint8_t, uint32_t>},
    {DType::kI8, DType::kF16, &Convert<int8_t, F16>},
    {DType::kI8, DType::kI16, &Convert<int8_t, int16_t>},
    {DType::kI8, DType::kI32, &Convert<int8_t, int32_t>},
    {DType::kU16, DType::kU8, &Convert<uint16_t, uint8_t>},
    {DType::kU16, DType::kU32, &Convert<uint16_t, uint32_t>},
    {DType::kI16, DType::kF16, &Convert<int16_t, F16>},
    {DType::kI16, DType::kF32, &Convert<int16_t, float>},
    {DType::kI16, DType::kU32, &Convert<int16_t, uint32_t>},
    {DType::kI16, DType::kI32, &Convert<int16_t, int32_t>},
    {DType::kI16, DType::kU8, &Convert<int16_t, uint8_t>},
    {DType::kU32, DType::kU8, &Convert<uint32_t, uint8_t>},
    {DType::kU32, DType::kU16, &Convert<uint32_t, uint16_t>},
    {DType::kU32, DType::kI16, &Convert<uint32_t, int16_t>},
    {DType::kI32, DType::kF32, &Convert<int32_t, float>},
    {DType::kI32, DType::kU8, &Convert<int32_t, uint8_t>},
    {DType::kI32, DType::kU16, &Convert<int32_t, uint16_t>},
    {DType::kI32, DType::kI16, &Convert<int32_t, int16_t>},
    {DType::kI32, DType::kI64, &Convert<int32_t, int64_t>},
    {DType::kI64, DType::kF32, &Convert<int64_t, float>},
    {DType::kI64, DType::kI32, &Convert<int64_t, int32_t>},
    {DType::kF8E4M3, DType::kF32, &WidenByte<&DecodeFloat8<E4M3>>},
    {DType::kF8E5M2, DType::kF32, &WidenByte<&DecodeFloat8<E5M2>>},
    {DType::kHiF8, DType::kF32, &WidenByte<&DecodeHif8>},
    {DType::kHiF8, DType::kF16, &WidenHif8ToHalf},
    {DType::kF8E8M0, DType::kBF16, &WidenE8M0},
    {DType::kF4E2M1x2, DType::kBF16, &WidenPair<E2M1>},
    {DType::kF4E1M2x2, DType::kBF16, &WidenPair<E1M2>},
    {DType::kF32, DType::kF8E4M3, &NarrowToFloat8<E4M3>},
    {DType::kF32, DType::kF8E5M2, &NarrowToFloat8<E5M2>},
    {DType::kF32, DType::kHiF8, &NarrowToByte<ToHif8, float>},
    {DType::kF16, DType::kHiF8, &NarrowToByte<ToHif8, F16>},
    {DType::kBF16, DType::kF8E8M0, &NarrowToByte<ToE8M0, BF16>},
    {DType::kBF16, DType::kF4E2M1x2, &NarrowPair<E2M1>},
    {DType::kBF16, DType::kF4E1M2x2, &NarrowPair<E1M2>},
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
  const bool float8 = to == DType::kF8E4M3 || to == DType::kF8E5M2;
  if (!h && float8 && (from == DType::kF16 || from == DType::kBF16)) {
    b.Fail(std::string("the hardware has no conversion from ") + Name(from) + " to " + Name(to) +
           ": convert to f32 first");
  }
  if (!h) b.Fail(std::string("conversion from ") + Name(from) + " to " + Name(to) + " is not supported");

  Rounding r = Rounding::kR;
  const std::string word = b.TextAttribute(op, "rnd", "");
  const bool hybrid = word == "H" && to == DType::kHiF8;
  if (!word.empty() && !hybrid) b.Expect(ParseRounding(word, &r), "unsupported rounding " + word);
  if (float8) b.Expect(r == Rounding::kR, "conversions to " + std::string(Name(to)) + " exist with rounding R only");
  if (to == DType::kHiF8) b.Expect(hybrid || r == Rounding::kA, "conversions to hif8 exist with rounding A and H");
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

  const int s = ByteSize(from), d = ByteSize(to);
  const bool pairs =
      from == DType::kF4E2M1x2 || from == DType::kF4E1M2x2 || to == DType::kF4E2M1x2 || to == DType::kF4E1M2x2;
  const int ratio = pairs ? 4 : s > d ? s / d : d / s;
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
  Inst& in = EmitMasked(b, op, h);
  in.flag = saturate, in.imm = index;
  in.e = to == DType::kHiF8 ? static_cast<uint32_t>(hybrid) : static_cast<uint32_t>(r);
}

void CompileTruncate(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const DType t = b.Type(op.operands[0]).dtype;
  b.ExpectMask(op.operands[1], ByteSize(t));
  Rounding r = Rounding::kZ;
  const std::string word = b.TextAttribute(op, "rnd", "Z");
  b.Expect(ParseRounding(word, &r) && r != Rounding::kO, "unsupported rounding " + word);
  const Handler h = ForFloat(t, [r](auto tag) -> Handler {
    using T = typename decltype(tag)::Type;
    switch (r) {
      case Rounding::kR:
        return &Truncate<Rint, T>;
      case Rounding::kA:
        return &Truncate<RoundAway, T>;
      case Rounding::kF:
        return &Truncate<Floor, T>;
      case Rounding::kC:
        return &Truncate<Ceil, T>;
      default:
        return &Truncate<Trunc, T>;
    }
  });
  EmitMasked(b, op, h);
}

void CompileMultiplyNarrow(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectVector(op.results[0]);
  b.ExpectScalar(op.operands[1]);
  b.Expect(b.Type(op.operands[0]).dtype == DType::kF32 && b.Type(op.operands[1]).dtype == DType::kF32 &&
               b.Type(op.results[0]).dtype == DType::kF16,
           "vmulscvt takes f32 and gives f16");
  b.ExpectMask(op.operands[2], 4);
  const std::string rounding = b.TextAttribute(op, "rnd", "A"), part = b.TextAttribute(op, "part", "");
  b.Expect(rounding == "A", "unsupported rounding " + rounding);
  b.Expect(part == "EVEN" || part == "ODD", "part is EVEN or ODD, found " + (part.empty() ? "none" : part));
  const uint32_t s = b.Scalar(op.operands[1]);
  Inst& in = EmitMasked(b, op, &MultiplyNarrow);
  in.b = s, in.imm = part == "ODD";
}

}  // namespace

const OpTable& SimdConvertOps() {
  static const OpTable table = {
      {"vcvt", kOnVector, &CompileConvert},
      {"vtrc", kOnVector, &CompileTruncate},
      {"vmulscvt", kOnVector, &CompileMultiplyNarrow},
  };
  return table;
}

}  // namespace pto::engine
