// Reductions over a register (vc*), over its 32-byte groups (vcg*) and over pairs of lanes (vcpadd).
#include <limits>

#include "arith.h"
#include "clones.h"
#include "dispatch.h"
#include "simd.h"

namespace pto::engine {
namespace {

// Sums are trees over neighbours; every level is rounded to the element type.
template <class T, class R, int kCount>
R TreeSum(R* v) {
  for (int n = kCount / 2; n >= 1; n /= 2) {
    for (int i = 0; i < n; ++i) v[i] = Apply2<Add>(v[2 * i], v[2 * i + 1]);
  }
  return v[0];
}

template <class T>
T Neutral(bool max) {
  if constexpr (kIsFloat<T>) {
    const float inf = std::numeric_limits<float>::infinity();
    return FromFloat<T>(max ? -inf : inf);
  } else {
    return max ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  }
}

// The register with inactive lanes replaced.
template <class T, class R>
void Gather(const T* a, const uint64_t* m, R fill, R* out) {
  if (AllActive<sizeof(T)>(m)) {
    for (int i = 0; i < kLanes<T>; ++i) {
      if constexpr (kIsFloat<T>)
        out[i] = a[i];
      else
        out[i] = static_cast<R>(a[i]);
    }
    return;
  }
  for (int i = 0; i < kLanes<T>; ++i) {
    if constexpr (kIsFloat<T>)
      out[i] = LaneActive<sizeof(T)>(m, i) ? a[i] : fill;
    else
      out[i] = LaneActive<sizeof(T)>(m, i) ? static_cast<R>(a[i]) : fill;
  }
}

// T elements, sums in R (wider for 16-bit integers).
template <class T, class R>
PTO_CLONES const Inst* FullAdd(Context& c, const Inst* in) {
  R v[kLanes<T>];
  Gather(c.V<T>(in->a), c.M(in->c), R{}, v);
  const R sum = TreeSum<T, R, kLanes<T>>(v);
  std::memset(c.v + in->d, 0, 256);
  c.V<R>(in->d)[0] = sum;
  return in + 1;
}

template <class T, class R>
PTO_CLONES const Inst* GroupAdd(Context& c, const Inst* in) {
  constexpr int kGroup = static_cast<int>(32 / sizeof(T));
  R v[kLanes<T>];
  Gather(c.V<T>(in->a), c.M(in->c), R{}, v);
  std::memset(c.v + in->d, 0, 256);
  R* d = c.V<R>(in->d);
  for (int g = 0; g < 8; ++g) d[g] = TreeSum<T, R, kGroup>(v + g * kGroup);
  return in + 1;
}

// Lane i: the sum of lanes 2i and 2i+1.
template <class T>
PTO_CLONES const Inst* PairAdd(Context& c, const Inst* in) {
  T v[kLanes<T>];
  Gather(c.V<T>(in->a), c.M(in->c), T{}, v);
  T* d = c.V<T>(in->d);
  std::memset(d, 0, 256);
  for (int i = 0; i < kLanes<T> / 2; ++i) d[i] = Apply2<Add>(v[2 * i], v[2 * i + 1]);
  return in + 1;
}

// Lane 0: the value, lane 1: index of its first occurrence (of the first NaN if there is one).
template <class F, class T>
PTO_CLONES const Inst* FullExtreme(Context& c, const Inst* in) {
  using U = std::conditional_t<sizeof(T) == 1, uint8_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>>;
  T v[kLanes<T>];
  const uint64_t* m = c.M(in->c);
  Gather(c.V<T>(in->a), m, Neutral<T>(std::is_same_v<F, Maximum>), v);
  T best = v[0];
  for (int i = 1; i < kLanes<T>; ++i) best = Apply2<F>(best, v[i]);
  int index = 0;
  bool nan = false;
  if constexpr (kIsFloat<T>) nan = ToFloat(best) != ToFloat(best);
  for (int i = 0; i < kLanes<T>; ++i) {
    if (!LaneActive<sizeof(T)>(m, i)) continue;
    bool hit = BitCast<U>(v[i]) == BitCast<U>(best);
    if constexpr (kIsFloat<T>) hit = nan ? ToFloat(v[i]) != ToFloat(v[i]) : hit;
    if (hit) {
      index = i;
      break;
    }
  }
  std::memset(c.v + in->d, 0, 256);
  c.V<T>(in->d)[0] = best;
  c.V<U>(in->d)[1] = static_cast<U>(index);
  return in + 1;
}

template <class F, class T>
PTO_CLONES const Inst* GroupExtreme(Context& c, const Inst* in) {
  constexpr int kGroup = static_cast<int>(32 / sizeof(T));
  T v[kLanes<T>];
  Gather(c.V<T>(in->a), c.M(in->c), Neutral<T>(std::is_same_v<F, Maximum>), v);
  std::memset(c.v + in->d, 0, 256);
  for (int g = 0; g < 8; ++g) {
    T best = v[g * kGroup];
    for (int i = 1; i < kGroup; ++i) best = Apply2<F>(best, v[g * kGroup + i]);
    c.V<T>(in->d)[g] = best;
  }
  return in + 1;
}

DType Check(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectVector(op.operands[0]);
  b.ExpectVector(op.results[0]);
  const DType t = b.Type(op.operands[0]).dtype;
  b.ExpectMask(op.operands[1], ByteSize(t));
  const int n = ByteSize(t);
  b.Expect((n == 2 || n == 4) && t != DType::kBF16, std::string("elements of type ") + Name(t) + " are not supported");
  return t;
}

template <bool kGroup>
void CompileAdd(Builder& b, const Op& op) {
  const DType t = Check(b, op);
  DType sum = t;
  if (t == DType::kI16) sum = DType::kI32;
  if (t == DType::kU16) sum = DType::kU32;
  const DType result = b.Type(op.results[0]).dtype;
  b.Expect(result == sum || (IsInteger(result) && Signless(result) == Signless(sum)),
           std::string("the result has elements of type ") + Name(sum));
  Handler h = nullptr;
  switch (t) {
    case DType::kI16:
      h = kGroup ? &GroupAdd<int16_t, int32_t> : &FullAdd<int16_t, int32_t>;
      break;
    case DType::kU16:
      h = kGroup ? &GroupAdd<uint16_t, uint32_t> : &FullAdd<uint16_t, uint32_t>;
      break;
    case DType::kI32:
    case DType::kU32:
      h = kGroup ? &GroupAdd<uint32_t, uint32_t> : &FullAdd<uint32_t, uint32_t>;
      break;
    case DType::kF16:
      h = kGroup ? &GroupAdd<F16, F16> : &FullAdd<F16, F16>;
      break;
    case DType::kF32:
      h = kGroup ? &GroupAdd<float, float> : &FullAdd<float, float>;
      break;
    default:
      break;
  }
  EmitMasked(b, op, h);
}

void CompilePairAdd(Builder& b, const Op& op) {
  const DType t = Check(b, op);
  b.ExpectSame(op.operands[0], op.results[0]);
  EmitMasked(b, op,
             t == DType::kF16   ? &PairAdd<F16>
             : t == DType::kF32 ? &PairAdd<float>
                                : static_cast<Handler>(nullptr));
}

template <class F, bool kGroup>
void CompileExtreme(Builder& b, const Op& op) {
  const DType t = Check(b, op);
  b.ExpectSame(op.operands[0], op.results[0]);
  EmitMasked(b, op, ForNumber(t, [](auto tag) -> Handler {
               using T = typename decltype(tag)::Type;
               if constexpr (sizeof(T) == 8)
                 return nullptr;
               else
                 return kGroup ? &GroupExtreme<F, T> : &FullExtreme<F, T>;
             }));
}

}  // namespace

const OpTable& SimdReduceOps() {
  static const OpTable table = {
      {"vcadd", kOnVector, &CompileAdd<false>},
      {"vcmax", kOnVector, &CompileExtreme<Maximum, false>},
      {"vcmin", kOnVector, &CompileExtreme<Minimum, false>},
      {"vcgadd", kOnVector, &CompileAdd<true>},
      {"vcgmax", kOnVector, &CompileExtreme<Maximum, true>},
      {"vcpadd", kOnVector, &CompilePairAdd},
      {"vcgmin", kOnVector, &CompileExtreme<Minimum, true>},
  };
  return table;
}

}  // namespace pto::engine
