// Broadcast, select and rearrangement of vector registers.
#include "arith.h"
#include "clones.h"
#include "dispatch.h"
#include "simd.h"

namespace pto::engine {
namespace {

template <int kBytes>
PTO_CLONES const Inst* Select(Context& c, const Inst* in) {
  const uint64_t* __restrict a = c.V<uint64_t>(in->a);
  const uint64_t* __restrict b = c.V<uint64_t>(in->b);
  uint64_t* __restrict d = c.V<uint64_t>(in->d);
  uint64_t lanes[32];
  ExpandMask<kBytes>(c.M(in->c), lanes);
  for (int i = 0; i < 32; ++i) d[i] = (a[i] & lanes[i]) | (b[i] & ~lanes[i]);
  return in + 1;
}

template <class T>
PTO_CLONES const Inst* SelectIndexed(Context& c, const Inst* in) {
  const T *a = c.V<T>(in->a), *index = c.V<T>(in->b);
  T* d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = a[index[i] & (kLanes<T> - 1)];
  return in + 1;
}

// a: scalar
template <class T>
PTO_CLONES const Inst* DupScalar(Context& c, const Inst* in) {
  const T x = c.S<T>(in->a);
  T* d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = x;
  ZeroInactive<sizeof(T)>(d, c.M(in->c));
  return in + 1;
}
// a: register, its lane 0
template <class T>
PTO_CLONES const Inst* DupLane(Context& c, const Inst* in) {
  const T x = c.V<T>(in->a)[0];
  T* d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = x;
  ZeroInactive<sizeof(T)>(d, c.M(in->c));
  return in + 1;
}
template <class T>
PTO_CLONES const Inst* Broadcast(Context& c, const Inst* in) {
  const T x = c.S<T>(in->a);
  T* d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = x;
  return in + 1;
}

// imm: 1 ascending, -1 descending
template <class T>
PTO_CLONES const Inst* Iota(Context& c, const Inst* in) {
  const T base = c.S<T>(in->a);
  T* d = c.V<T>(in->d);
  const int step = static_cast<int>(in->imm);
  for (int i = 0; i < kLanes<T>; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      d[i] = static_cast<float>(static_cast<double>(base) + step * i);
    } else if constexpr (kIsFloat<T>) {
      d[i] = T{RoundToHalf(static_cast<double>(ToFloat(base)) + step * i, std::is_same_v<T, F16>)};
    } else {
      d[i] = static_cast<T>(static_cast<Wrap<T>>(base) + static_cast<Wrap<T>>(step * i));
    }
  }
  return in + 1;
}

PTO_CLONES const Inst* CopyVector(Context& c, const Inst* in) {
  std::memcpy(c.v + in->d, c.v + in->a, 256);
  return in + 1;
}

// d: low, e: high
template <class T>
PTO_CLONES const Inst* Interleave(Context& c, const Inst* in) {
  const T* __restrict a = c.V<T>(in->a);
  const T* __restrict b = c.V<T>(in->b);
  T* __restrict low = c.V<T>(in->d);
  T* __restrict high = c.V<T>(in->e);
  constexpr int kHalf = kLanes<T> / 2;
  for (int i = 0; i < kHalf; ++i) low[2 * i] = a[i], low[2 * i + 1] = b[i];
  for (int i = 0; i < kHalf; ++i) high[2 * i] = a[kHalf + i], high[2 * i + 1] = b[kHalf + i];
  return in + 1;
}
template <class T>
PTO_CLONES const Inst* Deinterleave(Context& c, const Inst* in) {
  const T* __restrict a = c.V<T>(in->a);
  const T* __restrict b = c.V<T>(in->b);
  T* __restrict low = c.V<T>(in->d);
  T* __restrict high = c.V<T>(in->e);
  constexpr int kHalf = kLanes<T> / 2;
  for (int i = 0; i < kHalf; ++i) low[i] = a[2 * i], high[i] = a[2 * i + 1];
  for (int i = 0; i < kHalf; ++i) low[kHalf + i] = b[2 * i], high[kHalf + i] = b[2 * i + 1];
  return in + 1;
}

// The low half of every lane, into one half of the result. imm: 0 lower half, 1 higher half
template <class T, class Narrow>
PTO_CLONES const Inst* Pack(Context& c, const Inst* in) {
  const T* a = c.V<T>(in->a);
  Narrow out[kLanes<Narrow>] = {};
  Narrow* half = out + in->imm * kLanes<T>;
  for (int i = 0; i < kLanes<T>; ++i) half[i] = static_cast<Narrow>(a[i]);
  std::memcpy(c.v + in->d, out, kVectorBytes);
  return in + 1;
}

// One half of the lanes, widened by sign or by zeros as T has it.
template <class T, class Wide>
PTO_CLONES const Inst* Unpack(Context& c, const Inst* in) {
  const T* half = c.V<T>(in->a) + in->imm * kLanes<Wide>;
  Wide out[kLanes<Wide>];
  for (int i = 0; i < kLanes<Wide>; ++i) out[i] = half[i];
  std::memcpy(c.v + in->d, out, kVectorBytes);
  return in + 1;
}

// --- compilation ---

void CompileSelect(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectSame(op.operands[0], op.operands[1]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const int bytes = ByteSize(b.Type(op.operands[0]).dtype);
  b.ExpectMask(op.operands[2], bytes);
  const uint32_t y = b.Vector(op.operands[1]);
  EmitMasked(b, op, bytes == 1 ? &Select<1> : bytes == 2 ? &Select<2> : &Select<4>).b = y;
}

void CompileSelectIndexed(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectVector(op.operands[1]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const ValueType& index = b.Type(op.operands[1]);
  const int bytes = ByteSize(b.Type(op.operands[0]).dtype);
  b.Expect(IsInteger(index.dtype) && ByteSize(index.dtype) == bytes, "the indices are integers of the elements' width");
  const uint32_t x = b.Vector(op.operands[0]), y = b.Vector(op.operands[1]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(ForWidth(bytes, [](auto tag) -> Handler { return &SelectIndexed<typename decltype(tag)::Type>; }),
                    kCountVector);
  in.d = d.slot, in.a = x, in.b = y;
}

void CompileDup(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectVector(op.results[0]);
  const DType t = b.Type(op.results[0]).dtype;
  const ValueType& s = b.Type(op.operands[0]);
  b.ExpectMask(op.operands[1], ByteSize(t));
  std::string position = b.TextAttribute(op, "position", "LOWEST");
  if (position.rfind("POS_", 0) == 0) position = position.substr(4);
  const bool vector = s.kind == Kind::kVector;
  if (vector) {
    b.ExpectSame(op.operands[0], op.results[0]);
    b.Expect(position == "LOWEST", "position " + position + " does not exist");
  } else {
    b.ExpectScalar(op.operands[0]);
    b.Expect(ByteSize(s.dtype) == ByteSize(t) && IsFloat(s.dtype) == IsFloat(t),
             std::string("the scalar is ") + Name(s.dtype) + ", the elements are " + Name(t));
  }
  const Handler h = ForWidth(ByteSize(t), [&](auto tag) -> Handler {
    using T = typename decltype(tag)::Type;
    return vector ? &DupLane<T> : &DupScalar<T>;
  });
  if (vector) {
    EmitMasked(b, op, h);
    return;
  }
  const uint32_t x = b.Scalar(op.operands[0]), m = b.Mask(op.operands[1]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h, kCountVector);
  in.d = d.slot, in.a = x, in.c = m;
}

void CompileBroadcast(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  b.ExpectScalar(op.operands[0]);
  b.ExpectVector(op.results[0]);
  const DType t = b.Type(op.results[0]).dtype;
  b.Expect(ByteSize(b.Type(op.operands[0]).dtype) == ByteSize(t), "the scalar is not as wide as the elements");
  const uint32_t x = b.Scalar(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(ForWidth(ByteSize(t), [](auto tag) -> Handler { return &Broadcast<typename decltype(tag)::Type>; }),
                    kCountVector);
  in.d = d.slot, in.a = x;
}

void CompileIota(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  b.ExpectScalar(op.operands[0]);
  b.ExpectVector(op.results[0]);
  const DType t = b.Type(op.results[0]).dtype;
  b.Expect(b.Type(op.operands[0]).dtype == t, "base and elements have different types");
  const std::string order = b.TextAttribute(op, "order", "ASC");
  b.Expect(order == "ASC" || order == "DESC", "order is ASC or DESC");
  const uint32_t x = b.Scalar(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in =
      b.Emit(ForNumber(t, [](auto tag) -> Handler { return &Iota<typename decltype(tag)::Type>; }), kCountVector);
  in.d = d.slot, in.a = x, in.imm = order == "ASC" ? 1 : -1;
}

void CompileBitcast(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectVector(op.results[0]);
  const uint32_t x = b.Vector(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&CopyVector, kCountNothing);
  in.d = d.slot, in.a = x;
}

template <bool kDeinterleave>
void CompileInterleave(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 2);
  b.ExpectVector(op.operands[0]);
  b.ExpectSame(op.operands[0], op.operands[1]);
  for (uint32_t r : op.results) b.ExpectSame(op.operands[0], r);
  const uint32_t x = b.Vector(op.operands[0]), y = b.Vector(op.operands[1]);
  const Place low = b.Define(op.results[0]), high = b.Define(op.results[1]);
  Inst& in = b.Emit(ForWidth(ByteSize(b.Type(op.operands[0]).dtype),
                             [](auto tag) -> Handler {
                               using T = typename decltype(tag)::Type;
                               return kDeinterleave ? &Deinterleave<T> : &Interleave<T>;
                             }),
                    kCountVector);
  in.d = low.slot, in.e = high.slot, in.a = x, in.b = y;
}

void EmitRepack(Builder& b, const Op& op, int from, int to, Handler narrow, Handler wide) {
  b.ExpectCounts(op, 1, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectVector(op.results[0]);
  const DType s = b.Type(op.operands[0]).dtype, t = b.Type(op.results[0]).dtype;
  const int bytes = ByteSize(s);
  b.Expect(IsInteger(s) && (bytes == from || bytes == 2),
           std::string("elements of type ") + Name(s) + " are not supported");
  b.Expect(IsInteger(t) && ByteSize(t) == bytes * to / 2, std::string("a result of type ") + Name(t) + " does not fit");
  const std::string part = b.TextAttribute(op, "part", "");
  b.Expect(part == "LOWER" || part == "HIGHER", "part is LOWER or HIGHER");
  const uint32_t x = b.Vector(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(bytes == 2 ? narrow : wide, kCountVector);
  in.d = d.slot, in.a = x, in.imm = part == "HIGHER";
}
void CompilePack(Builder& b, const Op& op) {
  EmitRepack(b, op, 4, 1, &Pack<uint16_t, uint8_t>, &Pack<uint32_t, uint16_t>);
}
void CompileSignUnpack(Builder& b, const Op& op) {
  EmitRepack(b, op, 1, 4, &Unpack<int16_t, int32_t>, &Unpack<int8_t, int16_t>);
}
void CompileZeroUnpack(Builder& b, const Op& op) {
  EmitRepack(b, op, 1, 4, &Unpack<uint16_t, uint32_t>, &Unpack<uint8_t, uint16_t>);
}

}  // namespace

const OpTable& SimdMoveOps() {
  static const OpTable table = {
      {"vsel", kOnVector, &CompileSelect},
      {"vselr", kOnVector, &CompileSelectIndexed},
      {"vdup", kOnVector, &CompileDup},
      {"vbr", kOnVector, &CompileBroadcast},
      {"vci", kOnVector, &CompileIota},
      {"vbitcast", kOnVector, &CompileBitcast},
      {"vintlv", kOnVector, &CompileInterleave<false>},
      {"vdintlv", kOnVector, &CompileInterleave<true>},
      {"vpack", kOnVector, &CompilePack},
      {"vsunpack", kOnVector, &CompileSignUnpack},
      {"vzunpack", kOnVector, &CompileZeroUnpack},
  };
  return table;
}

}  // namespace pto::engine
