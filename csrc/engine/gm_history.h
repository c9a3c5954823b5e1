// Accesses to GM of a whole launch, and the pairs among them that nothing orders.
//
// Blocks run one after the other or on several host threads, so what they do to GM is compared when all have ended.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "clock.h"
#include "report.h"

namespace pto::engine {

struct GmAccess {
  uint64_t begin = 0, end = 0;  // host addresses
  int64_t offset = 0;           // in the tensor
  uint32_t tensor = 0;
  uint32_t clock = 0;    // number of what the pipe knew, in its block
  uint32_t command = 0;  // number of the command in its block
  uint32_t line = 0;     // number of the place in the code, in its block
  uint32_t times = 1;    // how often
  Access access = Access::kRead;
};

// A command that accessed GM.
struct GmCommand {
  uint8_t agent = 0;
  uint32_t seq = 0;
  int64_t issued = 0;
  uint64_t execution = 0;
  bool ended = false;
};

// A flag among blocks, as one core set it.
struct BarrierSet {
  uint8_t barrier = 0;
  uint32_t round = 0;  // from 1
  Clock clock;
};

struct CodePlace {
  const std::string* op = nullptr;
  int line = -1;
};

struct BlockHistory {
  int64_t block = 0;
  std::vector<GmAccess> accesses;
  std::vector<GmCommand> commands;
  std::vector<Clock> clocks;
  std::vector<BarrierSet> sets;
  std::vector<CodePlace> places;
  bool cut = false;  // there were more accesses than are kept
};

class GmHistory {
 public:
  explicit GmHistory(const CompiledFunction& function) : function_(function) {}

  void Add(BlockHistory block);
  // All races, by block. Notes say what could not be looked at.
  std::vector<Finding> Races(std::vector<std::string>* notes);

 private:
  struct Item {
    const BlockHistory* block;
    const GmAccess* access;
  };
  bool Ordered(const Item& a, const Item& b) const;
  Finding Describe(const Item& a, const Item& b, uint64_t begin, uint64_t end) const;

  const CompiledFunction& function_;
  std::mutex mutex_;
  std::vector<BlockHistory> blocks_;
};

// Name of the core in a block, empty when it has only one.
std::string CoreName(const CompiledFunction& function, int agent);

}  // namespace pto::engine
