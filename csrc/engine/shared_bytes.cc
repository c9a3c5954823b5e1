#include "shared_bytes.h"

#include <algorithm>

namespace pto::engine {

Space SpaceOf(Memory memory) {
  switch (memory) {
    case Memory::kUb0:
    case Memory::kUb1:
      return Space::kUb;
    case Memory::kL1:
      return Space::kMat;
    case Memory::kL0a:
      return Space::kLeft;
    case Memory::kL0b:
      return Space::kRight;
    case Memory::kL0c:
      return Space::kAcc;
    case Memory::kBias:
      return Space::kBias;
    case Memory::kFixpipe:
      return Space::kScaling;
    default:
      return Space::kNone;
  }
}

SharedBytes::SharedBytes(const std::vector<PointerView>& views) : views_(views), written_(views.size() + 1) {
  for (size_t i = 0; i < views.size(); ++i) {
    for (size_t j = i + 1; j < views.size(); ++j) {
      if (views[i].space != views[j].space) continue;
      const int64_t begin = std::max(views[i].begin, views[j].begin), end = std::min(views[i].end, views[j].end);
      if (begin >= end) continue;
      spaces_.resize(static_cast<size_t>(kSpaceCount));
      std::vector<bool>& units = spaces_[static_cast<size_t>(views[i].space)];
      const size_t last = static_cast<size_t>((end + kUnit - 1) / kUnit);
      if (units.size() < last) units.resize(last);
      for (size_t unit = static_cast<size_t>(begin / kUnit); unit < last; ++unit) units[unit] = true;
    }
  }
}

void SharedBytes::Reset() {
  cells_.clear();
  std::fill(written_.begin(), written_.end(), 0);
  time_ = 0;
}

void SharedBytes::Write(Memory memory, int64_t offset, int64_t bytes, const Writer& writer) {
  Refill(writer.view);
  const Space space = SpaceOf(memory);
  for (int64_t unit = offset / kUnit; unit * kUnit < offset + bytes; ++unit) {
    if (!IsShared(space, unit)) continue;
    Cell& cell = cells_[Key(memory, unit)];
    if (cell.last.view && cell.last.view != writer.view) cell.lost.push_back({cell.last.view, time_});
    cell.lost.erase(
        std::remove_if(cell.lost.begin(), cell.lost.end(), [&](const Lost& l) { return l.view == writer.view; }),
        cell.lost.end());
    cell.last = writer;
  }
}

void SharedBytes::WriteUnknown(Memory memory, int64_t offset, int64_t bytes) {
  if (Empty()) return;
  const Space space = SpaceOf(memory);
  for (size_t i = 0; i < views_.size(); ++i) {
    const PointerView& v = views_[i];
    if (v.space == space && offset < v.end && offset + bytes > v.begin) Refill(static_cast<uint16_t>(i + 1));
  }
  for (int64_t unit = offset / kUnit; unit * kUnit < offset + bytes; ++unit) cells_.erase(Key(memory, unit));
}

}  // namespace pto::engine
