// When everything in a launch happened: the traces of all blocks, played on a chip.
//
// Every core has a scalar unit that issues commands in program order and pipes that execute them. A command begins when
// it is issued, the one before it has left the pipe, and what it waits for has been signalled. Transfers to and from GM
// share its bandwidth. A block begins when a core is free. The result depends on the traces alone.
#pragma once

#include <array>
#include <memory>
#include <queue>
#include <unordered_map>
#include <vector>

#include "gm_flows.h"
#include "timing_places.h"

namespace pto::engine {

// A task of a launch, or an event of a scalar unit (pipe S).
struct TaskRef {
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  uint32_t block = kNone;
  uint8_t core = 0;
  uint8_t pipe = 0;
  uint32_t index = 0;

  bool Known() const { return block != kNone; }
};

// When a task happened, in cycles from the start of the launch.
struct TaskTime {
  double start = 0;
  double taken = 0;     // the pipe is free again
  double complete = 0;  // its effect is there
  double waited = 0;    // cycles before the start in which the pipe had nothing else to do but wait for a signal
  // What the start was waiting for last, and when that was: a task, or nothing.
  TaskRef cause;
  double cause_time = 0;
};

struct CoreTimes {
  std::vector<TaskTime> tasks[kPipes];  // of pipe S: its events
  double busy[kPipes] = {};
  double issuing = 0;  // cycles of the scalar unit
  double end = 0;
  int64_t commands[kPipes] = {};
};

struct BlockTimes {
  double start = 0, end = 0;
  TaskRef last;  // what the end was waiting for, until `last_time`: behind that the scalar unit went on
  double last_time = 0;
  uint8_t last_core = 0;
  int64_t before = -1;  // the block that had the core before
  std::vector<CoreTimes> cores;
};

struct Chip {
  int64_t cores = 0;      // that take a block each
  double first_share[2];  // of the bytes read and written: those that L2 does not hold
};

class TimingReplay {
 public:
  TimingReplay(const std::vector<std::shared_ptr<const BlockTrace>>& traces, const TimingPlaces& places,
               const Chip& chip, const std::vector<bool>& cube_cores);

  static constexpr int64_t kMostTasks = 16'000'000;  // of which it is kept when they happened
  static constexpr int64_t kKeptBlocks = 64;         // else: of the first and the last ones

  void Run();

  const std::vector<BlockTimes>& blocks() const { return times_; }
  double cycles() const { return cycles_; }
  int64_t last_block() const { return last_block_; }
  const std::vector<double>& place_cycles() const { return place_cycles_; }  // of commands, from start to completion
  bool forgot() const { return forget_; }  // when tasks happened is kept for some blocks only
  double gm_busy() const { return flows_.busy(); }
  const BlockTrace& trace(size_t block) const { return *traces_[block]; }

 private:
  // When a command was issued; the scalar unit could go on at `since`, because of `cause`.
  struct Issue {
    double at = 0, since = 0;
    TaskRef cause;
  };
  struct PipeState {
    uint32_t next = 0;          // the task to begin
    std::vector<Issue> issued;  // by task
    double free = 0;            // when the task before leaves the pipe
    double complete = 0;        // of all tasks so far
    TaskRef last;               // of these, the one that was complete last
    double held = 0;            // the running task ends not before this
    double covered = 0;         // busy until then
    bool moving = false;        // a transfer is under way
    bool scheduled = false;     // its next task begins at a known time
    uint32_t key = kNoKey;      // that it waits for
  };
  struct ScalarState {
    uint32_t event = 0;
    uint32_t pushed[kPipes] = {};
    int64_t instructions = 0;
    double time = 0;
    bool done = false;
    bool waits_all = false;  // for all pipes
    int waits_queue = -1;    // for a place in the queue of this pipe
    uint32_t key = kNoKey;
    TaskRef cause;     // of its last wait
    double since = 0;  // it ended
  };
  struct CoreState {
    PipeState pipes[kPipes];
    ScalarState scalar;
  };
  struct Signal {
    double at;
    TaskRef by;
  };
  struct BlockState {
    std::vector<CoreState> cores;
    std::vector<std::vector<Signal>> signals;           // by key
    std::vector<std::array<uint32_t, kBarriers>> sets;  // of barriers among blocks, by core
    int64_t unfinished = 0;                             // tasks and scalar units
  };
  // A barrier among blocks.
  struct Round {
    int64_t arrived = 0;
    Signal last{0, {}};
  };
  struct Agent {
    uint32_t block;
    uint8_t core, pipe;
  };
  struct Event {
    double at;
    uint64_t number;  // in order of their making
    Agent agent;
    bool new_block;
    bool operator>(const Event& o) const { return at != o.at ? at > o.at : number > o.number; }
  };

  static constexpr uint32_t kNoKey = 0xFFFFFFFE;

  void BeginBlock(uint32_t block, double at, int64_t before);
  void Wake(const Agent& agent) { work_.push_back(agent); }
  void Work();
  void RunScalar(const Agent& a);
  bool PassScalarEvent(const Agent& a, ScalarState* s, const ScalarEvent& e);
  void RunPipe(const Agent& a);
  bool Ready(const Agent& a, PipeState* p, const TimingTask& task, TaskTime* time);
  void BeginTask(const Agent& a);
  void EndTask(const Agent& a, double taken);
  bool Passed(const Agent& a, const TimingSync& sync, Signal* signal) const;
  void Fire(const Agent& a, uint32_t key, const Signal& signal);
  void Finished(uint32_t block);
  double IssueCost(TimingPlace place) const;
  TaskRef Ref(const Agent& a, uint32_t index) const { return {a.block, a.core, a.pipe, index}; }
  CoreState& StateOf(const Agent& a) { return states_[a.block]->cores[a.core]; }
  const CoreTrace& TraceOf(const Agent& a) const { return traces_[a.block]->cores[a.core]; }

  const std::vector<std::shared_ptr<const BlockTrace>>& traces_;
  const TimingPlaces& places_;
  const Chip chip_;
  const std::vector<bool> cube_cores_;  // by core of a block
  double charge_[2];                    // of a byte read or written, in bytes of GM
  std::vector<BlockTimes> times_;
  std::vector<std::unique_ptr<BlockState>> states_;
  std::vector<Round> rounds_[kBarriers];
  std::vector<Agent> flowing_;  // by id of a transfer
  std::vector<uint32_t> free_ids_;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events_;
  uint64_t event_number_ = 0;
  std::vector<Agent> work_;
  GmFlows flows_;
  std::unordered_map<uint64_t, double> sectors_;  // of GM, with atomics: until when they take
  std::vector<double> place_cycles_;
  bool forget_ = false;
  uint32_t next_block_ = 0;
  size_t ended_ = 0;  // blocks
  double cycles_ = 0;
  int64_t last_block_ = 0;
};

}  // namespace pto::engine
