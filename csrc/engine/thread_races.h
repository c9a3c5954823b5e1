// Races between the threads of one simt region: two threads access the same bytes between two barriers, one of them
// writes, and not both are atomic. Threads that store the same value by the same instruction do not race, nor do those
// of one warp with a fence between the two accesses.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "code.h"
#include "paged_array.h"

namespace pto::engine {

class ThreadRaces {
 public:
  struct Side {
    uint32_t inst = 0;
    int thread = 0;
    bool write = false;
  };

  explicit ThreadRaces(int64_t ub_bytes) : ub_(static_cast<size_t>(ub_bytes)) {}

  // A simt region begins; `cell_bytes`: a power of two that divides every access to memory in it.
  void Begin(int cell_bytes);
  // syncthreads.
  void Barrier() { ++phase_; }
  // threadfence, threadfence_block; counts for the warps of which all threads reach it.
  void Fence(const Context& c);

  // f(earlier side, later side, first byte, bytes) for threads that race; bytes as the access gives them.
  template <class F>
  void Touch(const Context& c, uint32_t inst, const LaneAccess& access, F f);
  // The same for an access of all active threads to one place.
  template <class F>
  void TouchTogether(const Context& c, uint32_t inst, const LaneAccess& access, int64_t at, F f);

 private:
  static constexpr int16_t kNobody = -1;
  static constexpr int kWarp = 32, kMostWarps = 64;

  // What happened to a cell in one phase.
  struct Cell {
    uint32_t phase = 0;
    int16_t writer = kNobody, updater = kNobody;  // by a plain store, by an atomic
    int16_t reader = kNobody, other_reader = kNobody;
    uint32_t write_inst = 0, update_inst = 0, read_inst = 0;
    uint32_t write_fence = 0, update_fence = 0, read_fence = 0, other_fence = 0;  // of their warps, before them
    uint64_t value = 0;                                                           // of the plain store, if it has one
  };
  // Neighbouring cells of GM.
  static constexpr int kPageShift = 4;
  struct Page {
    Cell cells[1 << kPageShift];
  };
  struct PageSlot {
    uint64_t key = 0;  // number of the page + 1; 0: free
    uint32_t page = 0;
  };
  static constexpr size_t kMostPages = 1 << 16;  // that are kept for the next region
  static constexpr size_t kRecent = 256;

  // What an access is compared with and leaves behind.
  struct Kind {
    bool plain, atomic;
    bool values;
  };

  template <class F>
  void One(const Context& c, uint32_t inst, const LaneAccess& access, int thread, int64_t start, F f);
  template <class F>
  void Visit(Cell* cell, uint32_t inst, Kind kind, int16_t me, uint64_t value, F f);
  Cell& At(const LaneAccess& access, int64_t at) {
    if (!access.gm) return ub_[static_cast<size_t>(at >> shift_)];
    const uint64_t number =
        static_cast<uint64_t>(reinterpret_cast<uintptr_t>(access.base) + static_cast<uint64_t>(at)) >> shift_;
    const uint64_t key = (number >> kPageShift) + 1;
    PageSlot& recent = recent_[key & (kRecent - 1)];
    if (key != recent.key) recent = {key, Find(key)};
    return pages_[recent.page].cells[number & ((1 << kPageShift) - 1)];
  }
  // Whether a fence of the warp of `me` came between now and what another of its threads did behind fence `fence`.
  bool Fenced(int16_t other, uint32_t fence, int16_t me) const {
    return other / kWarp == me / kWarp && fence != fences_[static_cast<size_t>(me / kWarp)];
  }
  uint32_t Find(uint64_t key);
  size_t SlotOf(uint64_t key) const;
  // A value of cell_bytes.
  uint64_t Value(const uint8_t* from) const {
    uint64_t value = 0;
    switch (shift_) {
      case 0:
        return *from;
      case 1:
        std::memcpy(&value, from, 2);
        return value;
      case 2:
        std::memcpy(&value, from, 4);
        return value;
      default:
        std::memcpy(&value, from, 8);
        return value;
    }
  }

