// Storage-only formats of 8 and 4 bits: e4m3, e5m2, HiF8, e8m0, e2m1, e1m2. Decoding is exact; encoding starts from a
// value that f32 holds.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "convert.h"

namespace pto::engine {

// --- e4m3 (without infinities) and e5m2 ---

// kNan: the code of NaN; codes from kOverflow on are not finite.
struct E4M3 {
  static constexpr int kMantissa = 3, kBias = 7;
  static constexpr uint8_t kMax = 0x7E, kOverflow = 0x7F, kNan = 0x7F;
};
struct E5M2 {
  static constexpr int kMantissa = 2, kBias = 15;
  static constexpr uint8_t kMax = 0x7B, kOverflow = 0x7C, kNan = 0x7E;
};

template <class F>
inline float DecodeFloat8(uint8_t code) {
  const uint8_t magnitude = code & 0x7F;
  float x;
  if (magnitude > F::kMax) {
    const bool infinite = F::kOverflow != F::kNan && magnitude == F::kOverflow;
    x = infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  } else {
    const int exponent = magnitude >> F::kMantissa, mantissa = magnitude & ((1 << F::kMantissa) - 1);
    x = std::ldexp(static_cast<float>(exponent ? (1 << F::kMantissa) + mantissa : mantissa),
                   (exponent ? exponent : 1) - F::kBias - F::kMantissa);
  }
  return code & 0x80 ? -x : x;
}

// To nearest even. Saturating: overflow and infinities become the largest finite value and NaN becomes 0. No branches,
// so that loops become vector code.
template <class F>
inline uint32_t EncodeFloat8(float x, bool saturate) {
  constexpr int kShift = 23 - F::kMantissa;
  const uint32_t w = BitCast<uint32_t>(x), magnitude = w & 0x7FFFFFFFu, sign = w >> 24 & 0x80u;
  // Codes of one sign are the integers in order, so a rounding that carries goes to the next exponent by itself.
  const uint32_t nearest = (magnitude + ((1u << (kShift - 1)) - 1) + (magnitude >> kShift & 1)) >> kShift;
  const uint32_t normal = nearest - ((127u - F::kBias) << F::kMantissa);
  // Below the normal numbers: adding a number whose last bit is one step rounds there.
  constexpr uint32_t kStep = (127u + 24 - F::kBias - F::kMantissa) << 23;
  const uint32_t subnormal = BitCast<uint32_t>(BitCast<float>(magnitude) + BitCast<float>(kStep)) - kStep;
  const uint32_t code = magnitude < ((128u - F::kBias) << 23) ? subnormal : normal;
  const uint32_t finite = code > F::kMax ? (saturate ? F::kMax : F::kOverflow) : code;
  const uint32_t nan = saturate ? 0 : sign | F::kNan;
  return magnitude > 0x7F800000u ? nan : sign | finite;
}

// --- HiF8: a prefix tells how many bits the exponent has, the rest is mantissa ---

constexpr uint8_t kHif8Nan = 0x80, kHif8Inf = 0x6F, kHif8Max = 0x6E;

inline float DecodeHif8(uint8_t code) {
  if (code == kHif8Nan) return std::numeric_limits<float>::quiet_NaN();
  const int m = code & 0x7F;
  float x;
  if (m == kHif8Inf) {
    x = std::numeric_limits<float>::infinity();
  } else if (m < 8) {
    x = m == 0 ? 0.0f : std::ldexp(1.0f, m - 23);
  } else if (m < 16) {
    x = 1.0f + static_cast<float>(m & 7) / 8.0f;
  } else {
    // Bits of the exponent field: its sign, then the magnitude without its leading one.
    const int digits = m >= 0x60 ? 4 : m >= 0x40 ? 3 : m >= 0x20 ? 2 : 1;
    const int mantissa_bits = digits == 4 ? 1 : digits == 3 ? 2 : 3;
    const int field = m >> mantissa_bits & ((1 << digits) - 1);
    const int magnitude = 1 << (digits - 1) | (field & ((1 << (digits - 1)) - 1));
    const int exponent = field >> (digits - 1) ? -magnitude : magnitude;
    const int fraction = m & ((1 << mantissa_bits) - 1);
    x = std::ldexp(static_cast<float>((1 << mantissa_bits) + fraction), exponent - mantissa_bits);
  }
  return code & 0x80 ? -x : x;
}

// Code of 2^e * (1 + mantissa / 2^bits) where the value exists.
inline uint8_t Hif8Code(int e, int mantissa) {
  if (e < -15) return static_cast<uint8_t>(e + 23);
  const int magnitude = e < 0 ? -e : e;
  if (magnitude == 0) return static_cast<uint8_t>(0x08 | mantissa);
  const int digits = magnitude >= 8 ? 4 : magnitude >= 4 ? 3 : magnitude >= 2 ? 2 : 1;
  const int mantissa_bits = digits == 4 ? 1 : digits == 3 ? 2 : 3;
  const int field = (e < 0 ? 1 << (digits - 1) : 0) | (magnitude & ((1 << (digits - 1)) - 1));
  const int prefix = digits == 4 ? 0x60 : digits == 3 ? 0x40 : digits == 2 ? 0x20 : 0x10;
  return static_cast<uint8_t>(prefix | field << mantissa_bits | mantissa);
}

// A number 2^e * (1 + mantissa / 2^kBits), to nearest with ties away from zero or hybrid: outside the middle exponents
// the dropped fraction (its first kFraction bits) is compared with a threshold taken from the source's own low bits.
// A number that HiF8 holds exactly stays as it is under either rule.
template <int kBits, int kFraction>
inline uint8_t RoundHif8(int e, uint32_t mantissa, uint32_t threshold, bool hybrid, uint8_t sign, bool saturate) {
  const uint8_t over = sign | (saturate ? kHif8Max : kHif8Inf);
  if (e > 15) return over;
  if (e < -23) return 0;
  if (e == -23) {
    // Half of the least number and more.
    const uint32_t fraction = (mantissa | 1u << kBits) >> (kBits + 1 - kFraction);
    const bool up = !hybrid || fraction >= threshold;
    return up ? sign | 1 : 0;
  }
  const int magnitude = e < 0 ? -e : e;
  const int kept = magnitude <= 3 ? 3 : magnitude <= 7 ? 2 : magnitude <= 15 ? 1 : 0;
  const int dropped = kBits - kept;
  uint32_t m = mantissa >> dropped;
  const uint32_t rest = mantissa & ((1u << dropped) - 1);
  bool up;
  if (hybrid && magnitude > 3) {
    up = rest != 0 && rest >> (dropped - kFraction) >= threshold;
  } else {
    up = rest >> (dropped - 1) != 0;
  }
  if (up && ++m >> kept) m = 0, ++e;
  if (e > 15 || (e == 15 && m != 0)) return over;
  return sign | Hif8Code(e, static_cast<int>(m));
}

inline uint8_t EncodeHif8(float x, bool hybrid, bool saturate) {
  const uint32_t w = BitCast<uint32_t>(x), mantissa = w & 0x7FFFFF;
  const int field = static_cast<int>(w >> 23 & 0xFF);
  const uint8_t sign = w >> 31 ? 0x80 : 0;
  if (x != x) return saturate ? 0 : kHif8Nan;
  return RoundHif8<23, 14>(field - 127, mantissa, mantissa & 0x3FFF, hybrid, sign, saturate);
}

inline uint8_t EncodeHif8(F16 x, bool hybrid, bool saturate) {
  uint32_t mantissa = x.bits & 0x3FF;
  int e = static_cast<int>(x.bits >> 10 & 0x1F) - 15;
  const uint8_t sign = x.bits >> 15 ? 0x80 : 0;
  if (e == 16 && mantissa) return saturate ? 0 : kHif8Nan;
  const uint32_t threshold = (mantissa & 1) << 1 | (mantissa >> 1 & 1);
  if (e == -15) {
    if (mantissa == 0) return 0;
    e = -14;
    while (!(mantissa & 0x400)) mantissa <<= 1, --e;
    mantissa &= 0x3FF;
  }
  return RoundHif8<10, 2>(e, mantissa, threshold, hybrid, sign, saturate);
}

// --- e8m0: a power of two ---

inline BF16 DecodeE8M0(uint8_t code) {
  if (code == 0xFF) return {0x7FC0};
  return {static_cast<uint16_t>(code ? code << 7 : 0x40)};
}

// Keeps the exponent field; infinity is the largest power.
inline uint8_t EncodeE8M0(BF16 x, bool saturate) {
  const uint8_t field = static_cast<uint8_t>(x.bits >> 7);
  if (field != 0xFF) return field;
  if (x.bits & 0x7F) return saturate ? 0 : 0xFF;
  return 0xFE;
}

// --- 4 bits: e2m1 and e1m2, both without infinities and NaN ---

struct E2M1 {
  static float Decode(int code) {
    static const float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    return code & 8 ? -kValues[code & 7] : kValues[code & 7];
  }
  static double Step(double magnitude) { return magnitude < 2 ? 0.5 : magnitude < 4 ? 1 : 2; }
  static constexpr double kMax = 6;
  static int Code(double magnitude) {
    return static_cast<int>(magnitude < 2 ? magnitude * 2 : magnitude < 4 ? magnitude + 2 : magnitude / 2 + 4);
  }
};
struct E1M2 {
  static float Decode(int code) {
    const float magnitude = static_cast<float>(code & 7) / 4.0f;
    return code & 8 ? -magnitude : magnitude;
  }
  static double Step(double) { return 0.25; }
  static constexpr double kMax = 1.75;
  static int Code(double magnitude) { return static_cast<int>(magnitude * 4); }
};

// Too large numbers become the largest one, NaN becomes 0.
template <class F>
inline int EncodeFloat4(float x, Rounding r) {
  if (x != x) return 0;
  const int sign = std::signbit(x) ? 8 : 0;
  const double magnitude = std::fabs(static_cast<double>(x));
  if (magnitude >= F::kMax) return sign | F::Code(F::kMax);
  const double step = F::Step(magnitude);
  const double y = std::fabs(RoundIntegral(static_cast<double>(x) / step, r)) * step;
  return sign | F::Code(y);
}

}  // namespace pto::engine
