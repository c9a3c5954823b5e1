#include "thread_races.h"

namespace pto::engine {

void ThreadRaces::Begin(int cell_bytes) {
  shift_ = __builtin_ctz(static_cast<unsigned>(cell_bytes));
  ub_.resize(static_cast<size_t>(ub_bytes_ >> shift_));
  ++phase_;
  if (gm_.empty()) gm_.resize(1 << 12);
  if (gm_used_) {
    std::fill(gm_.begin(), gm_.end(), Cell());
    gm_used_ = 0;
  }
}

ThreadRaces::Cell& ThreadRaces::At(const LaneAccess& access, int64_t at) {
  if (!access.gm) return ub_[static_cast<size_t>(at >> shift_)];
  if (gm_used_ * 2 > gm_.size()) Grow();
  const uint64_t key =
      (static_cast<uint64_t>(reinterpret_cast<uintptr_t>(access.base) + static_cast<uint64_t>(at)) >> shift_) + 1;
  const size_t mask = gm_.size() - 1;
  for (size_t i = key * UINT64_C(0x9E3779B97F4A7C15) >> 20 & mask;; i = (i + 1) & mask) {
    if (gm_[i].key == key) return gm_[i];
    if (gm_[i].key == 0) {
      gm_[i].key = key;
      ++gm_used_;
      return gm_[i];
    }
  }
}

void ThreadRaces::Grow() {
  std::vector<Cell> old(gm_.size() * 2);
  old.swap(gm_);
  const size_t mask = gm_.size() - 1;
  for (const Cell& cell : old) {
    if (!cell.key) continue;
    size_t i = cell.key * UINT64_C(0x9E3779B97F4A7C15) >> 20 & mask;
    while (gm_[i].key) i = (i + 1) & mask;
    gm_[i] = cell;
  }
}

}  // namespace pto::engine