  int shift_ = 2;
  uint32_t phase_ = 0;
  uint32_t fences_[kMostWarps] = {};  // that each warp has passed
  PagedArray<Cell, 1024> ub_;
  std::vector<Page> pages_;      // of GM
  std::vector<PageSlot> slots_;  // where they are: open addressing
  PageSlot recent_[kRecent];     // found lately
};

template <class F>
void ThreadRaces::Touch(const Context& c, uint32_t inst, const LaneAccess& access, F f) {
  for (int i = c.mask.lo; i < c.mask.hi; ++i) {
    if (c.mask.all || c.mask.active[i]) One(c, inst, access, i, access.addresses[i], f);
  }
}

// Two of the threads stand for all: any other one differs from one of them.
template <class F>
void ThreadRaces::TouchTogether(const Context& c, uint32_t inst, const LaneAccess& access, int64_t at, F f) {
  if (c.mask.count > 0) One(c, inst, access, c.mask.lo, at, f);
  if (c.mask.count > 1) One(c, inst, access, c.mask.hi - 1, at, f);
}

template <class F>
void ThreadRaces::One(const Context& c, uint32_t inst, const LaneAccess& access, int thread, int64_t start, F f) {
  const int64_t cell_bytes = int64_t{1} << shift_;
  const Kind kind{access.access == Access::kWrite, access.access == Access::kAtomic, access.values != nullptr};
  const auto visit = [&](int64_t at, uint64_t value) {
    Visit(&At(access, at), inst, kind, static_cast<int16_t>(thread), value,
          [&](const Side& first, const Side& second) { f(first, second, at, cell_bytes); });
  };
  if (!access.values) {
    for (int64_t k = 0; k < access.bytes; k += cell_bytes) visit(start + k, 0);
    return;
  }
  const uint8_t* component = access.values + thread * access.element;
  for (int64_t k = 0; k < access.bytes; k += access.element, component += c.threads * access.element) {
    for (int64_t i = 0; i < access.element; i += cell_bytes) visit(start + k + i, Value(component + i));
  }
}

template <class F>
void ThreadRaces::Visit(Cell* cell_at, uint32_t inst, Kind kind, int16_t me, uint64_t value, F f) {
  Cell& cell = *cell_at;
  const bool write = kind.plain || kind.atomic;
  if (cell.phase != phase_) {
    cell = Cell();
    cell.phase = phase_;
  }
  const uint32_t fence = fences_[static_cast<size_t>(me / kWarp)];
  const auto races = [&](int16_t other, uint32_t its_fence) {
    return other != kNobody && other != me && !Fenced(other, its_fence, me);
  };
  if (races(cell.writer, cell.write_fence)) {
    // Of two stores by one instruction both or none have values.
    const bool same = kind.plain && cell.write_inst == inst && kind.values && cell.value == value;
    if (!same) f(Side{cell.write_inst, cell.writer, true}, Side{inst, me, write});
  }
  if (!kind.atomic && races(cell.updater, cell.update_fence)) {
    f(Side{cell.update_inst, cell.updater, true}, Side{inst, me, write});
  }
  if (!write) {
    if (cell.reader == kNobody || Fenced(cell.reader, cell.read_fence, me)) {
      cell.reader = me, cell.read_inst = inst, cell.read_fence = fence;
    } else if (cell.reader != me) {
      cell.other_reader = me, cell.other_fence = fence;
    }
    return;
  }
  const bool first = races(cell.reader, cell.read_fence);
  const int16_t reader = first ? cell.reader : cell.other_reader;
  if (first || races(cell.other_reader, cell.other_fence)) f(Side{cell.read_inst, reader, false}, Side{inst, me, true});
  if (kind.atomic) {
    cell.updater = me, cell.update_inst = inst, cell.update_fence = fence;
  } else {
    cell.writer = me, cell.write_inst = inst, cell.write_fence = fence;
    cell.value = value;
  }
}

}  // namespace pto::engine
