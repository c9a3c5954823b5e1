// What the fixpipe does to one number on its way out of L0C: scale, relu, clip, conversion.
#pragma once

#include <cmath>
#include <limits>

#include "low_precision.h"

namespace pto::engine {

// How a command converts. The names follow the modes: what is read, and what is written.
enum class Quant : uint8_t {
  kNone,          // f32 or s32 as they are
  kCast,          // f32 to f16 or bf16, no scale
  kScaled,        // f32 or s32, scaled, to f32, f16, bf16, e4m3 or hif8
  kScaledHybrid,  // to hif8 with hybrid rounding
  kInteger,       // f32 or s32, scaled and offset, to 8, 16 or 32-bit integers
  kHalfInteger,   // the same by way of f16
};

// A quantisation parameter: bits 31:13 multiplier as an f32 without its low bits, 45:37 offset, 46 signed result.
struct QuantParameter {
  float multiplier = 1;
  int offset = 0;
  bool is_signed = false;

  static QuantParameter Unpack(uint64_t word) {
    QuantParameter p;
    p.multiplier = BitCast<float>(static_cast<uint32_t>(word) & 0xFFFFE000u);
    const int field = static_cast<int>(word >> 37 & 0x1FF);
    p.offset = field >= 256 ? field - 512 : field;
    p.is_signed = (word >> 46 & 1) != 0;
    return p;
  }
};

enum class ReluMode : uint8_t { kNone, kNormal, kScalar, kVector };
enum class StoreSat : uint8_t { kDefault, kOn, kOff, kPreserveNan };

// Scale and relu: negative numbers have a multiplier of their own, 0 or the slope.
inline float ScaleAndRelu(float x, float multiplier, ReluMode relu, float slope) {
  if (x < 0) return relu == ReluMode::kNone ? x * multiplier : relu == ReluMode::kNormal ? 0.0f : x * slope;
  return x * multiplier;
}

// Rounded to nearest even and clamped to [low, high]; NaN is 0.
inline int64_t RoundClamp(double x, int64_t low, int64_t high) {
  if (x != x) return 0;
  const double r = std::nearbyint(x);
  if (r <= static_cast<double>(low)) return low;
  return r >= static_cast<double>(high) ? high : static_cast<int64_t>(r);
}

// 8 bits: clamped to 9 bits, offset, clamped to the result.
inline uint8_t QuantizeByte(float x, const QuantParameter& p) {
  const int64_t t = RoundClamp(x, -256, 255) + p.offset;
  const int64_t low = p.is_signed ? -128 : 0, high = p.is_signed ? 127 : 255;
  return static_cast<uint8_t>(t < low ? low : t > high ? high : t);
}

template <class T>
inline T QuantizeInteger(float x, const QuantParameter& p) {
  constexpr int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const int64_t t = RoundClamp(x, low, high) + p.offset;
  return static_cast<T>(t < low ? low : t > high ? high : t);
}

// To a 16-bit float. Saturating: overflow and infinities become the largest number, NaN becomes 0 unless preserved.
template <class T>
inline T NarrowResult(float x, bool saturate, bool preserve_nan) {
  if (!saturate || (preserve_nan && x != x)) return FromFloat<T>(x);
  return NarrowFloat<T>(static_cast<double>(x), Rounding::kR, true);
}

}  // namespace pto::engine
