// What the timing model keeps of a block while it is executed: its commands with their costs, and what orders them.
//
// The order in which commands were executed on the host leaves no mark. When everything happened is found out
// afterwards, for all blocks together (timing_replay.h).
#pragma once

#include <cstdint>
#include <vector>

#include "clock.h"
#include "cube_memory.h"

namespace pto::engine {

// What a command of the trace is: a line of the source and an operation. Numbers of a table that a launch has.
using TimingPlace = uint32_t;

// What is signalled in a block, by number: flags, tokens, flags between its cores, unit flags.
constexpr uint32_t kFlagKeys = kCoresOfBlock * kPipes * kPipes * kEventIds;
constexpr uint32_t kTokenKeys = kCoresOfBlock * BufferTokens::kIds * kPipes;
constexpr uint32_t kIntraKeys = IntraFlags::kVectorCores * 2 * IntraFlags::kIds;
constexpr uint32_t kUnitKeys = static_cast<uint32_t>(kL0cBytes / kUnitBytes) * 2;
constexpr uint32_t kTimingKeys = kFlagKeys + kTokenKeys + kIntraKeys + kUnitKeys;

// A wait is over once a key has been signalled `count` times. Keys from kCrossKey on are barriers among blocks.
struct TimingSync {
  uint32_t key = 0;
  uint32_t count = 0;  // 0: a signal
};
constexpr uint32_t kCrossKey = 0xFFFFFF00;

struct TimingTask {
  TimingPlace place = 0;
  uint32_t first_sync = 0;  // in CoreTrace::syncs; waits and signals
  uint16_t syncs = 0;
  bool drains = false;      // begins when all earlier ones are complete
  int64_t issued = 0;       // instructions of the scalar unit until its issue
  float cost = 0;           // cycles that the pipe is taken
  float latency = 0;        // from then to its completion
  float gm_bytes[2] = {};   // read and written, rows below a line counted as what they take
  float gm_rate = 0;        // most bytes a cycle
  int64_t traffic = 0;      // bytes to and from GM
  uint64_t hot_sector = 0;  // of GM, with atomics that take so many cycles one after the other
  float hot_cycles = 0;
};

// What the scalar unit does besides issuing commands.
struct ScalarEvent {
  enum Kind : uint8_t { kWait, kSignal, kBarrier, kDelay };
  int64_t at = 0;  // instructions until it
  Kind kind = kDelay;
  TimingSync sync;
  float cycles = 0;  // kDelay
  TimingPlace place = 0;
};

// What a command or a line of a vector function accessed.
struct TimingExtent {
  uint32_t task = 0;
  uint8_t pipe = 0;
  uint8_t memory = 0;
  bool write = false;
  int64_t begin = 0, end = 0;
  TimingPlace place = 0;
};

struct CoreTrace {
  std::vector<TimingTask> tasks[kPipes];
  std::vector<TimingSync> syncs[kPipes];
  std::vector<ScalarEvent> scalar;
  std::vector<TimingExtent> extents;  // of commands of this core
  int64_t instructions = 0;           // of the scalar unit
};

struct BlockTrace {
  std::vector<CoreTrace> cores;
};

}  // namespace pto::engine
