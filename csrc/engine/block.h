// One block of a launch: a vector core, a cube core, or a cube core with two vector cores.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core.h"
#include "cube_memory.h"
#include "hazards.h"
#include "monitor_pair.h"
#include "timing_launch.h"

namespace pto::engine {

class Block {
 public:
  Block(const CompiledFunction& function, const LaunchOptions& options, DrainPolicy& policy, CoreOrder& order,
        const BarrierClocks& barriers, const TimingLaunch* timing);

  // Becomes block `index` of `grid`, at the start of the kernel. Reuses all storage.
  void Reset(int64_t index, int64_t grid, const GlobalMemory& global, const std::vector<uint64_t>& arguments);

  // Goes on until all cores have finished (true) or wait for something that no core of this block can bring.
  bool Run();
  bool Finished() const { return finished_; }
  // Once finished: what must not be left over.
  void CheckEnd() const;
  [[noreturn]] void FailDeadlock() const;
  std::string Blocked() const;  // what every core waits for

  int64_t index() const { return index_; }
  std::string Text() const;  // printed so far, core after core
  void AddStats(LaunchStats* stats) const;
  HazardMonitor* hazards() { return hazards_.get(); }  // null: nothing is checked
  TimingMonitor* timing() { return timing_.get(); }    // null: no timing model
  const std::vector<std::unique_ptr<Core>>& cores() const { return cores_; }

 private:
  Monitor* Watcher() const;
  void CheckShared() const;
  uint64_t Random();

  const CompiledFunction& function_;
  const LaunchOptions& options_;
  std::vector<std::unique_ptr<Core>> cores_;  // the cube core first
  std::vector<Workspace> workspaces_;
  std::unique_ptr<BlockShared> shared_;  // with a cube core
  std::unique_ptr<HazardMonitor> hazards_;
  std::unique_ptr<TimingMonitor> timing_;
  std::unique_ptr<MonitorPair> both_;
  std::vector<uint8_t> done_;  // by core
  bool finished_ = false;
  uint64_t random_ = 0;
  int64_t index_ = 0;
};

}  // namespace pto::engine
