// GM as a launch sees it: the tensors given as arguments, and what lies at addresses that kernels read from memory.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "memory.h"

namespace pto::engine {

// kAtomic: read, combined and written in one step. kSpoil: written with what nobody has specified.
enum class Access : uint8_t { kRead, kWrite, kAtomic, kSpoil };

// Consecutive pages with the same rights.
struct PageRange {
  uint64_t from = 0, to = 0;
  bool readable = false, writable = false;

  bool Covers(uint64_t address, uint64_t n) const { return address >= from && address < to && n <= to - address; }
  bool Allows(Access access) const { return access == Access::kRead ? readable : writable; }
};

// The pages of this process, read from the system when first asked for and again before anything is denied.
class HostPages {
 public:
  // Whether [address, address + n) may be accessed; then *range covers it.
  bool Allow(uint64_t address, uint64_t n, Access access, PageRange* range);

 private:
  bool Find(uint64_t address, uint64_t n, Access access, PageRange* range) const;
  void Read();

  std::mutex mutex_;
  std::vector<PageRange> ranges_;  // ascending, adjacent ranges differ in rights
};

class GlobalMemory {
 public:
  explicit GlobalMemory(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}

  const std::vector<Tensor>& tensors() const { return tensors_; }
  HostPages& pages() const { return pages_; }

  // Pointer to elements of `element_bytes` at a host address. An aligned address inside a tensor gives a pointer into
  // that tensor, with its bounds; any other one a pointer by address.
  uint64_t PointerTo(uint64_t address, int64_t element_bytes) const;
  // Host address of a pointer.
  uint64_t AddressOf(uint64_t pointer) const;

 private:
  const std::vector<Tensor> tensors_;
  mutable HostPages pages_;
};

}  // namespace pto::engine
