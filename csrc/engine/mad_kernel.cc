#include "mad_kernel.h"

#include "clones.h"

namespace pto::engine {
namespace {

// One row at a time: its 16 sums stay in registers.
template <class Step>
inline __attribute__((always_inline)) void Rows(const float* a, const float* b, float* c, int64_t k, Step step) {
  for (int row = 0; row < kMadRows; ++row) {
    float sum[kMadColumns];
    for (int column = 0; column < kMadColumns; ++column) sum[column] = c[row * kMadColumns + column];
    for (int64_t i = 0; i < k; ++i) {
      const float x = a[i * kMadRows + row];
      const float* y = b + i * kMadColumns;
#pragma GCC unroll 1
      for (int column = 0; column < kMadColumns; ++column) sum[column] = step(x, y[column], sum[column]);
    }
    for (int column = 0; column < kMadColumns; ++column) c[row * kMadColumns + column] = sum[column];
  }
}

}  // namespace

PTO_CLONES void MadTile(const float* a, const float* b, float* c, int64_t k) {
  Rows(a, b, c, k, [](float x, float y, float sum) __attribute__((always_inline)) { return sum + x * y; });
}

PTO_CLONES void MadTileFused(const float* a, const float* b, float* c, int64_t k) {
  Rows(a, b, c, k,
       [](float x, float y, float sum) __attribute__((always_inline)) { return __builtin_fmaf(x, y, sum); });
}

}  // namespace pto::engine
