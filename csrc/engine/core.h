// One core: a scalar unit that issues commands into one queue per pipe, and the pipes that execute them.
//
// A core is resumable. Run() goes on until the kernel has finished or the scalar unit waits for something only another
// core (or nothing) can bring; it may be called again, by any host thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "code.h"

namespace pto::engine {

class Builder;
struct BlockShared;

enum Pipe : uint8_t { kPipeS, kPipeV, kPipeM, kPipeMte1, kPipeMte2, kPipeMte3, kPipeFix, kPipes, kPipeAll = kPipes };
constexpr const char* kPipeNames[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"};
constexpr int kEventIds = 8;

// Executes a command of a pipe; false when it has to stay at the head of its queue.
struct Command;
using CommandFn = bool (*)(Core&, const Command&);

struct Command {
  CommandFn fn = nullptr;
  const Inst* inst = nullptr;        // the instruction of the scalar unit that issued it
  const uint64_t* values = nullptr;  // operand values captured at issue
  uint32_t first = 0, count = 0;     // the same as a range of the queue's storage
  // The scalar unit at issue, for monitors: how many waits it had passed, and how many instructions it had executed.
  uint32_t waits = 0;
  int64_t issued = 0;
};

// The scalar unit's progress.
struct ScalarProgress {
  uint32_t waits = 0;
  const int64_t* instructions = nullptr;
};

// FIFO with the operand values of its commands. What is done is dropped once the queue is empty, or has grown.
class CommandQueue {
 public:
  explicit CommandQueue(const ScalarProgress* progress) : progress_(progress) {}

  uint64_t* Push(CommandFn fn, const Inst* inst, uint32_t n_values) {
    if (head_ >= kMostDone) Compact();
    Command c;
    c.fn = fn;
    c.inst = inst;
    c.waits = progress_->waits;
    c.issued = *progress_->instructions;
    c.first = static_cast<uint32_t>(values_.size());
    c.count = n_values;
    commands_.push_back(c);
    values_.resize(values_.size() + n_values);
    return values_.data() + c.first;
  }
  bool Empty() const { return head_ == commands_.size(); }
  Command Head() const {
    Command c = commands_[head_];
    c.values = values_.data() + c.first;
    return c;
  }
  void Pop() {
    if (++head_ == commands_.size()) Clear();
  }
  void Clear() {
    head_ = 0;
    commands_.clear();
    values_.clear();
  }
  size_t Size() const { return commands_.size() - head_; }

 private:
  static constexpr size_t kMostDone = 1024;  // commands kept although they are done

  void Compact() {
    const uint32_t gone = Empty() ? static_cast<uint32_t>(values_.size()) : commands_[head_].first;
    commands_.erase(commands_.begin(), commands_.begin() + static_cast<std::ptrdiff_t>(head_));
    values_.erase(values_.begin(), values_.begin() + gone);
    for (Command& c : commands_) c.first -= gone;
    head_ = 0;
  }

  const ScalarProgress* progress_;
  std::vector<Command> commands_;
  std::vector<uint64_t> values_;
  size_t head_ = 0;
};

// Decides when the queues are worked off (policies.cc).
class DrainPolicy {
 public:
  virtual ~DrainPolicy() = default;
  virtual void AfterIssue(Core& core, Pipe pipe) = 0;
  // Works on all queues; false when nothing could be done.
  virtual bool Drain(Core& core) = 0;
};

// The cores of a launch among each other.
class CoreOrder {
 public:
  virtual ~CoreOrder() = default;
  // Returns when all lower blocks have stopped. Throws Cancelled when one of them has failed.
  virtual void Await(int64_t block) = 0;
};
struct Cancelled {};

// The place of a core in a launch.
struct Seat {
  int64_t block = 0, grid = 1;
  int sub_block = 0, sub_blocks = 1;
  BlockShared* shared = nullptr;
  const char* name = "";  // in a block with several cores
  Monitor* monitor = nullptr;
};

// Scratch of one host thread, lent to the core it runs.
struct Workspace {
  AlignedBytes ub;
  AlignedBytes vector;  // vector registers or lane arrays of the running vector function
  AlignedBytes mask;
  AlignedBytes scalar;  // its scalar frame
  AlignedBytes addresses;
};

// Unaligned streams of the running vector function.
struct StreamState {
  int64_t squeezed_bytes = 0;  // what the last vsqz kept
  int64_t position = 0;        // the register AR: bytes that vstur has counted
  // Store streams with bytes that no flush has written yet: number of the stream, and where it was last appended to.
  struct Open {
    uint64_t number = 0;
    const Inst* inst = nullptr;
  };
  std::vector<Open> open;
  uint64_t last_number = 0;

  void Reset() {
    squeezed_bytes = position = 0;
    open.clear();
  }
  void Close(uint64_t number) {
    for (Open& o : open) {
      if (o.number != number) continue;
      o = open.back();
      open.pop_back();
      return;
    }
  }
};

// get_buf and rls_buf: per id the releases in program order, and which of them have been executed.
struct BufferTokens {
  static constexpr int kIds = 32;
  struct Id {
    std::vector<uint8_t> done;   // by release
    size_t released = 0;         // all releases before this one are done
    const Inst* open = nullptr;  // the get that waits for its release to be issued
  };
  Id ids[kIds];

  void Reset() {
    for (Id& id : ids) id.done.clear(), id.released = 0, id.open = nullptr;
  }
  bool Passed(int id, uint64_t releases) const { return ids[id].released >= releases; }
  void Release(int id, uint64_t number) {
    Id& i = ids[id];
    i.done[number] = 1;
    while (i.released < i.done.size() && i.done[i.released]) ++i.released;
  }
};

// Flags among the cores of one kind. A core sets; when all have, every core's count goes up.
struct CrossFlags {
  static constexpr int kIds = 16;
  static constexpr uint32_t kMost = 15;  // the counters have 4 bits
  uint32_t set[kIds] = {};               // by this core
  uint32_t delivered[kIds] = {};         // set by all cores
  uint32_t count[kIds] = {};             // delivered and not waited for yet
};

// How mte_ub_gm and mte_l0c_gm combine with what is in GM.
struct StoreAtomic {
  enum Operation : uint8_t { kAdd, kMax, kMin };
  DType type = DType::kNone;  // off
  Operation operation = kAdd;

  Access GmAccess() const { return type == DType::kNone ? Access::kWrite : Access::kAtomic; }
  uint64_t Pack() const { return static_cast<uint64_t>(type) | static_cast<uint64_t>(operation) << 8; }
  static StoreAtomic Unpack(uint64_t word) {
    return {static_cast<DType>(word & 0xFF), static_cast<Operation>(word >> 8)};
  }
};

class Core {
 public:
  enum class State { kReady, kParked, kFinished };

  Core(const CompiledFunction& function, const LaunchOptions& options, DrainPolicy& policy, CoreOrder& order);

  // Takes a seat, at the start of the kernel. Reuses all storage.
  void Reset(const Seat& seat, const GlobalMemory& global, const std::vector<uint64_t>& arguments,
             Workspace* workspace);
  // Goes on until the kernel has ended with all queues empty, or nothing can go on without another core.
  State Run();
  // The same, at most for so many instructions of the scalar unit; kReady then.
  State RunFor(int64_t instructions);
  bool Moved() const { return moved_; }  // something happened in the last run
  // Flags and buffers at the end of the kernel.
  void CheckEnd() const;
  [[noreturn]] void FailDeadlock() const;
  [[noreturn]] void FailBlocked(const std::string& message) const;  // at what the core waits for
  void AddStats(LaunchStats* stats) const;

  // For the handlers.
  CommandQueue& queue(Pipe p) { return queues_[p]; }
  bool QueuesEmpty() const;
  bool RunPipe(Pipe p);     // as far as it can go; true when a command was done
  bool RunCommand(Pipe p);  // the first one; false when there is none or it has to stay
  void Issued(Pipe p) { policy_.AfterIssue(*this, p); }
  void Park(const Inst* in) { resume_ = in; }
  // What orders the pipes, for monitors.
  void Signal(Pipe pipe, const SyncPoint& point) const {
    if (__builtin_expect(monitor_ != nullptr, 0)) monitor_->Signal(*this, pipe, point);
  }
  void Waited(Pipe pipe, const SyncPoint& point) {
    if (pipe == kPipeS) ++progress_.waits;
    if (__builtin_expect(monitor_ != nullptr, 0)) monitor_->Wait(*this, pipe, point);
  }
  Monitor* monitor() const { return monitor_; }
  const ScalarProgress& progress() const { return progress_; }
  // Which core of its block: the vector cores of a block with a cube core come after it.
  int slot() const { return function_.core == CoreKind::kVector && function_.mixed ? 1 + sub_block : 0; }
  bool TestAndClear(Pipe src, Pipe dst, int id) {
    const uint8_t bit = static_cast<uint8_t>(1u << id);
    if (!(flags_[src][dst] & bit)) return false;
    flags_[src][dst] &= static_cast<uint8_t>(~bit);
    Waited(dst, {SyncPoint::kFlag, src, dst, id});
    return true;
  }
  void SetFlag(const Inst* in, Pipe src, Pipe dst, int id);
  void RunVectorFunction(const Code& code, const uint64_t* captured);
  [[noreturn]] void Fail(const Inst* in, const std::string& message, const char* pipe) const;

  const CompiledFunction& function() const { return function_; }
  Context& scalar() { return scalar_; }
  uint8_t* BufferStorage(const StackBuffer& b, int threads);

  int64_t block = 0, grid = 0;
  int sub_block = 0, sub_blocks = 1;
  BlockShared* shared = nullptr;
  const char* name = "";
  int64_t dma_commands = 0, dma_bytes = 0, vector_functions = 0, mad_commands = 0, mad_operations = 0;
  StreamState streams;
  BufferTokens tokens;
  CrossFlags cross;
  StoreAtomic store_atomic;
  uint64_t random = 0;    // state of a policy that draws
  PageRange known_pages;  // of the last access by address
  std::string text;       // printed so far

  void AwaitTurn() { order_.Await(block); }
  const LaunchOptions& options() const { return options_; }
  std::string Blocked() const;  // what every waiting pipe waits for

 private:
  State Finish();

  const CompiledFunction& function_;
  const LaunchOptions& options_;
  DrainPolicy& policy_;
  CoreOrder& order_;
  Context scalar_, vector_;
  std::vector<uint64_t> frame_;
  std::vector<StackBuffer> buffers_;
  std::vector<std::unique_ptr<AlignedBytes>> buffer_storage_;
  Monitor* monitor_ = nullptr;
  ScalarProgress progress_;
  std::vector<CommandQueue> queues_;
  uint8_t flags_[kPipes][kPipes] = {};
  const Inst* resume_ = nullptr;
  bool moved_ = false;
  Workspace* workspace_ = nullptr;
};

// What a command or the scalar unit waits for, empty when it is no wait of that family.
std::string DescribeTokenWait(const Command& c);
std::string DescribeTokenWait(const Context& c, const Inst* in);
std::string DescribeCrossWait(const Context& c, const Inst* in);
std::string DescribeIntraWait(const Core& core, const Command& c);
std::string DescribeMadWait(const Core& core, const Command& c);
std::string DescribeFixpipeWait(const Core& core, const Command& c);

// PIPE_ may stand before the name; ALL where it is allowed.
Pipe ParsePipe(Builder& b, std::string name, bool all_allowed);

// Handler of vecscope and simt in the scalar unit. a: index of the child code.
const Inst* IssueVectorFunction(Context& c, const Inst* in);

}  // namespace pto::engine
