// The result of the timing model as JSON.
#pragma once

#include <string>
#include <vector>

#include "timing_monitor.h"
#include "timing_replay.h"

namespace pto::engine {

class TimingReport {
 public:
  TimingReport(const TimingReplay& replay, const TimingPlaces& places, const TimingTotals& totals)
      : replay_(replay), places_(places), totals_(totals) {}

  std::string Timing(std::vector<std::string>* notes) const;
  // Of as many blocks as have no more events together; `notes` says which were left out.
  std::string Timeline(int64_t max_events, std::vector<std::string>* notes) const;
  std::string Memory(int64_t max_extents, std::vector<std::string>* notes) const;

 private:
  // Consecutive parts of the longest chain, of one line each.
  struct Step {
    int line;
    std::string op, pipe;
    uint32_t block;
    std::string core;
    double cycles;
  };

  std::vector<Step> CriticalPath() const;
  std::string BoundBy(const std::vector<Step>& path) const;
  std::string Cores() const;
  std::string Lines() const;
  std::string CoreName(uint32_t block, size_t core) const;
  int64_t CountEvents(uint32_t block) const;
  void AddEvents(uint32_t block, int64_t most, std::string* out) const;

  const TimingReplay& replay_;
  const TimingPlaces& places_;
  const TimingTotals& totals_;
};

}  // namespace pto::engine
