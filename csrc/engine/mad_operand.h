// Operands of a mad: from their layout in L0A or L0B to packed f32 numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "engine.h"
#include "memory.h"

namespace pto::engine {

enum class Hf32 : uint8_t { kOff, kEven, kAway };

// Elements in the 32 bytes of a fractal row.
int C0Elements(DType t);

// One operand in L0: rows of K elements, in groups of C0 along K. `fractal_rows`: distance of two groups in rows of 32
// bytes; 1 and a single row for the vector of a GEMV, which is contiguous.
struct MadOperand {
  const uint8_t* data = nullptr;
  DType type = DType::kF16;
  int64_t rows = 0, k = 0, fractal_rows = 0;
  const uint8_t* scales = nullptr;  // MX: one for 32 elements along K
  Hf32 hf32 = Hf32::kOff;
  bool saturate = false;  // infinities become the largest number, NaN becomes 0
};

// The scale code of a row and a group of 32.
inline uint8_t ScaleCode(const MadOperand& o, int64_t row, int64_t group) {
  const int64_t pairs = o.k / 64;
  return o.scales[((row / 16) * pairs + group / 2) * 32 + row % 16 * 2 + group % 2];
}

// packed[(row / width * k + position[i]) * width + row % width] = element i of the row, times its scale if `scaled`;
// zero for rows up to the next multiple of the width. Grows the storage as needed.
const float* PackOperand(const MadOperand& o, int width, const std::vector<int32_t>& position, bool scaled,
                         AlignedBytes* storage);

// Whether element times scale is exact in f32, and any product of two such numbers too.
bool ScalesAreModerate(const MadOperand& o);

// position[i]: when product i is added.
std::vector<int32_t> MadPositions(const MadOrder& order, int64_t k);

}  // namespace pto::engine
