// Order of the accesses to UB inside one vecscope.
//
// The hardware reorders vector loads, vector stores and scalar accesses of a vector function as long as no mem_bar of
// their kinds stands between them and no value flows from one to the other through registers.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shadow.h"

namespace pto::engine {

struct Code;

class VectorOrder {
 public:
  explicit VectorOrder(int64_t ub_bytes) : granules_(static_cast<size_t>((ub_bytes + kGranule - 1) / kGranule)) {}

  // A vector function begins: what was accessed before it is done.
  void Begin() { start_ = time_; }
  void MemBar(uint8_t first, uint8_t second);

  // Notes an access to bytes of UB. f(instruction of the earlier access, it was a write, first byte, end) when the two
  // are not ordered.
  template <class F>
  void Touch(const Code& code, uint32_t inst, bool scalar, bool write, int64_t offset, int64_t bytes, F f);

 private:
  struct Last {
    uint64_t time = 0;
    uint32_t mask = 0, inst = 0;
  };
  // By class: vector load, vector store, scalar load, scalar store.
  struct Granule {
    std::array<Last, 4> last;
  };

  // Whether a value that the load reads reaches the store through registers.
  bool Flows(const Code& code, uint32_t load, uint32_t store);

  std::vector<Granule> granules_;
  uint64_t time_ = 1, start_ = 1;
  uint64_t barrier_[4][4] = {};  // when the last one between two classes was
  std::unordered_map<const Code*, std::unordered_map<uint64_t, bool>> flows_;
};

template <class F>
void VectorOrder::Touch(const Code& code, uint32_t inst, bool scalar, bool write, int64_t offset, int64_t bytes, F f) {
  const int mine = (scalar ? 2 : 0) + (write ? 1 : 0);
  ++time_;
  for (int64_t at = offset, end = offset + bytes; at < end;) {
    const int64_t from = at % kGranule, to = std::min(kGranule, from + end - at);
    Granule& g = granules_[static_cast<size_t>(at / kGranule)];
    const uint32_t mask = GranuleMask(from, to);
    for (int other = write ? 0 : 1; other < 4; other += write ? 1 : 2) {
      const Last& last = g.last[static_cast<size_t>(other)];
      if (!(last.mask & mask) || last.time <= start_ || last.time <= barrier_[other][mine]) continue;
      const bool earlier_write = other & 1;
      if (!earlier_write && Flows(code, last.inst, inst)) continue;
      const int64_t base = at - from;
      f(last.inst, earlier_write, base + __builtin_ctz(last.mask & mask), base + 32 - __builtin_clz(last.mask & mask));
    }
    Last& own = g.last[static_cast<size_t>(mine)];
    own.mask = own.time > start_ && own.time > barrier_[mine][mine ^ 1] ? own.mask | mask : mask;
    own.time = time_, own.inst = inst;
    at += to - from;
  }
}

}  // namespace pto::engine
