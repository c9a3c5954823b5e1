// The places of the lanes of one access in ascending order, where they lie close together but are in no order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "code.h"
#include "monitor.h"

namespace pto::engine {

class LanePlaces {
 public:
  // Takes the places of the active lanes. False, and nothing is known, if it would not pay: they ascend already, or
  // they are far apart, or not whole accesses of 1, 2, 4, ... bytes apart.
  bool Gather(const MaskState& mask, const LaneAccess& access) {
    if (access.bytes & (access.bytes - 1)) return false;
    const int shift = __builtin_ctzll(static_cast<uint64_t>(access.bytes));
    const auto active = [&](int i) { return mask.all || mask.active[i]; };
    int64_t low = INT64_MAX, high = INT64_MIN, before = INT64_MIN;
    int descents = 0;
    for (int i = mask.lo; i < mask.hi; ++i) {
      if (!active(i)) continue;
      const int64_t at = access.addresses[i];
      descents += at < before;
      before = at, low = std::min(low, at), high = std::max(high, at);
    }
    if (descents < kFewDescents || (high - low) >> shift >= kSpread * mask.count) return false;
    low_ = low, bytes_ = access.bytes;
    bits_.assign(static_cast<size_t>(((high - low) >> shift) / 64 + 1), 0);
    for (int i = mask.lo; i < mask.hi; ++i) {
      if (!active(i)) continue;
      const int64_t distance = access.addresses[i] - low;
      if (distance & (access.bytes - 1)) return false;
      const uint64_t number = static_cast<uint64_t>(distance) >> shift;
      bits_[number / 64] |= uint64_t{1} << number % 64;
    }
    return true;
  }

  // f(place) for each place once.
  template <class F>
  void InOrder(F f) const {
    for (size_t word = 0; word < bits_.size(); ++word) {
      for (uint64_t rest = bits_[word]; rest; rest &= rest - 1) {
        f(low_ + (static_cast<int64_t>(word) * 64 + __builtin_ctzll(rest)) * bytes_);
      }
    }
  }

 private:
  static constexpr int kFewDescents = 4;
  static constexpr int64_t kSpread = 8;

  int64_t low_ = 0, bytes_ = 1;
  std::vector<uint64_t> bits_;
};

}  // namespace pto::engine
