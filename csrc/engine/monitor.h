// What watches a launch without taking part in it: the checks of hazards and the timing model.
//
// A monitor belongs to one block and is told of its commands, of what they access, and of everything that orders them.
// The cores of a block run on one host thread at a time, so a monitor needs no locks.
#pragma once

#include <cstdint>

#include "global_memory.h"

namespace pto::engine {

class Core;
struct Command;
struct Context;
struct Inst;
enum Pipe : uint8_t;

// The memories of a block that hold data.
enum class Memory : uint8_t { kUb0, kUb1, kL1, kL0a, kL0b, kL0aScale, kL0bScale, kL0c, kBias, kFixpipe, kMemories };
constexpr const char* kMemoryNames[] = {"UB", "UB", "L1", "L0A", "L0B", "L0A_MX", "L0B_MX", "L0C", "BT", "FB"};

// Consecutive bytes of a tensor.
struct GmRange {
  uint32_t tensor = 0;               // from 1; 0: known by address only
  const uint8_t* address = nullptr;  // on the host
  int64_t offset = 0;                // in the tensor
  int64_t bytes = 0;
};

// What one instruction of a simt region accesses: one place for each active thread, at base + addresses[thread].
struct LaneAccess {
  bool gm = false;
  uint32_t tensor = 0;
  const uint8_t* base = nullptr;
  const int64_t* addresses = nullptr;
  int64_t bytes = 0;  // of each thread
  Access access = Access::kRead;
  // kWrite: component k of thread i is at values + (k * threads + i) * element.
  const uint8_t* values = nullptr;
  int64_t element = 0;
};

// Something that one pipe signals and another one waits for.
struct SyncPoint {
  enum Kind : uint8_t {
    kFlag,   // a: source pipe, b: destination pipe, c: id
    kToken,  // a: id; a wait is for all releases so far
    kIntra,  // a: vector core, b: 1 towards it, 0 from it, c: id; the n-th wait takes the n-th signal
    kUnit,   // a: unit of L0C, b: 1 written by a mad, 0 read by the fixpipe
    kCross,  // a: 1 among the cube cores, 0 among the vector cores, b: id; the n-th wait takes the n-th signals of all
    kBarrier,  // a: pipe, kPipeAll: all of the core; a wait only
  };
  Kind kind;
  int a = 0, b = 0, c = 0;
  const Inst* set = nullptr;  // of a flag that is set
};

class Monitor {
 public:
  virtual ~Monitor() = default;

  // A command is about to be executed; again when it had to stay in its queue.
  virtual void Start(const Core& core, Pipe pipe, const Command& command) = 0;
  // It has been executed.
  virtual void Done(const Core& core, Pipe pipe, const Command& command) = 0;

  // In effect when all earlier commands of the pipe are done.
  virtual void Signal(const Core& core, Pipe pipe, const SyncPoint& point) = 0;
  // Passed. Of the scalar unit when the pipe is S.
  virtual void Wait(const Core& core, Pipe pipe, const SyncPoint& point) = 0;

  // Accesses of the command that runs, or of the scalar unit when none does.
  virtual void Touch(const Context& c, const Inst* in, Memory memory, int64_t offset, int64_t bytes, Access access) = 0;
  // The same for an instruction of a vecscope that accesses `count` places, none of which crosses 32 bytes.
  virtual void TouchPlaces(const Context& c, const Inst* in, const int64_t* offsets, int count, int64_t bytes,
                           Access access) = 0;
  virtual void TouchGm(const Context& c, const Inst* in, const GmRange& range, Access access) = 0;
  virtual void TouchLanes(const Context& c, const Inst* in, const LaneAccess& access) = 0;
  // syncthreads of a simt region.
  virtual void SyncThreads(const Context& c, const Inst* in) = 0;
  // A fence: orders the threads of each warp that reaches it as a whole.
  virtual void FenceThreads(const Context& c, const Inst* in) = 0;
  // mem_bar of a vecscope: orders accesses of the classes `first` before those of `second`.
  enum Class : uint8_t { kVectorLoad = 1, kVectorStore = 2, kScalarLoad = 4, kScalarStore = 8 };
  virtual void MemBar(const Context& c, const Inst* in, uint8_t first, uint8_t second) = 0;

  // Whether every instruction of vector functions is of interest, and the call before each of them.
  virtual bool WantsSteps() const { return false; }
  virtual void Step(const Context& c, const Inst* in) {}
};

}  // namespace pto::engine
