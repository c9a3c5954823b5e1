// The arithmetic of mad on packed operands: sums of products in f32, one product after the other.
//
// A is packed in groups of kMadRows rows: [group][k][row]. B is packed in groups of 16 columns: [group][k][column].
// Products are added in the order in which k is packed. The result of an element does not depend on the vector width:
// there are no sums inside a register.
#pragma once

#include <cstdint>

namespace pto::engine {

constexpr int kMadRows = 4;
constexpr int kMadColumns = 16;

// c[row * 16 + column] += a[k * kMadRows + row] * b[k * 16 + column] for k = 0, 1, ...: each product rounded to f32
// (exact for inputs of at most 12 bits of mantissa, inside the range of f32), then each sum.
void MadTile(const float* a, const float* b, float* c, int64_t k);

// The same with one rounding for product and sum together.
void MadTileFused(const float* a, const float* b, float* c, int64_t k);

}  // namespace pto::engine
