// The scalar unit of a core and the state of its vector functions.
#include "core.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "report.h"

namespace pto::engine {

void Context::Fail(const Inst* in, const std::string& message) const {
  const size_t index = static_cast<size_t>(in - code->insts.data());
  ErrorPlace place;
  place.function = code->function->name;
  place.file = *code->file;
  place.core = core->block;
  place.core_name = core->name;
  place.pipe = pipe;
  if (index < code->debug.size()) {
    const DebugInfo& d = code->debug[index];
    if (d.op) place.op = *d.op;
    place.line = d.line;
  }
  throw Error(message, place);
}

void Context::FailSteps(const Inst* in) const { Fail(in, "the step limit is reached: the kernel seems to be endless"); }

namespace {

std::string Hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
  return text;
}

constexpr int64_t kNullPages = 64 * 1024;  // never mapped

}  // namespace

uint8_t* Context::GmByAddress(const Inst* in, uint64_t pointer, int64_t delta, int64_t n, Access access,
                              int64_t alignment) const {
  if (ObjectOf(pointer) != kByAddress) FailGm(in, pointer, OffsetOf(pointer) + delta, n);
  const int64_t base = static_cast<int64_t>(pointer & kOffsetMask);
  int64_t address = 0, end = 0;
  if (__builtin_add_overflow(base, delta, &address) || __builtin_add_overflow(address, n, &end) || address < 0 ||
      end > static_cast<int64_t>(kOffsetMask)) {
    Fail(in, "GM access out of bounds: " + std::to_string(n) + " bytes at " + std::to_string(delta) +
                 " bytes from address " + Hex(static_cast<uint64_t>(base)) + ", which comes from memory");
  }
  const uint64_t at = static_cast<uint64_t>(address);
  if (address < kNullPages) Fail(in, "GM access through a null pointer: address " + Hex(at) + " comes from memory");
  if (address & (alignment - 1)) {
    Fail(in, "misaligned access: address " + Hex(at) + ", which comes from memory, is not a multiple of " +
                 std::to_string(alignment) + " bytes");
  }
  PageRange& known = core->known_pages;
  const bool seen = known.Covers(at, static_cast<uint64_t>(n)) && known.Allows(access);
  if (!seen && !global->pages().Allow(at, static_cast<uint64_t>(n), access, &known)) {
    Fail(in, std::string("GM access out of bounds: the process cannot ") +
                 (access == Access::kRead ? "read " : "write ") + std::to_string(n) + " bytes at address " + Hex(at) +
                 ", which comes from memory; addresses are data_ptr() of CPU tensors that still exist");
  }
  return reinterpret_cast<uint8_t*>(at);
}

void Context::FailGm(const Inst* in, uint64_t pointer, int64_t offset, int64_t n) const {
  const uint32_t t = ObjectOf(pointer);
  if (t == kNoAddress) {
    Fail(in, "GM access through an integer that is no address: it has more than 48 bits, the lower ones are " +
                 Hex(pointer & kOffsetMask));
  }
  if (t - 1 >= n_tensors) Fail(in, "GM access through a pointer that does not come from a pointer argument");
  std::string s = "GM access out of bounds: " + std::to_string(n) + " bytes at byte offset " + std::to_string(offset) +
                  " of tensor " + TensorName(*code->function, t);
  if (tensors[t - 1].extent >= 0) s += ", which has " + std::to_string(tensors[t - 1].extent) + " bytes";
  Fail(in, s);
}

void Context::FailUb(const Inst* in, int64_t offset, int64_t n) const {
  if (!ub) Fail(in, "a cube core has no UB of its own");
  Fail(in, "UB access out of bounds: " + std::to_string(n) + " bytes at address " + std::to_string(offset) +
               ", the UB has " + std::to_string(ub_bytes) + " bytes");
}

void Context::FailAlignment(const Inst* in, int64_t offset, int64_t alignment) const {
  Fail(in, "misaligned access: address " + std::to_string(offset) + " is not a multiple of " +
               std::to_string(alignment) + " bytes");
}

