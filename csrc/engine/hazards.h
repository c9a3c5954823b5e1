// The happens-before check of one block.
//
// Every pipe has a vector clock: which commands of the others are known to be done when its next one begins. Flags,
// tokens, barriers and unit flags carry clocks from who signals to who waits; the scalar unit's knowledge goes with
// each command it issues. What it itself accessed does not: that takes a flag. Two accesses to a byte of which one
// writes must be ordered by those clocks, whatever order they were executed in.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "clock.h"
#include "cube_memory.h"
#include "gm_history.h"
#include "gm_repeats.h"
#include "lane_places.h"
#include "paged_array.h"
#include "report.h"
#include "shadow.h"
#include "shared_bytes.h"
#include "thread_races.h"
#include "vector_order.h"

namespace pto::engine {

// The flags among blocks of a launch. Written between the rounds in which the blocks run.
class BarrierClocks {
 public:
  BarrierRounds Get(int barrier, uint32_t round) const { return delivered_[barrier].at(round - 1); }
  size_t Rounds(int barrier) const { return delivered_[barrier].size(); }
  void Deliver(int barrier, const BarrierRounds& rounds) { delivered_[barrier].push_back(rounds); }

 private:
  std::vector<BarrierRounds> delivered_[kBarriers];
};

class HazardMonitor final : public Monitor {
 public:
  HazardMonitor(const CompiledFunction& function, const LaunchOptions& options, const BarrierClocks& barriers);

  void Reset(int64_t block);
  // After the end of the kernel. The block's share of the GM history goes to `history`.
  void Finish(GmHistory* history);
  std::vector<Finding> Findings() const;

  // Joins what the cores of this block knew of rounds when they set one.
  void AddRound(int barrier, uint32_t round, BarrierRounds* rounds) const;

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
  void FenceThreads(const Context& c, const Inst* in) override;
  void MemBar(const Context& c, const Inst* in, uint8_t first, uint8_t second) override;

 private:
  struct Agent {
    Clock knows;
    uint32_t done = 0;
    uint32_t scalar_version = 0;  // of the scalar unit's knowledge it has
    uint32_t gm_clock = 0;        // number of its knowledge among the block's clocks, from 1
  };
  // A command as reports need it.
  struct Executed {
    const Code* code = nullptr;  // what its accesses name their instructions in
    const Inst* inst = nullptr;
    int64_t issued = 0;
    uint32_t execution = 0;
  };
  struct Running {
    const Core* core = nullptr;  // null: none
    int agent = 0;
    uint32_t gm_command = 0;  // from 1; 0: has not accessed GM
    bool lanes = false;       // has accessed memory by threads
  };

