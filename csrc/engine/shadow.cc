#include "shadow.h"

#include <algorithm>

#include "cube_memory.h"

namespace pto::engine {

namespace {

std::array<uint32_t, static_cast<size_t>(Memory::kMemories) + 1> FirstGranules(int64_t ub_bytes) {
  const int64_t sizes[] = {ub_bytes,      ub_bytes,      kL1Bytes,  kL0Bytes,   kL0Bytes,
                           kL0ScaleBytes, kL0ScaleBytes, kL0cBytes, kBiasBytes, kFixpipeBytes};
  std::array<uint32_t, static_cast<size_t>(Memory::kMemories) + 1> first{};
  for (size_t i = 0; i < static_cast<size_t>(Memory::kMemories); ++i) {
    first[i + 1] = first[i] + static_cast<uint32_t>((sizes[i] + kCell - 1) / kCell * kCellGranules);
  }
  return first;
}

}  // namespace

Shadow::Shadow(int64_t ub_bytes) : first_(FirstGranules(ub_bytes)), cells_(first_.back() / kCellGranules) {}

void Shadow::Reset() {
  Discard();
  for (const uint32_t number : used_) {
    Cell& cell = cells_[number];
    std::fill(std::begin(cell.known), std::end(cell.known), 0);
    for (Records& records : cell.records) records.clear();
    cell.used = false;
  }
  used_.clear();
}

// All 256 bytes of a cell.
bool Shadow::TouchCell(uint32_t number, Access access, uint32_t inst, bool strict) {
  Cell& cell = Dirty(number);
  Pending& p = cell.pending;
  uint32_t* const known = cell.known;
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

bool Shadow::TouchMany(Memory memory, int64_t offset, int64_t bytes, Access access, uint32_t inst, bool strict) {
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
    const uint32_t mask = GranuleMask(from, to);
    const uint32_t known = TouchGranule(base + static_cast<uint32_t>(at / kGranule), mask, access, inst);
    some |= known != 0;
    all &= known == mask;
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
    Pending& p = Dirty(granule / kCellGranules).pending;
    p.reached[granule % kCellGranules] |= GranuleMask(from, to);
    p.reached_inst[granule % kCellGranules] = inst;
    at += to - from;
  }
}

void Shadow::Discard() {
  for (const uint32_t number : dirty_) {
    cells_[number].pending = Pending();
    cells_[number].dirty = false;
  }
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
