#include "shadow.h"

#include <algorithm>

#include "cube_memory.h"

namespace pto::engine {

Shadow::Shadow(int64_t ub_bytes) {
  const int64_t sizes[] = {ub_bytes,      ub_bytes,      kL1Bytes,  kL0Bytes,   kL0Bytes,
                           kL0ScaleBytes, kL0ScaleBytes, kL0cBytes, kBiasBytes, kFixpipeBytes};
  for (size_t i = 0; i < static_cast<size_t>(Memory::kMemories); ++i) {
    first_[i + 1] = first_[i] + static_cast<uint32_t>((sizes[i] + kGranule - 1) / kGranule);
  }
  cells_.resize(first_.back());
  pending_.resize(first_.back());
  known_.resize(first_.back());
}

void Shadow::Reset() {
  for (const uint32_t granule : touched_) cells_[granule].clear();
  for (const uint32_t granule : dirty_) pending_[granule] = Pending();
  std::fill(known_.begin(), known_.end(), 0);
  touched_.clear();
  dirty_.clear();
}

bool Shadow::Touch(Memory memory, int64_t offset, int64_t bytes, Access access, uint32_t inst, bool strict) {
  if (bytes <= 0) return true;
  const uint32_t base = first_[static_cast<size_t>(memory)];
  const bool read = access == Access::kRead || access == Access::kAtomic;
  bool some = false, all = true;
  for (int64_t at = offset, end = offset + bytes; at < end;) {
    const int64_t from = at % kGranule, to = std::min(kGranule, from + end - at);
    const uint32_t granule = base + static_cast<uint32_t>(at / kGranule), mask = GranuleMask(from, to);
    Pending& p = pending_[granule];
    if (!(p.read | p.written)) dirty_.push_back(granule);
    if (read) {
      const uint32_t known = known_[granule] & mask;
      some |= known != 0;
      all &= known == mask;
      p.read |= mask;
      p.read_inst = inst;
    }
    if (access == Access::kSpoil) known_[granule] &= ~mask;
    if (access == Access::kWrite || access == Access::kAtomic) known_[granule] |= mask;
    if (access != Access::kRead) {
      p.written |= mask;
      p.written_inst = inst;
    }
    at += to - from;
  }
  return !read || (strict ? all : some);
}

void Shadow::Discard() {
  for (const uint32_t granule : dirty_) pending_[granule] = Pending();
  dirty_.clear();
}

// Only the last access of a pipe to a byte counts: whoever is ordered after it is ordered after the earlier ones. A
// write also ends the earlier records of its bytes that it is known to come after; that is left to the pipes' records.
void Shadow::Insert(Cell* cell, const Record& record) {
  size_t kept = 0;
  for (Record& r : *cell) {
    if (r.agent == record.agent && (record.write || !r.write)) r.mask &= ~record.mask;
    if (r.mask) (*cell)[kept++] = r;
  }
  cell->resize(kept);
  if (cell->size() >= kMostRecords) cell->erase(cell->begin());
  cell->push_back(record);
}

Memory Shadow::MemoryOf(uint32_t granule, int64_t* offset) const {
  size_t m = 0;
  while (granule >= first_[m + 1]) ++m;
  *offset = static_cast<int64_t>(granule - first_[m]) * kGranule;
  return static_cast<Memory>(m);
}

}  // namespace pto::engine
