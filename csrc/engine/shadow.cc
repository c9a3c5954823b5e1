#include "shadow.h"

#include <algorithm>

#include "cube_memory.h"

namespace pto::engine {

Shadow::Shadow(int64_t ub_bytes) {
  const int64_t sizes[] = {ub_bytes,      ub_bytes,      kL1Bytes,  kL0Bytes,   kL0Bytes,
                           kL0ScaleBytes, kL0ScaleBytes, kL0cBytes, kBiasBytes, kFixpipeBytes};
  for (size_t i = 0; i < static_cast<size_t>(Memory::kMemories); ++i) {
    first_[i + 1] = first_[i] + static_cast<uint32_t>((sizes[i] + kCell - 1) / kCell * kCellGranules);
  }
  records_.resize(first_.back());
  known_.resize(first_.back());
  pending_.resize(first_.back() / kCellGranules);
}

void Shadow::Reset() {
  for (const uint32_t granule : touched_) records_[granule].clear();
  std::fill(known_.begin(), known_.end(), 0);
  touched_.clear();
  Discard();
}

// All 256 bytes of a cell.
bool Shadow::TouchCell(uint32_t cell, Access access, uint32_t inst, bool strict) {
  Pending& p = pending_[cell];
  if (!p.dirty) {
    p.dirty = true;
    dirty_.push_back(cell);
  }
  uint32_t* const known = &known_[cell * kCellGranules];
  uint32_t some = 0, all = ~0u;
  if (access == Access::kRead || access == Access::kAtomic) {
    for (int i = 0; i < kCellGranules; ++i) some |= known[i], all &= known[i];
    for (int i = 0; i < kCellGranules; ++i) p.read[i] = ~0u;
    for (int i = 0; i < kCellGranules; ++i) p.read_inst[i] = inst;
  }
  if (access == Access::kRead) return strict ? all == ~0u : some != 0;
  const uint32_t value = access == Access::kSpoil ? 0 : ~0u;
  for (int i = 0; i < kCellGranules; ++i) known[i] = value;
  for (int i = 0; i < kCellGranules; ++i) p.written[i] = ~0u;
  for (int i = 0; i < kCellGranules; ++i) p.written_inst[i] = inst;
  return access != Access::kAtomic || (strict ? all == ~0u : some != 0);
}

bool Shadow::Touch(Memory memory, int64_t offset, int64_t bytes, Access access, uint32_t inst, bool strict) {
  if (bytes <= 0) return true;
  const uint32_t base = first_[static_cast<size_t>(memory)];
  const bool read = access == Access::kRead || access == Access::kAtomic;
  bool some = false, all = true;
  for (int64_t at = offset, end = offset + bytes; at < end;) {
    if (at % kCell == 0 && end - at >= kCell) {
      const bool good = TouchCell(base / kCellGranules + static_cast<uint32_t>(at / kCell), access, inst, strict);
      some |= good, all &= good;
      at += kCell;
      continue;
    }
    const int64_t from = at % kGranule, to = std::min(kGranule, from + end - at);
    const uint32_t granule = base + static_cast<uint32_t>(at / kGranule), mask = GranuleMask(from, to);
    const uint32_t cell = granule / kCellGranules, i = granule % kCellGranules;
    Pending& p = pending_[cell];
    if (!p.dirty) {
      p.dirty = true;
      dirty_.push_back(cell);
    }
    if (read) {
      const uint32_t known = known_[granule] & mask;
      some |= known != 0;
      all &= known == mask;
      p.read[i] |= mask;
      p.read_inst[i] = inst;
    }
    if (access == Access::kSpoil) known_[granule] &= ~mask;
    if (access == Access::kWrite || access == Access::kAtomic) known_[granule] |= mask;
    if (access != Access::kRead) {
      p.written[i] |= mask;
      p.written_inst[i] = inst;
    }
    at += to - from;
  }
  return !read || (strict ? all : some);
}

void Shadow::TouchRegister(Memory memory, int64_t offset, int64_t bytes, uint32_t inst) {
  const int64_t needed = std::min(bytes, kGranule);
  Touch(memory, offset, needed, Access::kRead, inst, false);
  const uint32_t base = first_[static_cast<size_t>(memory)];
  for (int64_t at = offset + needed, end = offset + bytes; at < end;) {
    const int64_t from = at % kGranule, to = std::min(kGranule, from + end - at);
    const uint32_t granule = base + static_cast<uint32_t>(at / kGranule);
    Pending& p = pending_[granule / kCellGranules];
    if (!p.dirty) {
      p.dirty = true;
      dirty_.push_back(granule / kCellGranules);
    }
    p.reached[granule % kCellGranules] |= GranuleMask(from, to);
    p.reached_inst[granule % kCellGranules] = inst;
    at += to - from;
  }
}

void Shadow::Discard() {
  for (const uint32_t cell : dirty_) pending_[cell] = Pending();
  dirty_.clear();
}

// Only the last access of a pipe to a byte counts: whoever is ordered after it is ordered after the earlier ones. A
// write also ends the earlier records of its bytes that it is known to come after; that is left to the pipes' records.
void Shadow::Insert(Records* records, const Record& record) {
  size_t kept = 0;
  for (Record& r : *records) {
    if (r.agent == record.agent && (record.write || (!r.write && r.reach == record.reach))) r.mask &= ~record.mask;
    if (r.mask) (*records)[kept++] = r;
  }
  records->resize(kept);
  if (records->size() >= kMostRecords) records->erase(records->begin());
  records->push_back(record);
}

Memory Shadow::MemoryOf(uint32_t granule, int64_t* offset) const {
  size_t m = 0;
  while (granule >= first_[m + 1]) ++m;
  *offset = static_cast<int64_t>(granule - first_[m]) * kGranule;
  return static_cast<Memory>(m);
}

}  // namespace pto::engine