void Context::FailStack(const Inst* in, int64_t element, int64_t count) const {
  Fail(in, "buffer access out of bounds: element " + std::to_string(element) + " of " + std::to_string(count));
}

void Context::BindStack(const Inst* in, uint64_t pointer, int wanted, int bytes) const {
  StackBuffer& b = buffers[ObjectOf(pointer)];
  if (b.element_bytes != bytes) {
    Fail(in, "a buffer of " + std::to_string(b.element_bytes) + "-byte elements is accessed with " +
                 std::to_string(bytes) + "-byte elements");
  }
  if (b.threads != 0) {
    Fail(in, "a buffer is used by " + std::to_string(b.threads) + " threads and by " + std::to_string(wanted));
  }
  b.base = core->BufferStorage(b, wanted);
  b.threads = wanted;
}

Core::Core(const CompiledFunction& function, const LaunchOptions& options, DrainPolicy& policy, CoreOrder& order)
    : function_(function),
      options_(options),
      policy_(policy),
      order_(order),
      queues_(kPipes, CommandQueue(&progress_)) {
  progress_.instructions = &scalar_.counts[kCountScalar];
  buffer_storage_.resize(function.buffers.size());
}

uint8_t* Core::BufferStorage(const StackBuffer& b, int threads) {
  auto& storage = buffer_storage_[static_cast<size_t>(&b - buffers_.data())];
  if (!storage) storage = std::make_unique<AlignedBytes>();
  const size_t bytes = static_cast<size_t>(b.count) * b.element_bytes * threads;
  uint8_t* base = storage->Ensure(bytes);
  std::memset(base, options_.poison_byte, bytes);
  return base;
}

void Core::Reset(const Seat& seat, const GlobalMemory& global, const std::vector<uint64_t>& arguments,
                 Workspace* workspace) {
  block = seat.block;
  grid = seat.grid;
  sub_block = seat.sub_block;
  sub_blocks = seat.sub_blocks;
  shared = seat.shared;
  name = seat.name;
  moved_ = false;
  workspace_ = workspace;
  dma_commands = dma_bytes = vector_functions = mad_commands = mad_operations = 0;
  for (CommandQueue& q : queues_) q.Clear();
  std::memset(flags_, 0, sizeof(flags_));
  frame_ = function_.code.image;
  for (size_t i = 0; i < arguments.size(); ++i) frame_[function_.parameter_slots[i] / 8] = arguments[i];
  buffers_ = function_.buffers;
  tokens.Reset();
  cross = CrossFlags();
  store_atomic = StoreAtomic();
  text.clear();
  monitor_ = seat.monitor;
  progress_.waits = 0;
  random = options_.policy_seed * UINT64_C(0x9E3779B97F4A7C15) + static_cast<uint64_t>(block) * 3 +
           static_cast<uint64_t>(sub_block);

  Context& s = scalar_;
  s = Context();
  s.s = reinterpret_cast<uint8_t*>(frame_.data());
  if (function_.core == CoreKind::kVector) {
    s.ub = workspace->ub.Ensure(static_cast<size_t>(options_.ub_bytes));
    s.ub_bytes = options_.ub_bytes;
    std::memset(s.ub, options_.poison_byte, static_cast<size_t>(options_.ub_bytes));
  }
  s.tensors = global.tensors().data();
  s.n_tensors = static_cast<uint32_t>(global.tensors().size());
  s.global = &global;
  known_pages = PageRange();
  s.buffers = buffers_.data();
  s.budget = options_.max_steps_per_core;
  s.perturbed = options_.perturbation.has_value();
  s.seed = options_.perturbation.value_or(0);
  s.code = &function_.code;
  s.core = this;
  s.monitor = monitor_;
  s.ub_memory = sub_block ? Memory::kUb1 : Memory::kUb0;
  vector_ = s;
  vector_.pipe = "V";
  resume_ = function_.code.insts.data();
}

