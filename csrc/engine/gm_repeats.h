// Which accesses to GM a command has made before: a loop of a simt region comes back to the same places. A table of
// fixed size: what falls out of it is kept again, and the findings are the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gm_history.h"

namespace pto::engine {

class GmRepeats {
 public:
  // A command begins: nothing is known.
  void Begin() { ++generation_; }

  // Takes the last access away when it is there already, and counts it at that one; otherwise it is known from now on.
  void Fold(std::vector<GmAccess>* accesses) {
    if (sets_.empty()) sets_.resize(kSets);
    const GmAccess& last = accesses->back();
    const uint64_t key = ((last.begin ^ static_cast<uint64_t>(last.line) << 48) + static_cast<uint64_t>(last.access)) *
                         UINT64_C(0x9E3779B97F4A7C15);
    const uint32_t tag = static_cast<uint32_t>(key);
    auto& [newer, older] = sets_[key >> (64 - kSetBits)];
    for (const Slot& slot : {newer, older}) {
      if (slot.generation != generation_ || slot.tag != tag || !Same((*accesses)[slot.access], last)) continue;
      ++(*accesses)[slot.access].times;
      accesses->pop_back();
      return;
    }
    older = newer;
    newer = {generation_, tag, static_cast<uint32_t>(accesses->size() - 1)};
  }

 private:
  static constexpr int kSetBits = 13;
  static constexpr size_t kSets = size_t{1} << kSetBits;
  struct Slot {
    uint32_t generation = 0;  // another one than the present: free
    uint32_t tag = 0;
    uint32_t access = 0;  // its number
  };

  static bool Same(const GmAccess& a, const GmAccess& b) {
    return a.begin == b.begin && a.end == b.end && a.line == b.line && a.access == b.access && a.tensor == b.tensor;
  }

  std::vector<std::array<Slot, 2>> sets_;
  uint32_t generation_ = 0;
};

}  // namespace pto::engine
