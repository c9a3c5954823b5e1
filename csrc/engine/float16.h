// Half precision and bfloat16 as storage types, with branch-free conversions that the compiler can vectorise.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace pto::engine {

template <class To, class From>
inline To BitCast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

inline float ToFloat(float x) { return x; }

inline float ToFloat(BF16 x) { return BitCast<float>(static_cast<uint32_t>(x.bits) << 16); }

inline float ToFloat(F16 x) {
  const uint32_t w = static_cast<uint32_t>(x.bits) << 16;
  const uint32_t sign = w & 0x80000000u;
  const uint32_t two_w = w + w;
  // Normal, inf and NaN: move the exponent to the top of the f32 range, then scale down.
  const float normal = BitCast<float>((two_w >> 4) + (0xE0u << 23)) * 0x1.0p-112f;
  // Subnormal: place the mantissa below 0.5 and subtract 0.5 again, both exact.
  const float subnormal = BitCast<float>((two_w >> 17) | (126u << 23)) - 0.5f;
  const uint32_t magnitude = two_w < (1u << 27) ? BitCast<uint32_t>(subnormal) : BitCast<uint32_t>(normal);
  return BitCast<float>(sign | magnitude);
}

template <class T>
T FromFloat(float x);

template <>
inline float FromFloat<float>(float x) {
  return x;
}

// Round to nearest even; NaN stays NaN (quieted).
template <>
inline BF16 FromFloat<BF16>(float x) {
  const uint32_t w = BitCast<uint32_t>(x);
  const uint32_t rounded = (w + 0x7FFFu + ((w >> 16) & 1u)) >> 16;
  const uint32_t quiet = (w >> 16) | 0x40u;
  return {static_cast<uint16_t>((w & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded)};
}

template <>
inline F16 FromFloat<F16>(float x) {
  const uint32_t w = BitCast<uint32_t>(x);
  const uint32_t two_w = w + w;
  const uint32_t sign = w & 0x80000000u;
  // The scaling makes too large values inf; adding a power of two chosen by the exponent rounds at bit 10.
  float base = (BitCast<float>(w & 0x7FFFFFFFu) * 0x1.0p+112f) * 0x1.0p-110f;
  uint32_t bias = two_w & 0xFF000000u;
  bias = bias < 0x71000000u ? 0x71000000u : bias;
  base = BitCast<float>((bias >> 1) + 0x07800000u) + base;
  const uint32_t bits = BitCast<uint32_t>(base);
  const uint32_t finite = ((bits >> 13) & 0x7C00u) + (bits & 0x0FFFu);
  const uint32_t nan = 0x7E00u | ((w >> 13) & 0x1FFu);
  return {static_cast<uint16_t>((sign >> 16) | (two_w > 0xFF000000u ? nan : finite))};
}

// A double rounded once to half precision or bfloat16: the step through f32 rounds to odd, which keeps what the second
// rounding needs.
inline uint16_t RoundToHalf(double x, bool f16) {
  float f = static_cast<float>(x);
  if (static_cast<double>(f) != x && x == x) {
    uint32_t w = BitCast<uint32_t>(f);
    if (std::fabs(static_cast<double>(f)) > std::fabs(x)) --w;
    f = BitCast<float>(w | 1u);
  }
  return f16 ? FromFloat<F16>(f).bits : FromFloat<BF16>(f).bits;
}

template <class T>
inline constexpr bool kIsFloat = std::is_same_v<T, float> || std::is_same_v<T, F16> || std::is_same_v<T, BF16>;

// Type in which arithmetic on T is done: float for every float type, unsigned of at least 32 bits for integers that
// must wrap.
template <class T>
using WrapType = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

}  // namespace pto::engine
