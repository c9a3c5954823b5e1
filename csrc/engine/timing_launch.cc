#include "timing_launch.h"

#include "timing_figures.h"
#include "timing_report.h"

namespace pto::engine {
namespace {

bool Same(const TimingTask& a, const TimingTask& b) {
  return a.place == b.place && a.first_sync == b.first_sync && a.syncs == b.syncs && a.drains == b.drains &&
         a.issued == b.issued && a.cost == b.cost && a.latency == b.latency && a.gm_bytes[0] == b.gm_bytes[0] &&
         a.gm_bytes[1] == b.gm_bytes[1] && a.gm_rate == b.gm_rate && a.traffic == b.traffic &&
         a.hot_sector == b.hot_sector && a.hot_cycles == b.hot_cycles;
}
bool Same(const TimingSync& a, const TimingSync& b) { return a.key == b.key && a.count == b.count; }
bool Same(const ScalarEvent& a, const ScalarEvent& b) {
  return a.at == b.at && a.kind == b.kind && Same(a.sync, b.sync) && a.cycles == b.cycles;
}

template <class T>
bool Same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Same(a[i], b[i])) return false;
  }
  return true;
}

// Traces with extents are never the same: they name what one block accessed.
bool Same(const BlockTrace& a, const BlockTrace& b) {
  for (size_t c = 0; c < a.cores.size(); ++c) {
    const CoreTrace &x = a.cores[c], &y = b.cores[c];
    if (!x.extents.empty() || !y.extents.empty()) return false;
    if (x.instructions != y.instructions || !Same(x.scalar, y.scalar)) return false;
    for (int p = 0; p < kPipes; ++p) {
      if (!Same(x.tasks[p], y.tasks[p]) || !Same(x.syncs[p], y.syncs[p])) return false;
    }
  }
  return true;
}

uint64_t Hash(const BlockTrace& trace) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * UINT64_C(0x100000001b3); };
  for (const CoreTrace& core : trace.cores) {
    add(static_cast<uint64_t>(core.instructions));
    add(core.scalar.size());
    for (const auto& tasks : core.tasks) {
      add(tasks.size());
      for (const TimingTask& t : tasks) {
        add(t.place);
        add(static_cast<uint64_t>(t.issued));
        add(static_cast<uint64_t>(t.traffic));
        add(static_cast<uint64_t>(t.cost));
        add(t.hot_sector);
      }
    }
  }
  return hash;
}

}  // namespace

TimingLaunch::TimingLaunch(const CompiledFunction& function, int64_t grid, const LaunchOptions& options)
    : function_(function), options_(options), places_(function), traces_(static_cast<size_t>(grid)) {}

void TimingLaunch::Add(int64_t block, BlockTrace trace) {
  const uint64_t hash = Hash(trace);
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [first, end] = known_.equal_range(hash);
  for (auto it = first; it != end; ++it) {
    if (!Same(*it->second, trace)) continue;
    traces_[static_cast<size_t>(block)] = it->second;
    return;
  }
  auto shared = std::make_shared<const BlockTrace>(std::move(trace));
  known_.emplace(hash, shared);
  traces_[static_cast<size_t>(block)] = std::move(shared);
}

void TimingLaunch::Add(const TimingTotals& totals) {
  std::lock_guard<std::mutex> lock(mutex_);
  totals_.Merge(totals);
}

void TimingLaunch::Report(LaunchReport* report) const {
  std::vector<bool> cube_cores(traces_.front()->cores.size(), false);
  cube_cores[0] = function_.core == CoreKind::kCube;
  Chip chip;
  chip.cores = static_cast<int64_t>(cube_cores[0] ? figure::kCubeCores : figure::kVectorCores);
  for (int i = 0; i < 2; ++i) chip.first_share[i] = totals_.coverage[i].FirstShare();
  TimingReplay replay(traces_, places_, chip, cube_cores);
  replay.Run();
  const TimingReport text(replay, places_, totals_);
  report->timing = text.Timing(&report->notes);
  if (options_.timeline) {
    report->timeline = text.Timeline(options_.max_events, &report->notes);
    report->memory = text.Memory(options_.max_events, &report->notes);
  }
  if (replay.forgot()) {
    report->notes.push_back("timing: the launch has more than " + std::to_string(TimingReplay::kMostTasks) +
                            " commands; when they happened is kept for its first and last blocks only");
  }
}

}  // namespace pto::engine
