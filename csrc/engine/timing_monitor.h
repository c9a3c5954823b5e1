// Keeps the commands of a block for the timing model, with their costs and what orders them.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "command_costs.h"
#include "gm_coverage.h"
#include "simt_timing.h"
#include "timing_places.h"
#include "vector_timing.h"

namespace pto::engine {

// What adds up over blocks, whatever their order.
struct TimingTotals {
  struct Line {
    int64_t cycles = 0, executions = 0;
  };
  int64_t bytes[2] = {};       // read from and written to GM
  int64_t mad_operations = 0;  // 2 * m * n * k
  double mad_peak_cycles = 0;  // of these at the rate of their types
  int64_t vector_operations = 0;
  GmCoverage coverage[2];   // of reads and writes
  std::vector<Line> lines;  // of vector functions, by place

  void Merge(const TimingTotals& other);
};

// Blocks of which it is kept which memory they access when.
constexpr int64_t kBlocksWithExtents = 4;

class TimingMonitor final : public Monitor {
 public:
  // `extents`: whether what commands access in the memories of the block is kept.
  TimingMonitor(const CompiledFunction& function, const TimingPlaces& places, bool extents);

  void Reset(int64_t block);
  // After the end of a block.
  BlockTrace Take(const std::vector<std::unique_ptr<Core>>& cores);
  // After the last block.
  TimingTotals Totals();

  void Start(const Core& core, Pipe pipe, const Command& command) override;
  void Done(const Core& core, Pipe pipe, const Command& command) override;
  void Signal(const Core& core, Pipe pipe, const SyncPoint& point) override;
  void Wait(const Core& core, Pipe pipe, const SyncPoint& point) override;
  void Touch(const Context& c, const Inst* in, Memory memory, int64_t offset, int64_t bytes, Access access) override;
  void TouchPlaces(const Context& c, const Inst* in, const int64_t* offsets, int count, int64_t bytes,
                   Access access) override;
  void TouchGm(const Context& c, const Inst* in, const GmRange& range, Access access) override;
  void TouchLanes(const Context& c, const Inst* in, const LaneAccess& access) override;
  void SyncThreads(const Context& c, const Inst* in) override;
  void FenceThreads(const Context&, const Inst*) override {}  // no figure is known
  void MemBar(const Context& c, const Inst* in, uint8_t first, uint8_t second) override;
  bool WantsSteps() const override { return running_.steps; }
  void Step(const Context& c, const Inst* in) override;

 private:
  struct Running {
    const Core* core = nullptr;  // null: none
    Pipe pipe = kPipeS;
    CommandKind kind = CommandKind::kSync;
    const Code* code = nullptr;  // of a vector function
    bool steps = false;
    TimingTask task;
    std::vector<TimingSync> syncs;
    CommandAccesses accesses;
  };
  // A function whose time follows from what it is called with.
  struct KnownRun {
    VectorRun run;
    int64_t times = 0;
  };

  static uint32_t KeyOf(const Core& core, const SyncPoint& point, Pipe pipe);
  void AddSync(const Core& core, Pipe pipe, const TimingSync& sync);
  void AddScalar(const Core& core, ScalarEvent event);
  void BeginFunction(const Command& command);
  void EndFunction();
  void AddLines(const Code& code, const VectorRun& run, int64_t times);
  bool DependsOnData(const Code& code);
  void AddExtent(const Context& c, const Inst* in, Memory memory, int64_t offset, int64_t bytes, bool write);
  void AddTraffic(bool write, uint32_t tensor, int64_t offset, int64_t bytes);
  void ScalarGm(const Context& c, const GmRange& range, bool write);

  const TimingPlaces& places_;
  const bool extents_;
  int64_t block_ = 0;
  BlockTrace trace_;
  Running running_;
  uint32_t signals_[kTimingKeys] = {}, waits_[kTimingKeys] = {};
  uint32_t cross_waits_[kCoresOfBlock][kBarriers] = {};
  VectorTiming vector_;
  SimtTiming simt_;
  std::unordered_map<std::string, KnownRun> known_;  // by function and operands
  std::unordered_map<const Code*, bool> depends_on_data_;
  KnownRun* hit_ = nullptr;
  std::string call_;  // key of the running function
  std::vector<GmSector> sectors_;
  std::vector<int64_t> scalar_cache_[kCoresOfBlock];  // of GM lines, direct mapped
  TimingTotals totals_;
};

}  // namespace pto::engine
