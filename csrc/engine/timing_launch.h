// The timing model of a launch: takes the traces of its blocks, and tells at the end how long everything took.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "report.h"
#include "timing_monitor.h"

namespace pto::engine {

class TimingLaunch {
 public:
  TimingLaunch(const CompiledFunction& function, int64_t grid, const LaunchOptions& options);

  const TimingPlaces& places() const { return places_; }
  const LaunchOptions& options() const { return options_; }
  // From any thread; the result does not depend on their order.
  void Add(int64_t block, BlockTrace trace);
  void Add(const TimingTotals& totals);
  // Once all blocks are there.
  void Report(LaunchReport* report) const;

 private:
  const CompiledFunction& function_;
  const LaunchOptions& options_;
  const TimingPlaces places_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const BlockTrace>> traces_;
  std::unordered_multimap<uint64_t, std::shared_ptr<const BlockTrace>> known_;  // by their hash: blocks often agree
  TimingTotals totals_;
};

}  // namespace pto::engine
