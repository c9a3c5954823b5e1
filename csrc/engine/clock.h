// Vector clocks: what a pipe knows of the others of its block, and of the barriers among all blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core.h"

namespace pto::engine {

constexpr int kCoresOfBlock = 3;                 // the cube core and two vector cores
constexpr int kAgents = kCoresOfBlock * kPipes;  // pipes that execute something
constexpr int kBarriers = 2 * CrossFlags::kIds;  // flags among the vector cores, then among the cube cores

using BarrierRounds = std::array<uint32_t, kBarriers>;

struct Clock {
  std::array<uint32_t, kAgents> at{};  // commands of each pipe that are known to be done
  BarrierRounds rounds{};              // rounds of each flag among blocks that are known to be complete

  void Join(const Clock& other) {
    for (int i = 0; i < kAgents; ++i) at[i] = std::max(at[i], other.at[i]);
    JoinRounds(other.rounds);
  }
  void JoinRounds(const BarrierRounds& other) {
    for (int i = 0; i < kBarriers; ++i) rounds[i] = std::max(rounds[i], other[i]);
  }
};

inline int AgentOf(const Core& core, Pipe pipe) { return core.slot() * kPipes + pipe; }
inline Pipe PipeOf(int agent) { return static_cast<Pipe>(agent % kPipes); }

// Commands of these pipes are done one after the other; those of the others may overlap.
inline bool InOrder(Pipe pipe) { return pipe == kPipeS || pipe == kPipeV || pipe == kPipeM; }

}  // namespace pto::engine
