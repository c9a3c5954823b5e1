// Order of the accesses to UB inside one vecscope.
//
// The hardware reorders vector loads, vector stores and scalar accesses of a vector function as long as no mem_bar of
// their kinds stands between them and no value flows from one to the other through registers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shadow.h"

namespace pto::engine {

struct Code;

class VectorOrder {
 public:
  explicit VectorOrder(int64_t ub_bytes) : cells_(static_cast<size_t>((ub_bytes + kCell - 1) / kCell)) {}

  // A vector function begins: what was accessed before it is done.
  void Begin();
  void MemBar(uint8_t first, uint8_t second);

  // Notes an access to bytes of UB; `step` tells executions of an instruction apart. f(instruction of the earlier
  // access, it was a write, first byte, end) when the two are not ordered.
  template <class F>
  void Touch(const Code& code, uint32_t inst, int64_t step, bool scalar, bool write, int64_t offset, int64_t bytes,
             F f);

  // Notes an access of a vector instruction to many places. False, and nothing is noted, when not all that was before
  // is in order with it: then they have to be touched one by one.
  bool TouchPieces(const Code& code, uint32_t inst, int64_t step, bool write, const std::vector<Piece>& pieces);

 private:
  // The last access of a class, to some bytes of a granule or to a whole cell.
  struct Last {
    uint64_t time = 0;
    uint32_t mask = 0, inst = 0;
  };
  // Bytes that were accessed before the last barrier are kept apart from those accessed since.
  struct Recent {
    Last now, before;
  };
  using Granule = std::array<Recent, 4>;
  // By class: vector load, vector store, scalar load, scalar store.
  struct Cell {
    std::array<Last, 4> whole;
    std::array<uint64_t, 4> part{};  // time of the last access to a part
    std::array<Granule, kCellGranules> granules;
  };

  // Notes that an instruction accesses something: what it accesses in pieces happens at once.
  void Execute(uint32_t inst, int64_t step, int mine) {
    if (step != step_ || inst != inst_) ++time_;
    step_ = step, inst_ = inst;
    if (mine == 0) loads_[inst] = time_;
  }
  void Note(Recent* recent, int mine, uint32_t mask, uint32_t inst) const;
  // Whether `inst` needs what a load has read that a barrier keeps behind the stores of a class, of which one was at
  // the time `stored`.
  bool Behind(const Code& code, uint32_t inst, uint64_t stored, int store);
  // Whether a value that the load reads reaches the store through registers.
  bool Flows(const Code& code, uint32_t load, uint32_t store);

  PagedArray<Cell, 32> cells_;
  std::vector<Recent*> recent_;  // what the running access leaves its marks in, by piece
  uint64_t time_ = 1, start_ = 1;
  int64_t step_ = -1;
  uint32_t inst_ = 0;
  uint64_t barrier_[4][4] = {};                   // when the last one between two classes was
  uint64_t last_barrier_[4] = {};                 // of those that a class comes before
  std::unordered_map<uint32_t, uint64_t> loads_;  // of this vector function: when each instruction loaded last
  std::unordered_map<const Code*, std::unordered_map<uint64_t, bool>> flows_;
};

template <class F>
void VectorOrder::Touch(const Code& code, uint32_t inst, int64_t step, bool scalar, bool write, int64_t offset,
                        int64_t bytes, F f) {
  const int mine = (scalar ? 2 : 0) + (write ? 1 : 0);
  const int first = write ? 0 : 1, stride = write ? 1 : 2;
  Execute(inst, step, mine);
  uint64_t ordered[4];  // accesses until then come first
  for (int other = first; other < 4; other += stride) ordered[other] = std::max(start_, barrier_[other][mine]);
  const auto conflict = [&](int other, const Last& last, int64_t from, int64_t to) {
    const uint32_t earlier = last.inst;
    if (!(other & 1) && Flows(code, earlier, inst)) return;
    // A store behind a load that it needs and that a barrier keeps behind the earlier store.
    if (write && other & 1 && Behind(code, inst, last.time, other)) return;
    f(earlier, (other & 1) != 0, from, to);
  };
  for (int64_t at = offset, end = offset + bytes; at < end;) {
    Cell& cell = cells_[static_cast<size_t>(at / kCell)];
    const int64_t cell_end = std::min(end, at / kCell * kCell + kCell);
    bool parts = false;
    for (int other = first; other < 4; other += stride) {
      const Last& last = cell.whole[static_cast<size_t>(other)];
      if (last.time > ordered[other] && last.time < time_) conflict(other, last, at, cell_end);
      parts |= cell.part[static_cast<size_t>(other)] > ordered[other];
    }
    const bool whole = cell_end - at == kCell;
    if (whole) cell.whole[static_cast<size_t>(mine)] = {time_, ~0u, inst};
    if (!whole) cell.part[static_cast<size_t>(mine)] = time_;
    for (int64_t g = at; (!whole || parts) && g < cell_end;) {
      const int64_t from = g % kGranule, to = std::min(kGranule, from + cell_end - g);
      const uint32_t mask = GranuleMask(from, to);
      Granule& granule = cell.granules[static_cast<size_t>(g % kCell / kGranule)];
      for (int other = first; parts && other < 4; other += stride) {
        const Recent& recent = granule[static_cast<size_t>(other)];
        for (const Last* last : {&recent.now, &recent.before}) {
          if (!(last->mask & mask) || last->time <= ordered[other] || last->time == time_) continue;
          const int64_t base = g - from;
          conflict(other, *last, base + __builtin_ctz(last->mask & mask), base + 32 - __builtin_clz(last->mask & mask));
        }
      }
      if (!whole) Note(&granule[static_cast<size_t>(mine)], mine, mask, inst);
      g += to - from;
    }
    at = cell_end;
  }
}

}  // namespace pto::engine
