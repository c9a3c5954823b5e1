// How long a SIMT function takes. Each warp goes through the same instructions one after the other; it waits for each,
// but for what it loads from GM only where that is used. Four schedulers issue for all warps, and share the port to UB.
#pragma once

#include <unordered_map>
#include <vector>

#include "code.h"
#include "sub_banks.h"

namespace pto::engine {

// What one run of a function took.
struct SimtRun {
  struct Line {
    uint32_t inst;
    int64_t cycles, executions;  // its share of the time
  };
  int64_t cycles = 0;
  uint64_t hot_sector = 0;  // of GM: that with most atomics, and their cycles
  double hot_cycles = 0;
  std::vector<Line> lines;
};

// 128 bytes of a tensor; tensor 0: of the host's memory.
struct GmSector {
  uint32_t tensor;
  int64_t number;
};

class SimtTiming {
 public:
  void Begin(const Code& code);
  // Before each instruction; its accesses follow.
  void Step(const Context& c, const Inst* in);
  // Adds the sectors of GM that each warp moves.
  void Lanes(const Context& c, const Inst* in, const LaneAccess& access, std::vector<GmSector>* moved);
  void SyncThreads();
  SimtRun End();

 private:
  static constexpr int kWarp = 32;
  static constexpr int kMostWarps = 64;
  struct Costs {
    std::vector<float> latency;  // by instruction, 0: takes no time
  };

  const Costs& CostsOf(const Code& code);
  template <class F>
  static void ForWarps(const Context& c, F f) {
    const MaskState& m = c.mask;
    for (int first = m.lo / kWarp * kWarp; first < m.hi; first += kWarp) {
      const int lo = first > m.lo ? first : m.lo, hi = first + kWarp < m.hi ? first + kWarp : m.hi;
      f(first / kWarp, lo, hi);
    }
  }
  // A lane array that is on its way from GM.
  struct Pending {
    uint32_t slot = 0;
    double ready[kMostWarps] = {};  // by warp
  };

  const Flow& FlowOf(const Inst* in) const { return code_->flow[static_cast<size_t>(in - code_->insts.data())]; }
  // Waits for the values that an instruction uses, and forgets those that it replaces.
  void WaitForOperands(const Context& c, const Inst* in);
  Pending& PendingFor(uint32_t slot);

  std::unordered_map<const Code*, Costs> costs_;
  const Code* code_ = nullptr;
  const Costs* current_ = nullptr;
  double time_[kMostWarps] = {};
  double issued_ = 0;
  double ub_ = 0;  // cycles of the port
  int warps_ = 0;
  std::vector<Pending> pending_;
  SubBanks sub_banks_;
  std::vector<double> spent_;  // by instruction
  std::vector<int64_t> executed_;
  std::unordered_map<uint64_t, double> atomics_;  // by sector: cycles
};

}  // namespace pto::engine