  Clock Snapshot(int agent) const;
  void Learn(int agent, const Clock& clock);
  void LearnScalar(const Core& core, const Clock& clock);
  void Begin(const Core& core, int agent, const Code* code, const Inst* inst, int64_t issued);
  void End();
  // An access of the scalar unit, outside any command, counts as a command of its own.
  template <class F>
  void InCommand(const Context& c, const Inst* in, F f);
  // Notes that the running command accesses GM by an instruction; what is common to its accesses.
  GmAccess BeginGm(const Context& c, const Inst* in, Access access);
  void AddGm(const Context& c, GmAccess entry, GmRange range);
  // The last access is complete.
  void CloseGm();
  static void FindTensor(const Context& c, GmRange* range);
  // What vector_order_ calls for two accesses of the running vector function.
  auto OrderConflict(const Context& c, const Inst* in, Memory memory, bool scalar, bool write);
  // Whether an access through a pointer into a view stays in it, and finds there what was stored through it.
  void CheckView(const Context& c, uint32_t inst, Memory memory, int64_t offset, int64_t bytes, Access access);
  // Bytes that are read through a view and were overwritten through another.
  void FindLost(const Context& c, uint32_t inst, Memory memory, int64_t offset, int64_t bytes, uint16_t view);
  // Names of the views that bytes of a memory lie in.
  std::string ViewNames(const Finding& f) const;
  void CheckThreads(const Context& c, uint32_t inst, const LaneAccess& access, const int64_t* at);
  void Conflict(int agent, uint32_t granule, const Record& r, uint32_t mask, uint32_t inst, bool write, bool reach);
  // The two sides of a finding as they are found, by their instructions; a pair is put into words once.
  struct Sides {
    const Inst* first = nullptr;
    const Inst* second = nullptr;
    uint32_t kind = 0;  // whatever else makes it a finding of its own
    uint32_t first_seq = 0, second_seq = 0;
    bool operator==(const Sides& o) const { return first == o.first && second == o.second && kind == o.kind; }
  };
  struct HashSides {
    size_t operator()(const Sides& s) const {
      const size_t a = reinterpret_cast<uintptr_t>(s.first), b = reinterpret_cast<uintptr_t>(s.second);
      return (a * UINT64_C(0x9E3779B97F4A7C15) ^ b) * UINT64_C(0xBF58476D1CE4E5B9) + s.kind;
    }
  };
  // A finding, and the numbers of the two commands it names.
  struct Found {
    Finding finding;
    std::pair<uint32_t, uint32_t> seqs;
  };
  void Extend(Found* found, const Sides& sides, int64_t begin, int64_t end);
  // Counts a pair that is known already.
  bool Again(const Sides& sides, int64_t begin, int64_t end);
  void Report(const Sides& sides, Finding f);
  // A set that may come before the wait for the set before it.
  void CheckSet(const Core& core, int agent, const SyncPoint& point);
  AccessPlace Place(int agent, uint32_t seq, uint32_t inst, bool write) const;
  void Uninitialised(const Context& c, const Inst* in, Memory memory, int64_t offset, int64_t bytes, bool strict);
  static uint32_t Index(const Code& code, const Inst* in) { return static_cast<uint32_t>(in - code.insts.data()); }

  const CompiledFunction& function_;
  const bool full_;
  const BarrierClocks& barriers_;
  int64_t block_ = 0;
  Agent agents_[kAgents];
  LanePlaces lane_places_;
  std::vector<Executed> executed_[kAgents];
  std::vector<uint32_t> executions_[kCoresOfBlock];  // by instruction of the scalar unit
  std::vector<Clock> scalar_[kCoresOfBlock];         // the scalar unit's knowledge after each wait
  struct Flag {
    Clock clock;
    uint32_t waited = 0;  // number of the command that waited for it last; 0: none has
  };
  static size_t FlagNumber(int slot, const SyncPoint& p) {
    return static_cast<size_t>(((slot * kPipes + p.a) * kPipes + p.b) * kEventIds + p.c);
  }
  PagedArray<Flag, kEventIds> flags_;
  PagedArray<Clock, kPipes> tokens_;  // by core, id and who released
  std::deque<Clock> intra_[IntraFlags::kVectorCores][2][IntraFlags::kIds];
  std::map<std::pair<int, int>, Clock> units_;
  uint32_t sets_[kCoresOfBlock][kBarriers] = {}, waits_[kCoresOfBlock][kBarriers] = {};
  Running running_;
  Shadow shadow_;
  std::vector<Piece> pieces_;  // of the running gather or scatter
  SharedBytes shared_bytes_;
  std::vector<VectorOrder> vector_order_;  // of each vector core
  std::vector<ThreadRaces> thread_races_;
  BlockHistory history_;
  GmRepeats gm_repeats_;  // of the running command
  bool gm_open_ = false;  // the last access to GM may be a repeated one, and may still grow
  std::map<std::pair<const Code*, uint32_t>, uint32_t> places_;
  std::map<std::tuple<int, int, int, int, std::string, std::string>, Found> findings_;
  std::unordered_map<Sides, Found*, HashSides> known_;
};

}  // namespace pto::engine
