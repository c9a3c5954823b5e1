// Vector arithmetic: binary, vector-scalar, unary, fused, compare.
#include <algorithm>

#include "approximate.h"
#include "arith.h"
#include "clones.h"
#include "dispatch.h"
#include "scalar_words.h"
#include "simd.h"

namespace pto::engine {
namespace {

template <class F, class T>
const Inst* PerturbedBinary(Context& c, const Inst* in) {
  const T *a = c.V<T>(in->a), *b = c.V<T>(in->b);
  T* d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = F::Perturbed(c.seed, a[i], b[i]);
  ZeroInactive<sizeof(T)>(d, c.M(in->c));
  return in + 1;
}

// d, a, b: registers; c: mask
template <class F, class T>
PTO_CLONES const Inst* Binary(Context& c, const Inst* in) {
  if constexpr (Perturbs<F, T>()) {
    if (c.perturbed) return PerturbedBinary<F, T>(c, in);
  }
  const T* __restrict a = c.V<T>(in->a);
  const T* __restrict b = c.V<T>(in->b);
  T* __restrict d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = Apply2<F>(a[i], b[i]);
  ZeroInactive<sizeof(T)>(d, c.M(in->c));
  return in + 1;
}

// Toward zero; the least number divided by -1 wraps. A zero divisor is refused in active lanes.
template <class T>
const Inst* IntegerDivide(Context& c, const Inst* in) {
  const T *a = c.V<T>(in->a), *b = c.V<T>(in->b);
  T* d = c.V<T>(in->d);
  const uint64_t* m = c.M(in->c);
  for (int i = 0; i < kLanes<T>; ++i) {
    const bool active = LaneActive<sizeof(T)>(m, i);
    if (active && b[i] == 0) c.Fail(in, "division by zero in lane " + std::to_string(i));
    d[i] = active ? Div::Int(a[i], b[i]) : T(0);
  }
  return in + 1;
}

// b: scalar
template <class F, class T>
PTO_CLONES const Inst* WithScalar(Context& c, const Inst* in) {
  const T* __restrict a = c.V<T>(in->a);
  T* __restrict d = c.V<T>(in->d);
  const T b = c.S<T>(in->b);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = Apply2<F>(a[i], b);
  ZeroInactive<sizeof(T)>(d, c.M(in->c));
  return in + 1;
}

template <class F, class T>
PTO_CLONES const Inst* Unary(Context& c, const Inst* in) {
  const T* __restrict a = c.V<T>(in->a);
  T* __restrict d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = Apply1<F>(a[i]);
  ZeroInactive<sizeof(T)>(d, c.M(in->c));
  return in + 1;
}

template <class F, class T>
const Inst* PerturbedUnary(Context& c, const Inst* in) {
  const T* a = c.V<T>(in->a);
  T* d = c.V<T>(in->d);
  const uint64_t* m = c.M(in->c);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = LaneActive<sizeof(T)>(m, i) ? F::Perturbed(c.seed, a[i]) : T{};
  return in + 1;
}

// Costly functions: only the active lanes.
template <class F, class T>
PTO_CLONES const Inst* UnaryActive(Context& c, const Inst* in) {
  if constexpr (Perturbs<F, T>()) {
    if (c.perturbed) return PerturbedUnary<F, T>(c, in);
  }
  const T* __restrict a = c.V<T>(in->a);
  T* __restrict d = c.V<T>(in->d);
  const uint64_t* m = c.M(in->c);
  if (AllActive<sizeof(T)>(m)) {
    for (int i = 0; i < kLanes<T>; ++i) d[i] = Apply1<F>(a[i]);
  } else {
    for (int i = 0; i < kLanes<T>; ++i) d[i] = LaneActive<sizeof(T)>(m, i) ? Apply1<F>(a[i]) : T{};
  }
  return in + 1;
}

// Shifts follow the hardware: an amount of at least the width shifts everything out; a signed left shift keeps the sign
// bit; a negative amount is refused.
struct VectorShl {
  template <class T>
  static T Int(T a, T b) {
    using U = std::make_unsigned_t<T>;
    constexpr int kBits = sizeof(T) * 8;
    const U n = static_cast<U>(b);
    const T shifted = n >= kBits ? T(0) : static_cast<T>(static_cast<Wrap<T>>(a) << n);
    if constexpr (std::is_signed_v<T>) {
      constexpr U kSign = static_cast<U>(U(1) << (kBits - 1));
      return n >= kBits ? T(0) : static_cast<T>((static_cast<U>(shifted) & ~kSign) | (static_cast<U>(a) & kSign));
    }
    return shifted;
  }
};

template <class F, class T>
PTO_CLONES const Inst* Shift(Context& c, const Inst* in) {
  const T* __restrict a = c.V<T>(in->a);
  const T* __restrict b = c.V<T>(in->b);
  T* __restrict d = c.V<T>(in->d);
  const uint64_t* m = c.M(in->c);
  if constexpr (std::is_signed_v<T>) {
    T sign = 0;
    for (int i = 0; i < kLanes<T>; ++i) sign = static_cast<T>(sign | b[i]);
    if (sign < 0) {
      for (int i = 0; i < kLanes<T>; ++i) {
        if (b[i] < 0 && LaneActive<sizeof(T)>(m, i)) c.Fail(in, "negative shift amount in lane " + std::to_string(i));
      }
    }
  }
  for (int i = 0; i < kLanes<T>; ++i) d[i] = F::Int(a[i], b[i]);
  ZeroInactive<sizeof(T)>(d, m);
  return in + 1;
}

// b: scalar of 64 bits
template <class F, class T>
PTO_CLONES const Inst* ShiftScalar(Context& c, const Inst* in) {
  const T* __restrict a = c.V<T>(in->a);
  T* __restrict d = c.V<T>(in->d);
  const int64_t amount = c.S<int64_t>(in->b);
  if (amount < 0) c.Fail(in, "negative shift amount");
  const T n = static_cast<T>(std::min<int64_t>(amount, sizeof(T) * 8));
  for (int i = 0; i < kLanes<T>; ++i) d[i] = F::Int(a[i], n);
  ZeroInactive<sizeof(T)>(d, c.M(in->c));
  return in + 1;
}

// d = a * b + e; c: mask
template <class T>
PTO_CLONES const Inst* Fused(Context& c, const Inst* in) {
  const T* __restrict a = c.V<T>(in->a);
  const T* __restrict b = c.V<T>(in->b);
  const T* __restrict addend = c.V<T>(in->e);
  T* __restrict d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = MultiplyAdd(a[i], b[i], addend[i]);
  ZeroInactive<sizeof(T)>(d, c.M(in->c));
  return in + 1;
}

// d = a * x + b; e: scalar x
template <class T>
PTO_CLONES const Inst* Axpy(Context& c, const Inst* in) {
  const T* __restrict a = c.V<T>(in->a);
  const T* __restrict b = c.V<T>(in->b);
  const T x = c.S<T>(in->e);
  T* __restrict d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = MultiplyAdd(x, a[i], b[i]);
  ZeroInactive<sizeof(T)>(d, c.M(in->c));
  return in + 1;
}

// The difference is rounded to f32 before the exponential. imm: 0 even lanes, 1 odd lanes of f16 sources.
template <class T>
PTO_CLONES const Inst* ExpDif(Context& c, const Inst* in) {
  const T* __restrict a = c.V<T>(in->a);
  const T* __restrict b = c.V<T>(in->b);
  float* __restrict d = c.V<float>(in->d);
  const uint64_t* m = c.M(in->c);
  constexpr int kStep = static_cast<int>(4 / sizeof(T));
  const int part = kStep == 1 ? 0 : static_cast<int>(in->imm);
  using Function = Hardware<Exp, Approximation::vexpdif>;
  for (int i = 0; i < 64; ++i) {
    const int lane = kStep * i + part;
    const float difference = ToFloat(a[lane]) - ToFloat(b[lane]);
    if (!LaneActive<sizeof(T)>(m, lane))
      d[i] = 0.0f;
    else
      d[i] = c.perturbed ? Function::Perturbed(c.seed, difference) : Function::Apply(difference);
  }
  return in + 1;
}

template <class F, class T>
PTO_CLONES const Inst* Cmp(Context& c, const Inst* in) {
  const T* __restrict a = c.V<T>(in->a);
  const T* __restrict b = c.V<T>(in->b);
  uint8_t flags[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i) flags[i] = Compare<F>(a[i], b[i]);
  uint64_t* d = c.M(in->d);
  const uint64_t* seed = c.M(in->c);
  PackMask<sizeof(T)>(flags, d);
  for (int i = 0; i < 4; ++i) d[i] &= seed[i];
  return in + 1;
}

template <class F, class T>
PTO_CLONES const Inst* CmpScalar(Context& c, const Inst* in) {
  const T* __restrict a = c.V<T>(in->a);
  const T b = c.S<T>(in->b);
  uint8_t flags[kLanes<T>];
  for (int i = 0; i < kLanes<T>; ++i) flags[i] = Compare<F>(a[i], b);
  uint64_t* d = c.M(in->d);
  const uint64_t* seed = c.M(in->c);
  PackMask<sizeof(T)>(flags, d);
  for (int i = 0; i < 4; ++i) d[i] &= seed[i];
  return in + 1;
}

// --- compilation ---

// Which element types an operation has.
enum Types : uint8_t {
  kInt8 = 1,
  kInt16 = 2,
  kInt32 = 4,
  kInt64 = 8,
  kHalf = 16,
  kBfloat = 32,
  kSingle = 64,
  kSignedOnly = 128
};
constexpr uint8_t kInts = kInt8 | kInt16 | kInt32 | kInt64;
constexpr uint8_t kFloats = kHalf | kBfloat | kSingle;

void ExpectType(Builder& b, DType t, uint8_t types) {
  bool ok = false;
  if (t == DType::kF16)
    ok = types & kHalf;
  else if (t == DType::kBF16)
    ok = types & kBfloat;
  else if (t == DType::kF32)
    ok = types & kSingle;
  else if (IsInteger(t) && t != DType::kI1) {
    const int n = ByteSize(t);
    ok = types & (n == 1 ? kInt8 : n == 2 ? kInt16 : n == 4 ? kInt32 : kInt64);
    if (types & kSignedOnly) ok = ok && IsSigned(t);
  }
  b.Expect(ok, std::string("vector elements of type ") + Name(t) + " are not supported");
}

struct Operands {
  DType dtype;
  int bytes;
};

// First operand a vector, last one a mask of its width, one result of the same type.
Operands Check(Builder& b, const Op& op, size_t operands, uint8_t types) {
  b.ExpectCounts(op, operands, 1);
  b.ExpectVector(op.operands[0]);
  const ValueType& t = b.Type(op.operands[0]);
  ExpectType(b, t.dtype, types);
  b.ExpectMask(op.operands.back(), ByteSize(t.dtype));
  b.ExpectSame(op.operands[0], op.results[0]);
  return {t.dtype, ByteSize(t.dtype)};
}

void EmitVector(Builder& b, const Op& op, Handler h, uint32_t second) { EmitMasked(b, op, h).b = second; }

// Operations on which signedness has no influence share one instantiation per width.
template <class F>
constexpr bool kSignless = std::is_same_v<F, Add> || std::is_same_v<F, Sub> || std::is_same_v<F, Mul> ||
                           std::is_same_v<F, And> || std::is_same_v<F, Or> || std::is_same_v<F, Xor>;

template <class F, uint8_t kTypes>
Handler BinaryHandler(DType t) {
  if (kSignless<F>) t = Signless(t);
  if constexpr ((kTypes & kFloats) != 0) {
    if (IsFloat(t)) return ForFloat(t, [](auto tag) -> Handler { return &Binary<F, typename decltype(tag)::Type>; });
  }
  if constexpr ((kTypes & kInts) != 0) {
    return ForInteger(t, [](auto tag) -> Handler { return &Binary<F, typename decltype(tag)::Type>; });
  }
  return nullptr;
}

template <class F, uint8_t kTypes>
void CompileBinary(Builder& b, const Op& op) {
  const Operands o = Check(b, op, 3, kTypes);
  b.ExpectSame(op.operands[0], op.operands[1]);
  EmitVector(b, op, BinaryHandler<F, kTypes>(o.dtype), b.Vector(op.operands[1]));
}

void CompileDivide(Builder& b, const Op& op) {
  const Operands o = Check(b, op, 3, kInt16 | kInt32 | kHalf | kSingle);
  b.ExpectSame(op.operands[0], op.operands[1]);
  Handler h = nullptr;
  // What PTODSL calls high precision is correctly rounded and keeps subnormals.
  const std::string precision = b.TextAttribute(op, "precision", "");
  b.Expect(precision.empty() || precision == "HighPrecision", "unknown precision " + precision);
  if (IsFloat(o.dtype)) {
    h = precision.empty() ? BinaryHandler<Hardware<Div, Approximation::vdiv>, kHalf | kSingle>(o.dtype)
                          : BinaryHandler<Div, kHalf | kSingle>(o.dtype);
  } else {
    b.Expect(IsSigned(o.dtype), std::string("vector elements of type ") + Name(o.dtype) + " are not supported");
    h = o.bytes == 2 ? &IntegerDivide<int16_t> : &IntegerDivide<int32_t>;
  }
  EmitVector(b, op, h, b.Vector(op.operands[1]));
}

// Bit patterns: any element type.
template <class F>
void CompileBits(Builder& b, const Op& op) {
  const Operands o = Check(b, op, 3, kInts | kFloats);
  b.ExpectSame(op.operands[0], op.operands[1]);
  EmitVector(b, op, ForWidth(o.bytes, [](auto tag) -> Handler { return &Binary<F, typename decltype(tag)::Type>; }),
             b.Vector(op.operands[1]));
}

uint32_t SameScalar(Builder& b, uint32_t value, DType t) {
  b.ExpectScalar(value);
  b.Expect(b.Type(value).dtype == t,
           std::string("the scalar is ") + Name(b.Type(value).dtype) + ", the elements are " + Name(t));
  return b.Scalar(value);
}

template <class F, uint8_t kTypes>
void CompileWithScalar(Builder& b, const Op& op) {
  const Operands o = Check(b, op, 3, kTypes);
  const DType t = kSignless<F> ? Signless(o.dtype) : o.dtype;
  const Handler h = ForNumber(t, [](auto tag) -> Handler { return &WithScalar<F, typename decltype(tag)::Type>; });
  EmitVector(b, op, h, SameScalar(b, op.operands[1], o.dtype));
}

template <class F>
void CompileFloatScalar(Builder& b, const Op& op) {
  const Operands o = Check(b, op, 3, kHalf | kSingle);
  const Handler h = ForFloat(o.dtype, [](auto tag) -> Handler { return &WithScalar<F, typename decltype(tag)::Type>; });
  EmitVector(b, op, h, SameScalar(b, op.operands[1], o.dtype));
}

template <class F>
void CompileShift(Builder& b, const Op& op) {
  const Operands o = Check(b, op, 3, kInt8 | kInt16 | kInt32);
  b.ExpectVector(op.operands[1]);
  b.Expect(ByteSize(b.Type(op.operands[1]).dtype) == o.bytes && IsInteger(b.Type(op.operands[1]).dtype),
           "the amounts are integers of the elements' width");
  EmitVector(b, op, ForInteger(o.dtype, [](auto tag) -> Handler { return &Shift<F, typename decltype(tag)::Type>; }),
             b.Vector(op.operands[1]));
}

template <class F>
void CompileShiftScalar(Builder& b, const Op& op) {
  const Operands o = Check(b, op, 3, kInt8 | kInt16 | kInt32);
  EmitVector(b, op,
             ForInteger(o.dtype, [](auto tag) -> Handler { return &ShiftScalar<F, typename decltype(tag)::Type>; }),
             b.Int64(op.operands[1]));
}

template <class F, uint8_t kTypes>
void CompileUnary(Builder& b, const Op& op) {
  const Operands o = Check(b, op, 2, kTypes);
  Handler h = nullptr;
  if constexpr ((kTypes & kInts) != 0) {
    h = ForNumber(o.dtype, [](auto tag) -> Handler { return &Unary<F, typename decltype(tag)::Type>; });
  } else {
    h = ForFloat(o.dtype, [](auto tag) -> Handler { return &UnaryActive<F, typename decltype(tag)::Type>; });
  }
  EmitVector(b, op, h, 0);
}

void CompileNot(Builder& b, const Op& op) {
  const Operands o = Check(b, op, 2, kInts | kFloats);
  EmitVector(b, op, ForWidth(o.bytes, [](auto tag) -> Handler { return &Unary<Not, typename decltype(tag)::Type>; }),
             0);
}

Handler FusedHandler(DType t) {
  return ForNumber(t, [](auto tag) -> Handler { return &Fused<typename decltype(tag)::Type>; });
}

// acc + a * b
void CompileMula(Builder& b, const Op& op) {
  const Operands o = Check(b, op, 4, kInt16 | kInt32 | kFloats);
  for (int i = 1; i < 3; ++i) b.ExpectSame(op.operands[0], op.operands[i]);
  const uint32_t acc = b.Vector(op.operands[0]), x = b.Vector(op.operands[1]), y = b.Vector(op.operands[2]);
  const uint32_t m = b.Mask(op.operands[3]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(FusedHandler(o.dtype), kCountVector);
  in.d = d.slot, in.a = x, in.b = y, in.e = acc, in.c = m;
}

// dst * a + b
void CompileMadd(Builder& b, const Op& op) {
  const Operands o = Check(b, op, 4, kFloats);
  for (int i = 1; i < 3; ++i) b.ExpectSame(op.operands[0], op.operands[i]);
  const uint32_t dst = b.Vector(op.operands[0]), x = b.Vector(op.operands[1]), y = b.Vector(op.operands[2]);
  const uint32_t m = b.Mask(op.operands[3]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(FusedHandler(o.dtype), kCountVector);
  in.d = d.slot, in.a = dst, in.b = x, in.e = y, in.c = m;
}

// alpha * x + y
void CompileAxpy(Builder& b, const Op& op) {
  b.ExpectCounts(op, 4, 1);
  b.ExpectVector(op.operands[1]);
  b.ExpectSame(op.operands[1], op.operands[2]);
  b.ExpectSame(op.operands[1], op.results[0]);
  const DType t = b.Type(op.operands[1]).dtype;
  ExpectType(b, t, kHalf | kSingle);
  b.ExpectMask(op.operands[3], ByteSize(t));
  const uint32_t alpha = SameScalar(b, op.operands[0], t);
  const uint32_t x = b.Vector(op.operands[1]), y = b.Vector(op.operands[2]), m = b.Mask(op.operands[3]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(ForFloat(t, [](auto tag) -> Handler { return &Axpy<typename decltype(tag)::Type>; }), kCountVector);
  in.d = d.slot, in.a = x, in.b = y, in.e = alpha, in.c = m;
}

void CompileExpDif(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectSame(op.operands[0], op.operands[1]);
  const DType t = b.Type(op.operands[0]).dtype;
  ExpectType(b, t, kHalf | kSingle);
  b.ExpectMask(op.operands[2], ByteSize(t));
  b.Expect(b.Type(op.results[0]).kind == Kind::kVector && b.Type(op.results[0]).dtype == DType::kF32,
           "the result of vexpdif is f32");
  const std::string part = b.TextAttribute(op, "part", t == DType::kF32 ? "ODD" : "");
  b.Expect(part == "EVEN" || part == "ODD", "part is EVEN or ODD");
  const uint32_t x = b.Vector(op.operands[0]), y = b.Vector(op.operands[1]), m = b.Mask(op.operands[2]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(t == DType::kF16 ? &ExpDif<F16> : &ExpDif<float>, kCountVector);
  in.d = d.slot, in.a = x, in.b = y, in.c = m, in.imm = part == "ODD";
}

void CompileCompare(Builder& b, const Op& op, bool scalar) {
  b.ExpectCounts(op, 3, 1);
  b.ExpectVector(op.operands[0]);
  const DType t = b.Type(op.operands[0]).dtype;
  ExpectType(b, t, kInt8 | kInt16 | kInt32 | kFloats);
  b.ExpectMask(op.operands[2], ByteSize(t));
  b.ExpectMask(op.results[0], ByteSize(t));
  if (!scalar) b.ExpectSame(op.operands[0], op.operands[1]);
  const Handler h = ForPredicate(b, b.TextAttribute(op, "mode", ""), [&](auto f) -> Handler {
    using P = decltype(f);
    return ForNumber(t, [&](auto tag) -> Handler {
      using T = typename decltype(tag)::Type;
      return scalar ? &CmpScalar<P, T> : &Cmp<P, T>;
    });
  });
  const uint32_t x = b.Vector(op.operands[0]);
  const uint32_t y = scalar ? SameScalar(b, op.operands[1], t) : b.Vector(op.operands[1]);
  const uint32_t seed = b.Mask(op.operands[2]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h, kCountVector);
  in.d = d.slot, in.a = x, in.b = y, in.c = seed;
}

void CompileCmp(Builder& b, const Op& op) { CompileCompare(b, op, false); }
void CompileCmps(Builder& b, const Op& op) { CompileCompare(b, op, true); }

constexpr uint8_t kInts32 = kInt8 | kInt16 | kInt32;

}  // namespace

Inst& EmitMasked(Builder& b, const Op& op, Handler h) {
  const uint32_t a = b.Vector(op.operands[0]), m = b.Mask(op.operands.back());
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h, kCountVector);
  in.d = d.slot, in.a = a, in.c = m;
  return in;
}

const OpTable& SimdArithmeticOps() {
  static const OpTable table = {
      {"vadd", kOnVector, &CompileBinary<Add, kInts | kFloats>},
      {"vsub", kOnVector, &CompileBinary<Sub, kInts | kFloats>},
      {"vmul", kOnVector, &CompileBinary<Mul, kInt16 | kInt32 | kFloats>},
      {"vdiv", kOnVector, &CompileDivide},
      {"vmax", kOnVector, &CompileBinary<Maximum, kInts32 | kFloats>},
      {"vmin", kOnVector, &CompileBinary<Minimum, kInts32 | kFloats>},
      {"vand", kOnVector, &CompileBits<And>},
      {"vor", kOnVector, &CompileBits<Or>},
      {"vxor", kOnVector, &CompileBits<Xor>},
      {"vshl", kOnVector, &CompileShift<VectorShl>},
      {"vshr", kOnVector, &CompileShift<Shr>},
      {"vadds", kOnVector, &CompileWithScalar<Add, kInts32 | kFloats>},
      {"vmuls", kOnVector, &CompileWithScalar<Mul, kInt16 | kInt32 | kFloats>},
      {"vmaxs", kOnVector, &CompileWithScalar<Maximum, kInts32 | kFloats>},
      {"vmins", kOnVector, &CompileWithScalar<Minimum, kInts32 | kFloats>},
      {"vlrelu", kOnVector, &CompileFloatScalar<LeakyRelu>},
      {"vprelu", kOnVector, &CompileBinary<LeakyRelu, kHalf | kSingle>},
      {"vshls", kOnVector, &CompileShiftScalar<VectorShl>},
      {"vshrs", kOnVector, &CompileShiftScalar<Shr>},
      {"vabs", kOnVector, &CompileUnary<Abs, kInts32 | kHalf | kSingle | kSignedOnly>},
      {"vneg", kOnVector, &CompileUnary<Neg, kInts32 | kHalf | kSingle | kSignedOnly>},
      {"vrelu", kOnVector, &CompileUnary<Relu, kInt32 | kHalf | kSingle | kSignedOnly>},
      {"vexp", kOnVector, &CompileUnary<Hardware<Exp, Approximation::vexp>, kHalf | kSingle>},
      {"vln", kOnVector, &CompileUnary<Hardware<Log, Approximation::vln>, kHalf | kSingle>},
      {"vsqrt", kOnVector, &CompileUnary<Hardware<Sqrt, Approximation::vsqrt>, kHalf | kSingle>},
      {"vnot", kOnVector, &CompileNot},
      {"vmula", kOnVector, &CompileMula},
      {"vmadd", kOnVector, &CompileMadd},
      {"vaxpy", kOnVector, &CompileAxpy},
      {"vexpdif", kOnVector, &CompileExpDif},
      {"vcmp", kOnVector, &CompileCmp},
      {"vcmps", kOnVector, &CompileCmps},
  };
  return table;
}

}  // namespace pto::engine