Core::State Core::Run() {
  while (resume_) {
    const Inst* in = resume_;
    resume_ = nullptr;
    do {
      ++scalar_.counts[in->counter];
      in = in->fn(scalar_, in);
    } while (in);
    if (resume_) --scalar_.counts[resume_->counter];  // it has not been executed
    const bool progress = policy_.Drain(*this);
    // The parked instruction runs again and may find its condition fulfilled already, by the drain inside AfterIssue.
    if (resume_ && !progress) return State::kParked;
  }
  return Finish();
}

Core::State Core::RunFor(int64_t instructions) {
  moved_ = false;
  while (resume_) {
    const Inst* in = resume_;
    resume_ = nullptr;
    for (;;) {
      ++scalar_.counts[in->counter];
      in = in->fn(scalar_, in);
      if (!in) break;
      moved_ = true;
      if (--instructions <= 0) {
        resume_ = in;
        return State::kReady;
      }
    }
    if (resume_) --scalar_.counts[resume_->counter];  // it has not been executed
    const bool progress = policy_.Drain(*this);
    moved_ |= progress;
    if (resume_ && !progress) return State::kParked;
  }
  return Finish();
}

// The scalar unit is at its end: what is in the queues may still wait for another core.
Core::State Core::Finish() {
  while (!QueuesEmpty() && policy_.Drain(*this)) moved_ = true;
  return QueuesEmpty() ? State::kFinished : State::kParked;
}

void Core::RunVectorFunction(const Code& code, const uint64_t* captured) {
  Context& v = vector_;
  ++vector_functions;
  v.code = &code;
  v.s = workspace_->scalar.Ensure(code.image.size() * 8 + 8);
  std::memcpy(v.s, code.image.data(), code.image.size() * 8);
  for (size_t i = 0; i < code.captures.size(); ++i) v.S<uint64_t>(code.captures[i].to) = captured[i];
  v.v = workspace_->vector.Ensure(code.vector_bytes);
  v.m = workspace_->mask.Ensure(code.mask_bytes);
  v.budget = scalar_.budget;
  const Inst* in = code.insts.data();
  if (code.simt) {
    v.threads = code.threads;
    v.mask = MaskState();
    v.mask.hi = v.mask.count = code.threads;
    v.addresses = reinterpret_cast<int64_t*>(workspace_->addresses.Ensure(2048 * sizeof(int64_t)));
    for (const LaneBuffer& b : code.lane_buffers) buffers_[b.number].base = v.v + b.slot;
    const bool steps = monitor_ && monitor_->WantsSteps();
    do {
      v.thread_instructions += in->counter ? v.mask.count : 0;
      if (__builtin_expect(steps, 0)) monitor_->Step(v, in);
      in = in->fn(v, in);
    } while (in);
  } else {
    streams.Reset();
    if (__builtin_expect(monitor_ && monitor_->WantsSteps(), 0)) {
      do {
        ++v.counts[in->counter];
        monitor_->Step(v, in);
        in = in->fn(v, in);
      } while (in);
    } else {
      do {
        ++v.counts[in->counter];
        in = in->fn(v, in);
      } while (in);
    }
    if (!streams.open.empty())
      v.Fail(streams.open.front().inst, "the store stream is never flushed: vstas or vstar is missing");
  }
  scalar_.budget = v.budget;
}

void Core::AddStats(LaunchStats* stats) const {
  ++stats->cores;
  stats->scalar_instructions += scalar_.counts[kCountScalar];
  stats->vf_scalar_instructions += vector_.counts[kCountScalar];
  stats->vector_instructions += vector_.counts[kCountVector];
  stats->simt_thread_instructions += vector_.thread_instructions;
  stats->vector_functions += vector_functions;
  stats->dma_commands += dma_commands;
  stats->dma_bytes += dma_bytes;
  stats->mad_commands += mad_commands;
  stats->mad_operations += mad_operations;
}

}  // namespace pto::engine
