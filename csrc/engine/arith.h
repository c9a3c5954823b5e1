// Element arithmetic shared by the scalar, SIMT and SIMD handlers. Integers wrap; f16 and bf16 compute in f32 and round
// once to nearest even.
#pragma once

#include <cmath>
#include <limits>

#include "float16.h"

namespace pto::engine {

template <class T>
using Wrap = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// F is an approximate function of the hardware (approximate.h).
template <class F>
inline constexpr bool kIsHardware = false;

template <class F, class T>
inline T Apply1(T a) {
  if constexpr (kIsHardware<F> && kIsFloat<T>) {
    return F::Apply(a);
  } else if constexpr (kIsFloat<T>) {
    return FromFloat<T>(F::Float(ToFloat(a)));
  } else {
    return F::Int(a);
  }
}

template <class F, class T>
inline T Apply2(T a, T b) {
  if constexpr (kIsHardware<F> && kIsFloat<T>) {
    return F::Apply(a, b);
  } else if constexpr (kIsFloat<T>) {
    return FromFloat<T>(F::Float(ToFloat(a), ToFloat(b)));
  } else {
    return F::Int(a, b);
  }
}

struct Add {
  static float Float(float a, float b) { return a + b; }
  template <class T>
  static T Int(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
  }
};
struct Sub {
  static float Float(float a, float b) { return a - b; }
  template <class T>
  static T Int(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
  }
};
struct Mul {
  static float Float(float a, float b) { return a * b; }
  template <class T>
  static T Int(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
  }
};

// Integer division: callers refuse a zero divisor first; here it only must not trap.
struct Div {
  static float Float(float a, float b) { return a / b; }
  static double Wide(double a, double b) { return a / b; }
  template <class T>
  static T Int(T a, T b) {
    if (b == 0) return 0;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(Wrap<T>(0) - static_cast<Wrap<T>>(a));
    return static_cast<T>(a / b);
  }
};
struct FloorDiv {
  static float Float(float a, float b) { return std::floor(a / b); }
  template <class T>
  static T Int(T a, T b) {
    const T q = Div::Int(a, b);
    if constexpr (std::is_signed_v<T>) {
      if (b != 0 && b != static_cast<T>(-1) && a % b != 0 && ((a < 0) != (b < 0))) return static_cast<T>(q - 1);
    }
    return q;
  }
};
struct Rem {
  static float Float(float a, float b) { return std::fmod(a, b); }
  template <class T>
  static T Int(T a, T b) {
    if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
    return static_cast<T>(a % b);
  }
};

struct And {
  template <class T>
  static T Int(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T Int(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T Int(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// Shift amounts count as unsigned; one of at least the width shifts everything out.
struct Shl {
  template <class T>
  static T Int(T a, T b) {
    using U = std::make_unsigned_t<T>;
    const U n = static_cast<U>(b);
    return n >= sizeof(T) * 8 ? T(0) : static_cast<T>(static_cast<Wrap<T>>(a) << n);
  }
};
struct Shr {
  template <class T>
  static T Int(T a, T b) {
    using U = std::make_unsigned_t<T>;
    U n = static_cast<U>(b);
    if (std::is_signed_v<T>) return static_cast<T>(a >> (n >= sizeof(T) * 8 ? sizeof(T) * 8 - 1 : n));
    return n >= sizeof(T) * 8 ? T(0) : static_cast<T>(a >> n);
  }
};

inline float WithSignAnd(float a, float b) { return BitCast<float>(BitCast<uint32_t>(a) & BitCast<uint32_t>(b)); }
inline float WithSignOr(float a, float b) { return BitCast<float>(BitCast<uint32_t>(a) | BitCast<uint32_t>(b)); }

// NaN propagates; +0 is greater than -0.
struct Maximum {
  static float Float(float a, float b) {
    const float m = a > b ? a : b;
    const float z = a == b ? WithSignAnd(a, b) : m;
    const float r = a != a ? a : z;
    return b != b ? b : r;
  }
  template <class T>
  static T Int(T a, T b) {
    return a > b ? a : b;
  }
};
struct Minimum {
  static float Float(float a, float b) {
    const float m = a < b ? a : b;
    const float z = a == b ? WithSignOr(a, b) : m;
    const float r = a != a ? a : z;
    return b != b ? b : r;
  }
  template <class T>
  static T Int(T a, T b) {
    return a < b ? a : b;
  }
};
// A number wins over NaN.
struct Max {
  static float Float(float a, float b) {
    const float m = a > b ? a : b;
    const float z = a == b ? WithSignAnd(a, b) : m;
    const float r = a != a ? b : z;
    return b != b ? a : r;
  }
  template <class T>
  static T Int(T a, T b) {
    return a > b ? a : b;
  }
};
struct Min {
  static float Float(float a, float b) {
    const float m = a < b ? a : b;
    const float z = a == b ? WithSignOr(a, b) : m;
    const float r = a != a ? b : z;
    return b != b ? a : r;
  }
  template <class T>
  static T Int(T a, T b) {
    return a < b ? a : b;
  }
};
struct Pow {
  static float Float(float a, float b) { return std::pow(a, b); }
};

struct Neg {
  static float Float(float a) { return BitCast<float>(BitCast<uint32_t>(a) ^ 0x80000000u); }
  template <class T>
  static T Int(T a) {
    return static_cast<T>(Wrap<T>(0) - static_cast<Wrap<T>>(a));
  }
};
struct Abs {
  static float Float(float a) { return BitCast<float>(BitCast<uint32_t>(a) & 0x7FFFFFFFu); }
  template <class T>
  static T Int(T a) {
    return a < 0 ? Neg::Int(a) : a;
  }
};
struct Exp {
  static float Float(float a) { return std::exp(a); }
  static double Wide(double a) { return std::exp(a); }
};
struct Log {
  static float Float(float a) { return std::log(a); }
  static double Wide(double a) { return std::log(a); }
};
struct Sqrt {
  static float Float(float a) { return std::sqrt(a); }
  static double Wide(double a) { return std::sqrt(a); }
};
struct Sin {
  static float Float(float a) { return std::sin(a); }
};
struct Cos {
  static float Float(float a) { return std::cos(a); }
};
struct Floor {
  static float Float(float a) { return std::floor(a); }
};
struct Ceil {
  static float Float(float a) { return std::ceil(a); }
};
struct Rint {
  static float Float(float a) { return std::nearbyint(a); }
};
struct RoundAway {
  static float Float(float a) { return std::round(a); }
};
struct Relu {
  // NaN stays NaN, -0 becomes +0.
  static float Float(float a) { return a > 0 ? a : (a != a ? a : 0.0f); }
  template <class T>
  static T Int(T a) {
    return a > 0 ? a : T(0);
  }
};
// The sign bit decides, so -0 is multiplied and NaN keeps its own way.
struct LeakyRelu {
  static float Float(float a, float alpha) { return BitCast<uint32_t>(a) >> 31 ? a * alpha : a; }
};
struct Not {
  template <class T>
  static T Int(T a) {
    return static_cast<T>(~a);
  }
};

// The sum as a double that rounds to fewer digits as the exact sum does: where it is not exact its last bit is 1.
inline double SumRoundedToOdd(double a, double b) {
  const double sum = a + b, part = sum - a;
  const double lost = (a - (sum - part)) + (b - part);
  const int64_t bits = BitCast<int64_t>(sum);
  const int64_t step = (lost > 0) == (sum > 0) ? 1 : -1;
  return BitCast<double>(bits + ((lost > 0 || lost < 0) && (bits & 1) == 0 ? step : 0));
}

// a * b + c, rounded once.
template <class T>
inline T MultiplyAdd(T a, T b, T c) {
  if constexpr (std::is_same_v<T, float>) {
    return std::fma(a, b, c);
  } else if constexpr (kIsFloat<T>) {
    const double product = static_cast<double>(ToFloat(a)) * ToFloat(b);  // exact
    return T{RoundToHalf(SumRoundedToOdd(product, ToFloat(c)), std::is_same_v<T, F16>)};
  } else {
    return Add::Int(Mul::Int(a, b), c);
  }
}

struct Eq {
  template <class T>
  static bool Do(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <class T>
  static bool Do(T a, T b) {
    return a != b;
  }
};
struct Lt {
  template <class T>
  static bool Do(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  static bool Do(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  static bool Do(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <class T>
  static bool Do(T a, T b) {
    return a >= b;
  }
};

template <class F, class T>
inline bool Compare(T a, T b) {
  if constexpr (kIsFloat<T>) {
    return F::Do(ToFloat(a), ToFloat(b));
  } else {
    return F::Do(a, b);
  }
}

}  // namespace pto::engine
