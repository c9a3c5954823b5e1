// Pointers from addresses, and which addresses may be accessed.
#include "global_memory.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>

namespace pto::engine {

bool HostPages::Allow(uint64_t address, uint64_t n, Access access, PageRange* range) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (Find(address, n, access, range)) return true;
  Read();  // memory may have been mapped since
  return Find(address, n, access, range);
}

bool HostPages::Find(uint64_t address, uint64_t n, Access access, PageRange* range) const {
  auto it = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                             [](uint64_t a, const PageRange& r) { return a < r.from; });
  if (it == ranges_.begin()) return false;
  *range = *--it;
  while (range->Allows(access) && !range->Covers(address, n)) {
    if (++it == ranges_.end() || it->from != range->to) return false;
    range->to = it->to;
    range->readable &= it->readable, range->writable &= it->writable;
  }
  return range->Allows(access);
}

void HostPages::Read() {
  ranges_.clear();
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), &std::fclose);
  if (!maps) return;
  char line[512];
  bool start = true;  // of a line; paths may be longer than the buffer
  while (std::fgets(line, sizeof(line), maps.get())) {
    const bool whole = start;
    start = std::strchr(line, '\n') != nullptr;
    PageRange r;
    char rights[5] = "", name[8] = "";
    if (!whole || std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %7s", &r.from, &r.to, rights, name) < 3) {
      continue;
    }
    // The stack and what the kernel maps are no tensors; some of those pages fault although they seem readable.
    if (std::strncmp(name, "[stack", 6) == 0 || std::strncmp(name, "[v", 2) == 0) continue;
    r.readable = rights[0] == 'r', r.writable = rights[1] == 'w';
    if (!ranges_.empty() && ranges_.back().to == r.from && ranges_.back().readable == r.readable &&
        ranges_.back().writable == r.writable) {
      ranges_.back().to = r.to;
    } else {
      ranges_.push_back(r);
    }
  }
}

uint64_t GlobalMemory::PointerTo(uint64_t address, int64_t element_bytes) const {
  if (address > kOffsetMask) return MakePointer(kNoAddress, static_cast<int64_t>(address));
  const Tensor* best = nullptr;
  uint64_t room = 0;  // behind the address, in the tensor that has most of it: arguments may overlap
  if (address % static_cast<uint64_t>(element_bytes) == 0) {
    for (const Tensor& t : tensors_) {
      const uint64_t offset = address - reinterpret_cast<uintptr_t>(t.data);
      if (t.extent <= 0 || offset >= static_cast<uint64_t>(t.extent)) continue;
      if (static_cast<uint64_t>(t.extent) - offset > room) best = &t, room = static_cast<uint64_t>(t.extent) - offset;
    }
  }
  if (!best) return MakePointer(kByAddress, static_cast<int64_t>(address));
  return MakePointer(static_cast<uint32_t>(best - tensors_.data()) + 1,
                     static_cast<int64_t>(address - reinterpret_cast<uintptr_t>(best->data)));
}

uint64_t GlobalMemory::AddressOf(uint64_t pointer) const {
  const uint32_t object = ObjectOf(pointer);
  if (object - 1 >= tensors_.size()) return pointer & kOffsetMask;
  return reinterpret_cast<uintptr_t>(tensors_[object - 1].data) + static_cast<uint64_t>(OffsetOf(pointer));
}

}  // namespace pto::engine
