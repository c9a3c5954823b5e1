// Conflicts among accesses to single places of UB: it has 32 sub-banks of 8 bytes. Each gives 8 bytes a cycle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pto::engine {

class SubBanks {
 public:
  static constexpr int64_t kBytes = 8;
  static constexpr int kBanks = 32;

  void Begin() {
    for (const int64_t w : words_) seen_[static_cast<size_t>(w / 64)] = 0;
    words_.clear();
    std::fill(count_, count_ + kBanks, 0);
    most_ = 0;
  }
  // Bytes at an address. `merged`: those 8 bytes that another access has asked for already cost nothing.
  void Add(int64_t offset, int64_t bytes, bool merged) {
    for (int64_t w = offset / kBytes; w <= (offset + bytes - 1) / kBytes; ++w) {
      if (merged && !First(w)) continue;
      most_ = std::max(most_, ++count_[w % kBanks]);
    }
  }
  // Cycles that the accesses take together.
  int cycles() const { return most_; }

 private:
  bool First(int64_t word) {
    const size_t at = static_cast<size_t>(word / 64);
    if (seen_.size() <= at) seen_.resize(at + 1);
    const uint64_t bit = UINT64_C(1) << (word % 64);
    if (seen_[at] & bit) return false;
    seen_[at] |= bit;
    words_.push_back(word);
    return true;
  }

  std::vector<uint64_t> seen_;
  std::vector<int64_t> words_;  // that are marked as seen
  int count_[kBanks] = {};
  int most_ = 0;
};

}  // namespace pto::engine
