// How much of GM a launch accesses for the first time, and how often it comes back: what comes back is in L2.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "timing_figures.h"

namespace pto::engine {

// Reads or writes. The sum of several does not depend on their order.
class GmCoverage {
 public:
  static constexpr int64_t kSector = static_cast<int64_t>(figure::kGmSectorBytes);

  void Add(uint32_t tensor, int64_t offset, int64_t bytes) {
    if (bytes <= 0) return;
    const int64_t first = offset / kSector, last = (offset + bytes - 1) / kSector;
    moved_ += last - first + 1;
    if (tensor == 0) {  // by address: every access counts as the first one
      unknown_ += last - first + 1;
      return;
    }
    std::vector<uint64_t>& seen = seen_[tensor];
    if (seen.size() <= static_cast<size_t>(last / 64)) seen.resize(static_cast<size_t>(last / 64) + 1);
    for (int64_t s = first; s <= last;) {
      uint64_t& word = seen[static_cast<size_t>(s / 64)];
      if (s % 64 == 0 && last - s >= 63) {
        word = ~UINT64_C(0);
        s += 64;
      } else {
        word |= UINT64_C(1) << (s % 64);
        ++s;
      }
    }
  }

  void Merge(const GmCoverage& other) {
    moved_ += other.moved_;
    unknown_ += other.unknown_;
    for (const auto& [tensor, words] : other.seen_) {
      std::vector<uint64_t>& seen = seen_[tensor];
      if (seen.size() < words.size()) seen.resize(words.size());
      for (size_t i = 0; i < words.size(); ++i) seen[i] |= words[i];
    }
  }

  // Share of what was moved that was accessed for the first time.
  double FirstShare() const {
    if (moved_ == 0) return 1;
    int64_t first = unknown_;
    for (const auto& [tensor, words] : seen_) {
      for (const uint64_t word : words) first += __builtin_popcountll(word);
    }
    return static_cast<double>(first) / static_cast<double>(moved_);
  }

 private:
  int64_t moved_ = 0, unknown_ = 0;  // sectors
  std::unordered_map<uint32_t, std::vector<uint64_t>> seen_;
};

}  // namespace pto::engine
