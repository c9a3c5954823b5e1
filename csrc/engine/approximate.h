// Functions that the hardware only approximates. Subnormal operands and results count as zero. Apart from that results
// are those of the host's functions, or, when the launch is perturbed, any of those the documented error allows.
#pragma once

#include <algorithm>

#include "arith.h"
#include "splitmix.h"

namespace pto::engine {

constexpr uint8_t kTakesF16 = 1, kTakesF32 = 2;

struct Accuracy {
  const char* op;
  const char* region;
  uint8_t types;
  int ulp;
  const char* source;
  const char* certainty;
};

constexpr Accuracy kAccuracies[] = {
#define PTO_ACCURACY(op, region, types, ulp, source, certainty) {#op, region, types, ulp, source, certainty},
#include "accuracy_table.h"
#undef PTO_ACCURACY
};

// A row of the table.
enum class Approximation : size_t {
#define PTO_ACCURACY(op, region, types, ulp, source, certainty) op,
#include "accuracy_table.h"
#undef PTO_ACCURACY
};

template <class T>
struct FloatLayout;
template <>
struct FloatLayout<float> {
  using Bits = uint32_t;
  static constexpr uint8_t kTakes = kTakesF32;
  static constexpr Bits kSign = 0x80000000u, kSmallestNormal = 0x00800000u, kInfinity = 0x7F800000u;
};
template <>
struct FloatLayout<F16> {
  using Bits = uint16_t;
  static constexpr uint8_t kTakes = kTakesF16;
  static constexpr Bits kSign = 0x8000u, kSmallestNormal = 0x0400u, kInfinity = 0x7C00u;
};
// No approximate function is documented for it.
template <>
struct FloatLayout<BF16> {
  static constexpr uint8_t kTakes = 0;
};

template <class T>
inline T FlushSubnormal(T x) {
  using L = FloatLayout<T>;
  using Bits = typename L::Bits;
  const Bits bits = BitCast<Bits>(x);
  return BitCast<T>(static_cast<Bits>(bits & ((bits & L::kInfinity) ? static_cast<Bits>(~Bits(0)) : L::kSign)));
}

constexpr uint64_t HashOfName(const char* name) {
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (; *name; ++name) h = (h ^ static_cast<unsigned char>(*name)) * UINT64_C(0x100000001B3);
  return h;
}

// One of the floats within `ulp` of `exact`, which `rounded` is the nearest float to. Zero, infinity and NaN stay, and
// a normal number stays one.
template <class T>
T WithinUlp(double exact, T rounded, int ulp, uint64_t hash) {
  using L = FloatLayout<T>;
  using Bits = typename L::Bits;
  const Bits bits = BitCast<Bits>(rounded), sign = bits & L::kSign, magnitude = bits & static_cast<Bits>(~L::kSign);
  if (magnitude < L::kSmallestNormal || magnitude >= L::kInfinity) return rounded;
  const double off = std::fabs(exact) - std::fabs(static_cast<double>(ToFloat(rounded)));
  const int low = off > 0 ? 1 - ulp : -ulp, high = off < 0 ? ulp - 1 : ulp;
  const int64_t moved = int64_t{magnitude} + low + static_cast<int64_t>(hash % static_cast<uint64_t>(high - low + 1));
  return BitCast<T>(static_cast<Bits>(
      sign | static_cast<Bits>(std::clamp<int64_t>(moved, L::kSmallestNormal, int64_t{L::kInfinity} - 1))));
}

// F as the hardware computes it.
template <class F, Approximation kOp>
struct Hardware : F {
  static constexpr Accuracy kRow = kAccuracies[static_cast<size_t>(kOp)];
  template <class T>
  static constexpr bool kListed = (kRow.types & FloatLayout<T>::kTakes) != 0;
  template <class T>
  static constexpr bool kPerturbs = kListed<T> && kRow.ulp > 0;

  template <class T, class... More>
  static T Apply(T a, More... more) {
    if constexpr (kListed<T>) {
      return FlushSubnormal(FromFloat<T>(F::Float(ToFloat(FlushSubnormal(a)), ToFloat(FlushSubnormal(more))...)));
    } else {
      return FromFloat<T>(F::Float(ToFloat(a), ToFloat(more)...));
    }
  }

  // Depends on the operation, the operands and the seed alone.
  template <class T, class... More>
  static T Perturbed(uint64_t seed, T a, More... more) {
    using L = FloatLayout<T>;
    using Bits = typename L::Bits;
    const T plain = Apply(a, more...);
    if ((BitCast<Bits>(plain) & static_cast<Bits>(~L::kSign)) == 0) return plain;
    const double exact = F::Wide(ToFloat(FlushSubnormal(a)), ToFloat(FlushSubnormal(more))...);
    uint64_t hash = Scramble(seed ^ HashOfName(kRow.op));
    for (const T x : {a, more...}) hash = Scramble(hash ^ BitCast<Bits>(FlushSubnormal(x)));
    T rounded;
    if constexpr (std::is_same_v<T, float>) {
      rounded = static_cast<float>(exact);
    } else {
      rounded = T{RoundToHalf(exact, true)};
    }
    const Bits magnitude = BitCast<Bits>(rounded) & static_cast<Bits>(~L::kSign);
    if (magnitude < L::kSmallestNormal || magnitude >= L::kInfinity) return plain;
    return WithinUlp(exact, rounded, kRow.ulp, hash);
  }
};

template <class F, Approximation kOp>
inline constexpr bool kIsHardware<Hardware<F, kOp>> = true;

// Whether a perturbed launch changes what F gives for elements of this type.
template <class F, class T>
constexpr bool Perturbs() {
  if constexpr (kIsHardware<F> && kIsFloat<T>) {
    return F::template kPerturbs<T>;
  } else {
    return false;
  }
}

}  // namespace pto::engine
