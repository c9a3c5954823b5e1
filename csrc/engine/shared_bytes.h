// Buffers that share bytes of a memory: a value stored through one must not be lost to a store through another before
// it is read.
//
// What counts as lost: a byte that was last written through another buffer than the one it is read through, after it
// had been written through that one, if nothing at all has been written through that one since. A buffer that is filled
// anew only in part is read where it holds what is left of others, too, by code that has no use for these values.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "monitor.h"
#include "pointer_views.h"

namespace pto::engine {

Space SpaceOf(Memory memory);

class SharedBytes {
 public:
  // A command of an agent, and the instruction in its code.
  struct Writer {
    uint16_t view = 0;
    int agent = 0;
    uint32_t seq = 0, inst = 0;
  };

  explicit SharedBytes(const std::vector<PointerView>& views);

  // Whether there are no such buffers.
  bool Empty() const { return spaces_.empty(); }
  void Reset();

  // Something is written through a view, be it nothing.
  void Refill(uint16_t view) {
    if (!Empty()) written_[view] = ++time_;
  }
  void Write(Memory memory, int64_t offset, int64_t bytes, const Writer& writer);
  // The same through a pointer that may be into any view: what lies there may be what any of them holds.
  void WriteUnknown(Memory memory, int64_t offset, int64_t bytes);
  // f(writer, begin, end) for lost bytes.
  template <class F>
  void Read(Memory memory, int64_t offset, int64_t bytes, uint16_t view, F f);

 private:
  static constexpr int64_t kUnit = 32;
  struct Lost {
    uint16_t view = 0;
    uint64_t time = 0;
  };
  struct Cell {
    Writer last;
    std::vector<Lost> lost;
  };

  static uint64_t Key(Memory memory, int64_t unit) {
    return static_cast<uint64_t>(memory) << 32 | static_cast<uint64_t>(unit);
  }
  // Units of a memory that several views share.
  bool IsShared(Space space, int64_t unit) const {
    const std::vector<bool>& units = spaces_[static_cast<size_t>(space)];
    return static_cast<size_t>(unit) < units.size() && units[static_cast<size_t>(unit)];
  }

  const std::vector<PointerView>& views_;  // of the function
  std::vector<std::vector<bool>> spaces_;
  std::unordered_map<uint64_t, Cell> cells_;
  std::vector<uint64_t> written_;  // by view: when it was last written
  uint64_t time_ = 0;
};

template <class F>
void SharedBytes::Read(Memory memory, int64_t offset, int64_t bytes, uint16_t view, F f) {
  const Space space = SpaceOf(memory);
  for (int64_t unit = offset / kUnit; unit * kUnit < offset + bytes; ++unit) {
    if (!IsShared(space, unit)) continue;
    auto it = cells_.find(Key(memory, unit));
    if (it == cells_.end() || it->second.last.view == view) continue;
    for (const Lost& lost : it->second.lost) {
      if (lost.view != view || lost.time <= written_[view]) continue;
      const int64_t begin = unit * kUnit, end = begin + kUnit;
      f(it->second.last, begin < offset ? offset : begin, end < offset + bytes ? end : offset + bytes);
    }
  }
}

}  // namespace pto::engine
