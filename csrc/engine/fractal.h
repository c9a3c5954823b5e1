// Fractals: blocks of 512 bytes, 16 rows of 32 bytes (C0 elements each), and the addresses of matrices made of them.
#pragma once

#include <cstdint>

namespace pto::engine {

constexpr int64_t kFractalBytes = 512;
constexpr int64_t kFractalRows = 16;
constexpr int64_t kC0Bytes = 32;

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// L0C: columns in groups of 16; in a group the rows follow each other, 16 f32 or s32 (64 bytes) each. `rows`: distance
// of two groups in rows.
constexpr int64_t kAccColumns = 16;
constexpr int64_t kAccRowBytes = 64;
constexpr int64_t AccOffset(int64_t m, int64_t n, int64_t rows) {
  return (n / kAccColumns * rows + m) * kAccRowBytes + n % kAccColumns * 4;
}

}  // namespace pto::engine
