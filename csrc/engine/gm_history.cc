#include "gm_history.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace pto::engine {
namespace {

// Pairs that are compared before the search is given up.
constexpr int64_t kMostPairs = 200'000'000;

bool Writes(const GmAccess& a) { return a.access != Access::kRead; }

bool Conflict(const GmAccess& a, const GmAccess& b) {
  if (!Writes(a) && !Writes(b)) return false;
  return !(a.access == Access::kAtomic && b.access == Access::kAtomic);
}

}  // namespace

std::string CoreName(const CompiledFunction& function, int agent) {
  static const char* const kNames[] = {"AIC", "AIV0", "AIV1"};
  return function.mixed ? kNames[agent / kPipes] : "";
}

void GmHistory::Add(BlockHistory block) {
  std::lock_guard<std::mutex> lock(mutex_);
  blocks_.push_back(std::move(block));
}

// Whether a is done before b begins, as b knows.
bool GmHistory::Ordered(const Item& a, const Item& b) const {
  const GmCommand& first = a.block->commands[a.access->command];
  const GmCommand& second = b.block->commands[b.access->command];
  const Clock& knows = b.block->clocks[b.access->clock];
  if (a.block == b.block) {
    if (first.agent == second.agent && InOrder(PipeOf(first.agent))) return first.seq < second.seq;
    return first.seq <= knows.at[first.agent];
  }
  for (const BarrierSet& set : a.block->sets) {
    if (set.round <= knows.rounds[set.barrier] && first.seq <= set.clock.at[first.agent]) return true;
  }
  return false;
}

Finding GmHistory::Describe(const Item& x, const Item& y, uint64_t begin, uint64_t end) const {
  const GmCommand &cx = x.block->commands[x.access->command], &cy = y.block->commands[y.access->command];
  // In one block the order of the program, among blocks that of their numbers.
  const bool swap = x.block == y.block ? cy.issued < cx.issued : y.block->block < x.block->block;
  const Item &a = swap ? y : x, &b = swap ? x : y;
  Finding f;
  f.kind = "race";
  f.memory = "GM";
  const auto side = [&](const Item& item) {
    const GmCommand& command = item.block->commands[item.access->command];
    const CodePlace& place = item.block->places[item.access->line];
    AccessPlace p;
    p.line = place.line;
    if (place.op) p.op = *place.op;
    p.pipe = kPipeNames[PipeOf(command.agent)];
    p.block = item.block->block;
    p.core = CoreName(function_, command.agent);
    p.write = Writes(*item.access);
    p.execution = command.execution;
    return p;
  };
  f.first = side(a), f.second = side(b);
  f.hazard = HazardName(f.first.write, f.second.write);
  if (a.access->tensor) f.tensor = TensorName(function_, a.access->tensor);
  f.begin = a.access->offset + static_cast<int64_t>(begin - a.access->begin);
  f.end = f.begin + static_cast<int64_t>(end - begin);
  f.missing = a.block == b.block ? "no " + f.first.pipe + "->" + f.second.pipe + " order between them"
                                 : "nothing orders block " + std::to_string(f.first.block) + " and block " +
                                       std::to_string(f.second.block) + " here";
  return f;
}

std::vector<Finding> GmHistory::Races(std::vector<std::string>* notes) {
  std::sort(blocks_.begin(), blocks_.end(),
            [](const BlockHistory& a, const BlockHistory& b) { return a.block < b.block; });
  for (const BlockHistory& b : blocks_) {
    if (!b.cut) continue;
    notes->push_back("block " + std::to_string(b.block) +
                     " accesses GM more often than is kept: later accesses were not compared");
    break;
  }
  // Only bytes that somebody writes matter.
  std::vector<std::pair<uint64_t, uint64_t>> written;
  for (const BlockHistory& b : blocks_) {
    for (const GmAccess& a : b.accesses) {
      if (Writes(a)) written.emplace_back(a.begin, a.end);
    }
  }
  std::sort(written.begin(), written.end());
  size_t merged = 0;
  for (const auto& range : written) {
    if (merged && range.first <= written[merged - 1].second) {
      written[merged - 1].second = std::max(written[merged - 1].second, range.second);
    } else {
      written[merged++] = range;
    }
  }
  written.resize(merged);
  std::vector<Item> items;
  for (const BlockHistory& b : blocks_) {
    for (const GmAccess& a : b.accesses) {
      auto it = std::upper_bound(written.begin(), written.end(), std::make_pair(a.end - 1, ~uint64_t{0}));
      if (it != written.begin() && std::prev(it)->second > a.begin) items.push_back({&b, &a});
    }
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.access->begin < b.access->begin; });
  std::map<std::tuple<int, int, int, int, bool>, Finding> found;
  std::vector<Item> active;
  int64_t pairs = 0;
  for (const Item& item : items) {
    size_t kept = 0;
    for (const Item& other : active) {
      if (other.access->end <= item.access->begin) continue;
      active[kept++] = other;
      ++pairs;
      if (other.block == item.block && other.access->command == item.access->command) continue;
      if (!Conflict(*other.access, *item.access) || Ordered(other, item) || Ordered(item, other)) continue;
      Finding f = Describe(other, item, std::max(other.access->begin, item.access->begin),
                           std::min(other.access->end, item.access->end));
      const auto key =
          std::make_tuple(f.first.line, f.second.line, f.first.write, f.second.write, f.first.block == f.second.block);
      f.count = static_cast<int64_t>(other.access->times) * item.access->times;
      auto [known, fresh] = found.try_emplace(key, f);
      if (fresh) continue;
      const int64_t count = known->second.count + f.count;
      if (std::make_pair(f.first.block, f.second.block) <
          std::make_pair(known->second.first.block, known->second.second.block)) {
        known->second = f;
      }
      known->second.count = count;
    }
    active.resize(kept);
    active.push_back(item);
    if (pairs > kMostPairs) {
      notes->push_back("too many accesses to the same bytes of GM: the search for races among them was not finished");
      break;
    }
  }
  std::vector<Finding> all;
  for (auto& [key, f] : found) all.push_back(std::move(f));
  return all;
}

}  // namespace pto::engine
