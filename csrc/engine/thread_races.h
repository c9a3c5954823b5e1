// Races between the threads of one simt region: two threads access the same bytes between two barriers, one of them
// writes, and not both are atomic. Threads that store the same value by the same instruction do not race.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "code.h"

namespace pto::engine {

class ThreadRaces {
 public:
  struct Side {
    uint32_t inst = 0;
    int thread = 0;
    bool write = false;
  };

  explicit ThreadRaces(int64_t ub_bytes) : ub_bytes_(ub_bytes) {}

  // A simt region begins; `cell_bytes`: a power of two that divides every access to memory in it.
  void Begin(int cell_bytes);
  // syncthreads.
  void Barrier() { ++phase_; }

  // f(earlier side, later side, first byte, bytes) for threads that race; bytes as the access gives them.
  template <class F>
  void Touch(const Context& c, uint32_t inst, const LaneAccess& access, F f);
  // The same for an access of all active threads to one place.
  template <class F>
  void TouchTogether(const Context& c, uint32_t inst, const LaneAccess& access, int64_t at, F f);

 private:
  // What happened to a cell in one phase.
  struct Cell {
    uint32_t phase = 0;
    int16_t writer = kNobody, updater = kNobody;  // by a plain store, by an atomic
    int16_t reader = kNobody, other_reader = kNobody;
    uint32_t write_inst = 0, update_inst = 0, read_inst = 0;
    uint64_t key = 0;  // GM: address of the cell + 1
    bool has_value = false;
    uint64_t value = 0;  // of the plain store
  };
  static constexpr int16_t kNobody = -1;

  template <class F>
  void One(const Context& c, uint32_t inst, const LaneAccess& access, int thread, int64_t start, F f);
  Cell& At(const LaneAccess& access, int64_t at);
  void Grow();

  int64_t ub_bytes_;
  int shift_ = 2;
  uint32_t phase_ = 0;
  std::vector<Cell> ub_;
  std::vector<Cell> gm_;  // open addressing
  size_t gm_used_ = 0;
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
  const bool plain = access.access == Access::kWrite, atomic = access.access == Access::kAtomic;
  const bool write = plain || atomic;
  const int16_t me = static_cast<int16_t>(thread);
  for (int64_t k = 0; k < access.bytes; k += cell_bytes) {
    const int64_t at = start + k;
    Cell& cell = At(access, at);
    if (cell.phase != phase_) {
      const uint64_t key = cell.key;
      cell = Cell();
      cell.key = key, cell.phase = phase_;
    }
    uint64_t value = 0;
    if (access.values) {
      const uint8_t* from =
          access.values + (k / access.element * c.threads + thread) * access.element + k % access.element;
      std::memcpy(&value, from, static_cast<size_t>(cell_bytes));
    }
    if (cell.writer != kNobody && cell.writer != me) {
      const bool same = plain && cell.write_inst == inst && access.values && cell.has_value && cell.value == value;
      if (!same) f(Side{cell.write_inst, cell.writer, true}, Side{inst, thread, write}, at, cell_bytes);
    }
    if (!atomic && cell.updater != kNobody && cell.updater != me) {
      f(Side{cell.update_inst, cell.updater, true}, Side{inst, thread, write}, at, cell_bytes);
    }
    if (!write) {
      if (cell.reader == kNobody) {
        cell.reader = me, cell.read_inst = inst;
      } else if (cell.reader != me) {
        cell.other_reader = me;
      }
      continue;
    }
    const int16_t reader = cell.reader != me ? cell.reader : cell.other_reader;
    if (reader != kNobody) f(Side{cell.read_inst, reader, false}, Side{inst, thread, true}, at, cell_bytes);
    if (atomic) {
      cell.updater = me, cell.update_inst = inst;
    } else {
      cell.writer = me, cell.write_inst = inst;
      cell.value = value, cell.has_value = access.values != nullptr;
    }
  }
}

}  // namespace pto::engine
