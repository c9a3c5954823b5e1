// Numeric conversions with explicit rounding and saturation, shared by `cast` and `vcvt`.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "float16.h"

namespace pto::engine {

// Nearest even, nearest away, down, up, toward zero, odd.
enum class Rounding : uint8_t { kR, kA, kF, kC, kZ, kO };

// False for an unknown or unsupported word. Takes the letters and the long names.
inline bool ParseRounding(const std::string& word, Rounding* r) {
  static const struct {
    const char *letter, *name;
    Rounding value;
  } kWords[] = {{"r", "to_nearest_even", Rounding::kR}, {"a", "to_nearest_away", Rounding::kA},
                {"f", "downward", Rounding::kF},        {"c", "upward", Rounding::kC},
                {"z", "toward_zero", Rounding::kZ},     {"o", "to_odd", Rounding::kO}};
  std::string lower;
  for (char ch : word) lower += static_cast<char>(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
  for (const auto& w : kWords) {
    if (lower == w.letter || lower == w.name) {
      *r = w.value;
      return true;
    }
  }
  return false;
}

inline double RoundIntegral(double x, Rounding r) {
  switch (r) {
    case Rounding::kR:
      return std::nearbyint(x);
    case Rounding::kA:
      return std::round(x);
    case Rounding::kF:
      return std::floor(x);
    case Rounding::kC:
      return std::ceil(x);
    case Rounding::kZ:
      return std::trunc(x);
    case Rounding::kO: {
      const double t = std::trunc(x);
      if (t == x || std::fmod(t, 2.0) != 0) return t;
      return t + (std::signbit(x) ? -1.0 : 1.0);
    }
  }
  return x;
}

// Saturating: clamp, NaN is 0. Otherwise the integral value's low bits; infinities still clamp.
template <class D>
inline D FloatToInt(double x, Rounding r, bool saturate) {
  if (x != x) return 0;
  const double v = RoundIntegral(x, r);
  constexpr D lo = std::numeric_limits<D>::min(), hi = std::numeric_limits<D>::max();
  const double below = static_cast<double>(lo), above = std::ldexp(1.0, std::numeric_limits<D>::digits);
  if (v >= below && v < above) return static_cast<D>(v);
  if (saturate || std::isinf(v)) return v < 0 ? lo : hi;
  const double m = std::fmod(v, 0x1p64);
  const uint64_t magnitude = static_cast<uint64_t>(std::fabs(m));
  return static_cast<D>(m < 0 ? UINT64_C(0) - magnitude : magnitude);
}

template <class D>
struct FloatFormat;
template <>
struct FloatFormat<float> {
  static constexpr int kPrecision = 24, kMinExponent = -126;
  static double Max() { return std::numeric_limits<float>::max(); }
};
template <>
struct FloatFormat<F16> {
  static constexpr int kPrecision = 11, kMinExponent = -14;
  static double Max() { return 65504.0; }
};
template <>
struct FloatFormat<BF16> {
  static constexpr int kPrecision = 8, kMinExponent = -126;
  static double Max() { return 0x1.FEp127; }
};

// x is exact. Saturating: overflow and infinities become the largest finite value, NaN becomes 0.
template <class D>
inline D NarrowFloat(double x, Rounding r, bool saturate) {
  using F = FloatFormat<D>;
  if (x != x) return saturate ? FromFloat<D>(0.0f) : FromFloat<D>(static_cast<float>(x));
  if (x == 0) return FromFloat<D>(static_cast<float>(x));
  const double inf = std::numeric_limits<double>::infinity();
  double y = x;
  if (!std::isinf(x)) {
    const int e = std::max(std::ilogb(x), F::kMinExponent) - (F::kPrecision - 1);
    y = std::ldexp(RoundIntegral(std::ldexp(x, -e), r), e);
    if (std::fabs(y) > F::Max()) {
      const bool down = y > 0 ? r == Rounding::kF : r == Rounding::kC;
      y = std::copysign(r == Rounding::kZ || r == Rounding::kO || down ? F::Max() : inf, y);
    }
  }
  if (saturate && std::isinf(y)) y = std::copysign(F::Max(), y);
  if (y == 0) y = std::copysign(0.0, x);
  return FromFloat<D>(static_cast<float>(y));
}

template <class D, class S>
inline D ClampInt(S x) {
  const bool low =
      std::is_signed_v<S> && x < 0 &&
      (std::is_unsigned_v<D> || static_cast<int64_t>(x) < static_cast<int64_t>(std::numeric_limits<D>::min()));
  if (low) return std::numeric_limits<D>::min();
  const bool high = (std::is_unsigned_v<S> || x > 0) &&
                    static_cast<uint64_t>(x) > static_cast<uint64_t>(std::numeric_limits<D>::max());
  return high ? std::numeric_limits<D>::max() : static_cast<D>(x);
}

// Any number to any number.
template <class D, class S>
inline D ConvertNumber(S x, Rounding r, bool saturate) {
  if constexpr (kIsFloat<S>) {
    if constexpr (kIsFloat<D>) {
      if constexpr (std::is_same_v<D, float>) {
        return ToFloat(x);
      } else {
        if (r == Rounding::kR && !saturate) return FromFloat<D>(ToFloat(x));
        return NarrowFloat<D>(static_cast<double>(ToFloat(x)), r, saturate);
      }
    } else {
      return FloatToInt<D>(static_cast<double>(ToFloat(x)), r, saturate);
    }
  } else if constexpr (kIsFloat<D>) {
    if constexpr (std::is_same_v<D, float>) {
      if (r == Rounding::kR) return static_cast<float>(x);
    }
    if constexpr (sizeof(S) < 8) {
      return NarrowFloat<D>(static_cast<double>(x), r, saturate);
    } else {
      // 64 bits do not fit a double: keep the top bits and a sticky bit, which rounds the same.
      const bool negative = std::is_signed_v<S> && x < 0;
      uint64_t m = negative ? UINT64_C(0) - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
      int shift = 0;
      while (m >> 50) m = (m >> 1) | (m & 1), ++shift;
      const double v = std::ldexp(static_cast<double>(m), shift);
      return NarrowFloat<D>(negative ? -v : v, r, saturate);
    }
  } else {
    return saturate ? ClampInt<D>(x) : static_cast<D>(x);
  }
}

}  // namespace pto::engine
