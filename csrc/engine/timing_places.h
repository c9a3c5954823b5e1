// Numbers for the instructions of a kernel, the same for every block and thread, and what the timing model has to know
// of each.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "timing_trace.h"

namespace pto::engine {

// How a command is charged (command_costs.h).
enum class CommandKind : uint8_t {
  kSync,  // flags, tokens, barriers
  kVector,
  kGmUb,
  kUbGm,
  kGmL1,
  kUbL1,
  kL1L0,
  kL1Scale,
  kL1Bias,
  kL1Fixpipe,
  kL1Ub,
  kFixpipe,
  kMad,
  kMemory,  // inside one memory, or filling one
};

class TimingPlaces {
 public:
  explicit TimingPlaces(const CompiledFunction& function);

  TimingPlace Of(const Code& code, uint32_t inst) const { return first_.at(&code) + inst; }
  TimingPlace Of(const Code& code, const Inst* in) const {
    return Of(code, static_cast<uint32_t>(in - code.insts.data()));
  }
  CommandKind KindOf(TimingPlace place) const { return kinds_[place]; }
  int line(TimingPlace place) const { return debug_[place].line; }
  std::string op(TimingPlace place) const { return debug_[place].op ? *debug_[place].op : ""; }
  TimingPlace scalar() const { return static_cast<TimingPlace>(debug_.size() - 1); }  // the kernel, of its scalar unit
  size_t size() const { return debug_.size(); }

 private:
  void Add(const Code& code);

  std::unordered_map<const Code*, TimingPlace> first_;
  std::vector<DebugInfo> debug_;
  std::vector<CommandKind> kinds_;
};

}  // namespace pto::engine
