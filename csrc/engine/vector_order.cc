#include "vector_order.h"

#include <algorithm>

#include "code.h"

namespace pto::engine {

void VectorOrder::Begin() {
  start_ = time_;
  loads_.clear();
}

void VectorOrder::MemBar(uint8_t first, uint8_t second) {
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      if (first >> a & 1 && second >> b & 1) barrier_[a][b] = last_barrier_[a] = time_;
    }
  }
}

void VectorOrder::Note(Recent* recent, int mine, uint32_t mask, uint32_t inst) const {
  Last& now = recent->now;
  const bool live = now.time > start_;
  const uint32_t rest = live ? now.mask & ~mask : 0;
  if (rest && now.time <= last_barrier_[mine]) {
    Last& before = recent->before;
    const bool merge = before.time > start_ && before.mask;
    before = {merge ? std::min(before.time, now.time) : now.time, merge ? before.mask | rest : rest, now.inst};
    now.mask = mask;
  } else {
    now.mask = mask | rest;
  }
  now.time = time_, now.inst = inst;
}

bool VectorOrder::TouchPieces(const Code& code, uint32_t inst, int64_t step, bool write,
                              const std::vector<Piece>& pieces) {
  const size_t mine = write ? 1 : 0, first = write ? 0 : 1, stride = write ? 1 : 2;
  Execute(inst, step, static_cast<int>(mine));
  uint64_t ordered[4];
  for (size_t other = first; other < 4; other += stride) ordered[other] = std::max(start_, barrier_[other][mine]);
  // Of the loads before, those that the instruction needs come first; mostly it is one.
  uint32_t needed = ~0u;
  const auto clashes = [&](size_t other, const Last& last) {
    if (last.time <= ordered[other] || last.time == time_) return false;
    if (other & 1 || last.inst == needed) return (other & 1) != 0;
    if (!Flows(code, last.inst, inst)) return true;
    needed = last.inst;
    return false;
  };
  recent_.resize(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    Cell& cell = cells_[piece.granule / kCellGranules];
    Granule& granule = cell.granules[piece.granule % kCellGranules];
    bool clash = false;
    for (size_t other = first; other < 4; other += stride) {
      clash |= clashes(other, cell.whole[other]);
      if (cell.part[other] <= ordered[other]) continue;
      for (const Last* last : {&granule[other].now, &granule[other].before}) {
        clash |= (last->mask & piece.mask) && clashes(other, *last);
      }
    }
    if (clash) return false;
    recent_[i] = &granule[mine];
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    cells_[pieces[i].granule / kCellGranules].part[mine] = time_;
    Note(recent_[i], static_cast<int>(mine), pieces[i].mask, inst);
  }
  return true;
}

bool VectorOrder::Behind(const Code& code, uint32_t inst, uint64_t stored, int store) {
  const uint64_t barrier = barrier_[store][0];
  if (stored > barrier) return false;
  for (const auto& [load, time] : loads_) {
    if (time > barrier && Flows(code, load, inst)) return true;
  }
  return false;
}

// Values keep their registers, so what an instruction may depend on is a matter of the code alone.
bool VectorOrder::Flows(const Code& code, uint32_t load, uint32_t store) {
  auto [known, fresh] = flows_[&code].try_emplace(static_cast<uint64_t>(load) << 32 | store, false);
  if (!fresh) return known->second;
  // A scalar goes through the frame; what becomes of it is not followed.
  if (code.flow[load].written == 0) return known->second = true;
  std::vector<uint8_t> reached;
  auto mark = [&](uint32_t number) {
    if (number >= reached.size()) reached.resize(number + 1, 0);
    const bool is_new = !reached[number];
    reached[number] = 1;
    return is_new;
  };
  const auto written = [&](const Flow& flow, auto f) {
    bool any = false;
    for (uint32_t i = 0; i < flow.written; ++i) any |= f(code.registers[flow.first + i]);
    return any;
  };
  const auto reads_reached = [&](const Flow& flow) {
    for (uint32_t i = 0; i < flow.read; ++i) {
      const uint32_t number = code.registers[flow.first + flow.written + i];
      if (number < reached.size() && reached[number]) return true;
    }
    return false;
  };
  written(code.flow[load], mark);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Flow& flow : code.flow) {
      if (flow.written && reads_reached(flow)) changed |= written(flow, mark);
    }
  }
  return known->second = reads_reached(code.flow[store]);
}

}  // namespace pto::engine
