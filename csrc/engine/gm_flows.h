// Transfers that share the bandwidth of GM: none gets more than its own rate, and what is left is shared evenly.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace pto::engine {

class GmFlows {
 public:
  explicit GmFlows(double capacity) : capacity_(capacity) {}

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  // From `now` on, which is not before anything that happened.
  void Add(double now, double bytes, double rate, uint32_t id) {
    Advance(now);
    Group& g = Of(rate);
    g.flows.push({g.moved + bytes, id});
    Share();
  }

  // When the next transfer ends if no other begins.
  double NextEnd() const {
    double next = kNever;
    for (const Group& g : groups_) {
      if (!g.flows.empty()) next = std::min(next, now_ + std::max(0.0, g.flows.top().first - g.moved) / g.speed);
    }
    return next;
  }

  // Ends that transfer; returns its id.
  uint32_t End() {
    const double at = NextEnd();
    Group* ends = nullptr;
    double first = kNever;
    for (Group& g : groups_) {
      if (g.flows.empty()) continue;
      const double end = now_ + std::max(0.0, g.flows.top().first - g.moved) / g.speed;
      if (end < first) first = end, ends = &g;
    }
    Advance(at);
    const uint32_t id = ends->flows.top().second;
    ends->flows.pop();
    Share();
    return id;
  }

  double busy() const { return busy_; }  // cycles that all of the bandwidth would have been in use for

 private:
  // Those of one rate: each of them has moved the same since it began.
  struct Group {
    double rate = 0, speed = 0, moved = 0;
    using Flow = std::pair<double, uint32_t>;  // where `moved` ends it, id
    std::priority_queue<Flow, std::vector<Flow>, std::greater<Flow>> flows;
  };

  Group& Of(double rate) {
    for (Group& g : groups_) {
      if (g.rate == rate) return g;
    }
    const auto at = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.rate > rate; });
    Group fresh;
    fresh.rate = rate;
    return *groups_.insert(at, std::move(fresh));
  }

  void Advance(double now) {
    if (now <= now_) return;
    for (Group& g : groups_) {
      const double moved = g.speed * (now - now_);
      busy_ += moved * static_cast<double>(g.flows.size()) / capacity_;
      if (!g.flows.empty()) g.moved += moved;
    }
    now_ = now;
  }

  // Groups are in order of their rates.
  void Share() {
    double left = capacity_;
    size_t flows = 0;
    for (const Group& g : groups_) flows += g.flows.size();
    for (Group& g : groups_) {
      if (g.flows.empty()) continue;
      g.speed = std::min(g.rate, left / static_cast<double>(flows));
      left -= g.speed * static_cast<double>(g.flows.size());
      flows -= g.flows.size();
    }
  }

  const double capacity_;
  double now_ = 0, busy_ = 0;
  std::vector<Group> groups_;
};

}  // namespace pto::engine
