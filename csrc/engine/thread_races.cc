#include "thread_races.h"

#include <algorithm>
#include <iterator>

namespace pto::engine {

// Phases go on counting, so what earlier regions have left means nothing.
void ThreadRaces::Begin(int cell_bytes) {
  shift_ = __builtin_ctz(static_cast<unsigned>(cell_bytes));
  ++phase_;
  if (slots_.empty() || pages_.size() > kMostPages) {
    pages_.clear();
    slots_.assign(1 << 10, PageSlot());
    std::fill(std::begin(recent_), std::end(recent_), PageSlot());
  }
}

void ThreadRaces::Fence(const Context& c) {
  for (int first = 0; first < c.threads; first += kWarp) {
    const int end = std::min(first + kWarp, static_cast<int>(c.threads));
    bool whole = c.mask.all;
    if (!whole && c.mask.lo <= first && end <= c.mask.hi) {
      whole = std::all_of(&c.mask.active[first], &c.mask.active[end], [](auto active) { return active != 0; });
    }
    if (whole) ++fences_[first / kWarp];
  }
}

// Where a page is, or has to be put.
size_t ThreadRaces::SlotOf(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  size_t i = key * UINT64_C(0x9E3779B97F4A7C15) >> 20 & mask;
  while (slots_[i].key && slots_[i].key != key) i = (i + 1) & mask;
  return i;
}

uint32_t ThreadRaces::Find(uint64_t key) {
  size_t i = SlotOf(key);
  if (slots_[i].key) return slots_[i].page;
  if (pages_.size() * 2 >= slots_.size()) {
    std::vector<PageSlot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const PageSlot& slot : old) {
      if (slot.key) slots_[SlotOf(slot.key)] = slot;
    }
    i = SlotOf(key);
  }
  slots_[i] = {key, static_cast<uint32_t>(pages_.size())};
  pages_.emplace_back();
  return slots_[i].page;
}

}  // namespace pto::engine
