// Two monitors of one block.
#pragma once

#include "code.h"

namespace pto::engine {

class MonitorPair final : public Monitor {
 public:
  MonitorPair(Monitor& first, Monitor& second) : first_(first), second_(second) {}

  void Start(const Core& core, Pipe pipe, const Command& command) override {
    first_.Start(core, pipe, command);
    second_.Start(core, pipe, command);
    first_steps_ = first_.WantsSteps(), second_steps_ = second_.WantsSteps();
  }
  void Done(const Core& core, Pipe pipe, const Command& command) override {
    first_.Done(core, pipe, command);
    second_.Done(core, pipe, command);
  }
  void Signal(const Core& core, Pipe pipe, const SyncPoint& point) override {
    first_.Signal(core, pipe, point);
    second_.Signal(core, pipe, point);
  }
  void Wait(const Core& core, Pipe pipe, const SyncPoint& point) override {
    first_.Wait(core, pipe, point);
    second_.Wait(core, pipe, point);
  }
  void Touch(const Context& c, const Inst* in, Memory memory, int64_t offset, int64_t bytes, Access access) override {
    first_.Touch(c, in, memory, offset, bytes, access);
    second_.Touch(c, in, memory, offset, bytes, access);
  }
  void TouchPlaces(const Context& c, const Inst* in, const int64_t* offsets, int count, int64_t bytes,
                   Access access) override {
    first_.TouchPlaces(c, in, offsets, count, bytes, access);
    second_.TouchPlaces(c, in, offsets, count, bytes, access);
  }
  void TouchGm(const Context& c, const Inst* in, const GmRange& range, Access access) override {
    first_.TouchGm(c, in, range, access);
    second_.TouchGm(c, in, range, access);
  }
  void TouchLanes(const Context& c, const Inst* in, const LaneAccess& access) override {
    first_.TouchLanes(c, in, access);
    second_.TouchLanes(c, in, access);
  }
  void SyncThreads(const Context& c, const Inst* in) override {
    first_.SyncThreads(c, in);
    second_.SyncThreads(c, in);
  }
  void FenceThreads(const Context& c, const Inst* in) override {
    first_.FenceThreads(c, in);
    second_.FenceThreads(c, in);
  }
  void MemBar(const Context& c, const Inst* in, uint8_t first, uint8_t second) override {
    first_.MemBar(c, in, first, second);
    second_.MemBar(c, in, first, second);
  }
  bool WantsSteps() const override { return first_steps_ || second_steps_; }
  void Step(const Context& c, const Inst* in) override {
    if (first_steps_) first_.Step(c, in);
    if (second_steps_) second_.Step(c, in);
  }

 private:
  Monitor &first_, &second_;
  bool first_steps_ = false, second_steps_ = false;  // of the running command
};

}  // namespace pto::engine
