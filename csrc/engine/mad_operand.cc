#include "mad_operand.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "fractal.h"
#include "low_precision.h"

namespace pto::engine {
namespace {

template <class F>
std::array<float, 256> Table(F decode) {
  std::array<float, 256> t;
  for (int i = 0; i < 256; ++i) t[static_cast<size_t>(i)] = decode(static_cast<uint8_t>(i));
  return t;
}

const float* ByteTable(DType type) {
  static const auto e4m3 = Table([](uint8_t c) { return DecodeFloat8<E4M3>(c); });
  static const auto e5m2 = Table([](uint8_t c) { return DecodeFloat8<E5M2>(c); });
  static const auto hif8 = Table([](uint8_t c) { return DecodeHif8(c); });
  static const auto s8 = Table([](uint8_t c) { return static_cast<float>(static_cast<int8_t>(c)); });
  static const auto e2m1 = Table([](uint8_t c) { return E2M1::Decode(c & 0xF); });
  static const auto e1m2 = Table([](uint8_t c) { return E1M2::Decode(c & 0xF); });
  switch (type) {
    case DType::kF8E4M3:
      return e4m3.data();
    case DType::kF8E5M2:
      return e5m2.data();
    case DType::kHiF8:
      return hif8.data();
    case DType::kF4E2M1x2:
      return e2m1.data();
    case DType::kF4E1M2x2:
      return e1m2.data();
    default:
      return s8.data();
  }
}

// Mantissa of 10 bits.
float RoundHf32(float x, Hf32 mode) {
  uint32_t w = BitCast<uint32_t>(x);
  if ((w & 0x7F800000u) == 0x7F800000u) return x;
  w += mode == Hf32::kEven ? 0xFFFu + (w >> 13 & 1) : 0x1000u;
  return BitCast<float>(w & 0xFFFFE000u);
}

float Largest(DType t) {
  switch (t) {
    case DType::kF16:
      return 65504.0f;
    case DType::kBF16:
      return 0x1.FEp127f;
    case DType::kF8E4M3:
      return 448.0f;
    case DType::kF8E5M2:
      return 57344.0f;
    case DType::kHiF8:
      return 32768.0f;
    default:
      return std::numeric_limits<float>::max();
  }
}

// `count` elements from 32 bytes of a row.
void Decode(const MadOperand& o, const uint8_t* from, float* to, int64_t count) {
  switch (o.type) {
    case DType::kF16:
    case DType::kBF16:
      for (int64_t i = 0; i < count; ++i) {
        uint16_t bits;
        std::memcpy(&bits, from + 2 * i, 2);
        to[i] = o.type == DType::kF16 ? ToFloat(F16{bits}) : ToFloat(BF16{bits});
      }
      break;
    case DType::kF32:
      std::memcpy(to, from, static_cast<size_t>(count) * 4);
      if (o.hf32 != Hf32::kOff) {
        for (int64_t i = 0; i < count; ++i) to[i] = RoundHf32(to[i], o.hf32);
      }
      break;
    case DType::kF4E2M1x2:
    case DType::kF4E1M2x2: {
      const float* table = ByteTable(o.type);
      for (int64_t i = 0; i < count; ++i) to[i] = table[from[i / 2] >> (i % 2 * 4) & 0xF];
      break;
    }
    default: {
      const float* table = ByteTable(o.type);
      for (int64_t i = 0; i < count; ++i) to[i] = table[from[i]];
      break;
    }
  }
  if (!o.saturate) return;
  const float largest = Largest(o.type);
  for (int64_t i = 0; i < count; ++i) to[i] = to[i] != to[i] ? 0.0f : std::max(-largest, std::min(largest, to[i]));
}

float ScaleValue(uint8_t code) {
  return code == 0xFF ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, code - 127);
}

}  // namespace

int C0Elements(DType t) {
  const bool packed = t == DType::kF4E2M1x2 || t == DType::kF4E1M2x2;
  return static_cast<int>(packed ? 2 * kC0Bytes : kC0Bytes / ByteSize(t));
}

const float* PackOperand(const MadOperand& o, int width, const std::vector<int32_t>& position, bool scaled,
                         AlignedBytes* storage) {
  const int64_t padded = RoundUp(o.rows, width);
  const size_t bytes = static_cast<size_t>(padded * o.k) * sizeof(float);
  float* packed = reinterpret_cast<float*>(storage->Ensure(bytes));
  if (padded != o.rows) {
    const size_t last = static_cast<size_t>(width * o.k) * sizeof(float);
    std::memset(reinterpret_cast<uint8_t*>(packed) + bytes - last, 0, last);
  }
  const int64_t c0 = C0Elements(o.type);
  float row[64];
  for (int64_t first = 0; first < o.k; first += c0) {
    const int64_t count = std::min(c0, o.k - first);
    const uint8_t* group = o.data + first / c0 * o.fractal_rows * kC0Bytes;
    for (int64_t r = 0; r < o.rows; ++r) {
      Decode(o, group + r * kC0Bytes, row, count);
      if (scaled) {
        for (int64_t i = 0; i < count; ++i) row[i] *= ScaleValue(ScaleCode(o, r, (first + i) / 32));
      }
      float* to = packed + r / width * o.k * width + r % width;
      for (int64_t i = 0; i < count; ++i) to[position[static_cast<size_t>(first + i)] * width] = row[i];
    }
  }
  return packed;
}

bool ScalesAreModerate(const MadOperand& o) {
  for (int64_t r = 0; r < o.rows; ++r) {
    for (int64_t g = 0; g < o.k / 32; ++g) {
      const int code = ScaleCode(o, r, g);
      if (code != 0xFF && (code < 127 - 40 || code > 127 + 40)) return false;
    }
  }
  return true;
}

std::vector<int32_t> MadPositions(const MadOrder& order, int64_t k) {
  std::vector<int32_t> p(static_cast<size_t>(k));
  std::iota(p.begin(), p.end(), 0);
  if (order.kind == MadOrder::kReverse) std::reverse(p.begin(), p.end());
  if (order.kind == MadOrder::kRandom) {
    uint64_t state = order.seed;
    for (size_t i = p.size(); i > 1; --i) {
      state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
      std::swap(p[i - 1], p[(state >> 33) % i]);
    }
  }
  return p;
}

bool MadOrder::Parse(const std::string& text, MadOrder* order) {
  static const char kRandomPrefix[] = "random:";
  const size_t prefix = sizeof(kRandomPrefix) - 1;
  *order = MadOrder();
  if (text == "ascending") return true;
  if (text == "blocked" || text == "reverse") {
    order->kind = text == "blocked" ? kBlocked : kReverse;
    return true;
  }
  const std::string digits = text.compare(0, prefix, kRandomPrefix) == 0 ? text.substr(prefix) : "";
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) return false;
  order->kind = kRandom;
  order->seed = std::stoull(digits);
  return true;
}

}  // namespace pto::engine
