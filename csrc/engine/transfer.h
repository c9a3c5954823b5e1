// Rows of bytes with outer loops: the operands of the DMA commands and how they are walked.
#pragma once

#include <string>

#include "commands.h"

namespace pto::engine {

constexpr int64_t kBlock = 32;  // bytes; the unit of UB and L1 addresses
constexpr int kMaxLoops = 16;

// Values of a captured command, in operand order.
struct Loop {
  int64_t count, src, dst;
};

struct Transfer {
  uint64_t src, dst;
  int64_t len;
  Loop rows;
  Loop outer[kMaxLoops];
  int n_outer;
  const uint64_t* rest;
};

inline Transfer UnpackTransfer(const Command& c) {
  const uint64_t* v = c.values;
  auto i64 = [&](int i) { return static_cast<int64_t>(v[i]); };
  Transfer t;
  t.src = v[0], t.dst = v[1], t.len = i64(2);
  t.rows = {i64(3), i64(4), i64(5)};
  t.n_outer = static_cast<int>(c.inst->b);
  for (int i = 0; i < t.n_outer; ++i) t.outer[i] = {i64(6 + 3 * i), i64(7 + 3 * i), i64(8 + 3 * i)};
  t.rest = v + 6 + 3 * t.n_outer;
  return t;
}

// Rows that touch in UB and fill no whole blocks lie back to back: only the first is aligned, only the last padded.
inline bool Compact(const Transfer& t, int64_t ub_stride) {
  return t.rows.count > 1 && ub_stride == t.len && t.len % kBlock != 0;
}

// f(source offset, destination offset, number of the row) for each row, inner loop first.
template <class F>
void ForRows(const Transfer& t, F f) {
  int64_t index[kMaxLoops] = {};
  int64_t src = 0, dst = 0;
  for (int i = 0; i < t.n_outer; ++i) {
    if (t.outer[i].count == 0) return;
  }
  for (;;) {
    for (int64_t r = 0; r < t.rows.count; ++r) f(src + r * t.rows.src, dst + r * t.rows.dst, r);
    int level = 0;
    for (; level < t.n_outer; ++level) {
      src += t.outer[level].src, dst += t.outer[level].dst;
      if (++index[level] < t.outer[level].count) break;
      src -= index[level] * t.outer[level].src, dst -= index[level] * t.outer[level].dst;
      index[level] = 0;
    }
    if (level == t.n_outer) return;
  }
}

// Counts the command and checks its numbers; false when it moves nothing.
inline bool Begin(Core& core, const CommandUnit& u, const Transfer& t) {
  if (t.len < 0) u.Fail("the burst length is " + std::to_string(t.len));
  if (t.rows.count < 0) u.Fail("the burst count is " + std::to_string(t.rows.count));
  for (int i = 0; i < t.n_outer; ++i) {
    if (t.outer[i].count < 0) u.Fail("a loop count is " + std::to_string(t.outer[i].count));
  }
  ++core.dma_commands;
  return t.len != 0 && t.rows.count != 0;
}

}  // namespace pto::engine
