// Who accessed which bytes of a block's memories last, in granules of 32 bytes with a bit for each byte.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "monitor.h"
#include "paged_array.h"

namespace pto::engine {

constexpr int64_t kGranule = 32;

// An access that later ones have to be ordered after.
struct Record {
  uint32_t mask = 0;
  uint32_t seq = 0;   // number of the command on its pipe
  uint32_t inst = 0;  // instruction in the code that accessed
  uint8_t agent = 0;
  bool write = false;
  bool reach = false;  // a read of bytes that nobody may need
};

// Bits of the bytes [from, to) of a granule.
inline uint32_t GranuleMask(int64_t from, int64_t to) {
  const uint32_t upper = to >= kGranule ? ~0u : (1u << to) - 1;
  return upper & ~((1u << from) - 1);
}

// Bytes of a granule of one memory.
struct Piece {
  uint32_t granule;
  uint32_t mask;
};

constexpr int kCellGranules = 8;  // 256 bytes, what a vector register holds
constexpr int64_t kCell = kCellGranules * kGranule;

// What the running command has accessed so far of 256 bytes, by granule.
struct Pending {
  uint32_t read[kCellGranules] = {}, written[kCellGranules] = {};
  uint32_t reached[kCellGranules] = {};  // read, but perhaps not needed
  uint32_t read_inst[kCellGranules] = {}, written_inst[kCellGranules] = {}, reached_inst[kCellGranules] = {};
};

class Shadow {
 public:
  explicit Shadow(int64_t ub_bytes);

  void Reset();

  // Notes an access of the running command; false: a read of bytes of which none was ever written, or (strict) one
  // was not.
  bool Touch(Memory memory, int64_t offset, int64_t bytes, Access access, uint32_t inst, bool strict) {
    const int64_t from = offset % kGranule;
    if (bytes <= 0 || from + bytes > kGranule) return TouchMany(memory, offset, bytes, access, inst, strict);
    const uint32_t granule = first_[static_cast<size_t>(memory)] + static_cast<uint32_t>(offset / kGranule);
    const uint32_t mask = GranuleMask(from, from + bytes);
    const uint32_t known = TouchGranule(granule, mask, access, inst);
    return access == Access::kWrite || access == Access::kSpoil || (strict ? known == mask : known != 0);
  }

  // The same for an access to many places, without an answer.
  void TouchPieces(Memory memory, const std::vector<Piece>& pieces, Access access, uint32_t inst) {
    const uint32_t base = first_[static_cast<size_t>(memory)];
    for (const Piece& piece : pieces) TouchGranule(base + piece.granule, piece.mask, access, inst);
  }

  // The same for a register load: only what it begins with is surely needed.
  void TouchRegister(Memory memory, int64_t offset, int64_t bytes, uint32_t inst);

  // Ends the running command: f(granule, record, pending mask, pending inst, write, reach) for each earlier record that
  // shares bytes with it where one of the two writes; then the command's own records are added.
  template <class F>
  void Fold(uint8_t agent, uint32_t seq, F conflict);

  // Ends the running command without a look at others.
  void Discard();

  // Memory and offset of a granule.
  Memory MemoryOf(uint32_t granule, int64_t* offset) const;

 private:
  using Records = std::vector<Record>;
  static constexpr size_t kMostRecords = 24;

  // 256 bytes of a memory, by granule.
  struct Cell {
    uint32_t known[kCellGranules] = {};  // bytes that have been written
    bool used = false;                   // by the present block
    bool dirty = false;                  // there is something pending
    Pending pending;
    Records records[kCellGranules];
  };

  // A cell that the running command accesses.
  Cell& Dirty(uint32_t number) {
    Cell& cell = cells_[number];
    if (!cell.dirty) {
      cell.dirty = true;
      dirty_.push_back(number);
      if (!cell.used) used_.push_back(number);
      cell.used = true;
    }
    return cell;
  }
  // Which of these bytes were known before.
  uint32_t TouchGranule(uint32_t granule, uint32_t mask, Access access, uint32_t inst) {
    Cell& cell = Dirty(granule / kCellGranules);
    const uint32_t i = granule % kCellGranules;
    const uint32_t known = cell.known[i] & mask;
    if (access == Access::kRead || access == Access::kAtomic) {
      cell.pending.read[i] |= mask;
      cell.pending.read_inst[i] = inst;
    }
    if (access == Access::kRead) return known;
    cell.known[i] = access == Access::kSpoil ? cell.known[i] & ~mask : cell.known[i] | mask;
    cell.pending.written[i] |= mask;
    cell.pending.written_inst[i] = inst;
    return known;
  }
  bool TouchCell(uint32_t number, Access access, uint32_t inst, bool strict);
  bool TouchMany(Memory memory, int64_t offset, int64_t bytes, Access access, uint32_t inst, bool strict);
  void Insert(Records* records, const Record& record);

  std::array<uint32_t, static_cast<size_t>(Memory::kMemories) + 1> first_{};  // granule of each memory
  PagedArray<Cell, 32> cells_;
  std::vector<uint32_t> dirty_;  // cells with something pending
  std::vector<uint32_t> used_;   // cells that have to be cleared
};

template <class F>
void Shadow::Fold(uint8_t agent, uint32_t seq, F conflict) {
  for (const uint32_t number : dirty_) {
    Cell& cell = cells_[number];
    Pending& p = cell.pending;
    for (uint32_t i = 0; i < kCellGranules; ++i) {
      if (!(p.read[i] | p.written[i] | p.reached[i])) continue;
      const uint32_t granule = number * kCellGranules + i;
      Records& records = cell.records[i];
      for (const Record& r : records) {
        const uint32_t written = p.written[i] & r.mask;
        const uint32_t read = r.write ? p.read[i] & r.mask : 0;
        const uint32_t reached = r.write ? p.reached[i] & ~p.read[i] & r.mask : 0;
        if (written) conflict(granule, r, written, p.written_inst[i], true, r.reach);
        if (read) conflict(granule, r, read, p.read_inst[i], false, false);
        if (reached) conflict(granule, r, reached, p.reached_inst[i], false, true);
      }
      if (p.written[i]) Insert(&records, {p.written[i], seq, p.written_inst[i], agent, true});
      const uint32_t only_read = p.read[i] & ~p.written[i];
      if (only_read) Insert(&records, {only_read, seq, p.read_inst[i], agent, false});
      const uint32_t only_reached = p.reached[i] & ~p.read[i] & ~p.written[i];
      if (only_reached) Insert(&records, {only_reached, seq, p.reached_inst[i], agent, false, true});
    }
    p = Pending();
    cell.dirty = false;
  }
  dirty_.clear();
}

}  // namespace pto::engine
