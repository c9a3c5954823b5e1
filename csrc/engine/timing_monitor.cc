#include "timing_monitor.h"

#include <algorithm>
#include <cstring>

#include "fixpipe_work.h"
#include "timing_figures.h"

namespace pto::engine {
namespace {

constexpr size_t kMostKnownRuns = 4096;
constexpr int64_t kScalarLine = 64;

// The scalar unit goes on while a command stays at the head of its queue.
bool OfScalarUnit(const Context& c) { return c.pipe[0] == 'S' && c.pipe[1] == 0; }

}  // namespace

void TimingTotals::Merge(const TimingTotals& other) {
  for (int i = 0; i < 2; ++i) {
    bytes[i] += other.bytes[i];
    coverage[i].Merge(other.coverage[i]);
  }
  mad_operations += other.mad_operations;
  mad_peak_cycles += other.mad_peak_cycles;
  vector_operations += other.vector_operations;
  if (lines.size() < other.lines.size()) lines.resize(other.lines.size());
  for (size_t i = 0; i < other.lines.size(); ++i) {
    lines[i].cycles += other.lines[i].cycles;
    lines[i].executions += other.lines[i].executions;
  }
}

TimingMonitor::TimingMonitor(const CompiledFunction& function, const TimingPlaces& places, bool extents)
    : places_(places), extents_(extents) {
  trace_.cores.resize(function.vector_side ? kCoresOfBlock : 1);
  totals_.lines.resize(places.size());
}

void TimingMonitor::Reset(int64_t block) {
  block_ = block;
  const size_t cores = trace_.cores.size();
  trace_ = BlockTrace();
  trace_.cores.resize(cores);
  running_ = Running();
  std::memset(signals_, 0, sizeof(signals_));
  std::memset(waits_, 0, sizeof(waits_));
  std::memset(cross_waits_, 0, sizeof(cross_waits_));
  for (auto& cache : scalar_cache_) {
    cache.assign(static_cast<size_t>(figure::kScalarCacheBytes) / kScalarLine, -1);
  }
}

BlockTrace TimingMonitor::Take(const std::vector<std::unique_ptr<Core>>& cores) {
  for (const auto& core : cores) {
    trace_.cores[static_cast<size_t>(core->slot())].instructions = *core->progress().instructions;
  }
  BlockTrace trace = std::move(trace_);
  trace_ = BlockTrace();
  trace_.cores.resize(cores.size());
  return trace;
}

TimingTotals TimingMonitor::Totals() {
  for (auto& [call, known] : known_) {
    const Code* code = nullptr;
    std::memcpy(&code, call.data(), sizeof(code));
    AddLines(*code, known.run, known.times);
    known.times = 0;
  }
  return std::move(totals_);
}

void TimingMonitor::AddLines(const Code& code, const VectorRun& run, int64_t times) {
  const TimingPlace first = places_.Of(code, 0u);
  for (const VectorRun::Line& line : run.lines) {
    totals_.lines[first + line.inst].cycles += line.cycles * times;
    totals_.lines[first + line.inst].executions += line.executions * times;
  }
  totals_.vector_operations += run.operations * times;
}

// --- commands ---

void TimingMonitor::Start(const Core& core, Pipe pipe, const Command& command) {
  running_.core = &core;
  running_.pipe = pipe;
  running_.code = nullptr;
  running_.steps = false;
  running_.task = TimingTask();
  running_.syncs.clear();
  running_.task.place = places_.Of(core.function().code, command.inst);
  running_.task.issued = command.issued;
  running_.kind = places_.KindOf(running_.task.place);
  hit_ = nullptr;
  if (running_.kind != CommandKind::kSync) running_.accesses = CommandAccesses();
  if (running_.kind == CommandKind::kVector) {
    running_.code = core.function().code.children[command.inst->a].get();
    BeginFunction(command);
  }
}

void TimingMonitor::BeginFunction(const Command& command) {
  const Code& code = *running_.code;
  if (code.simt) {
    simt_.Begin(code);
    running_.steps = true;
    return;
  }
  if (!DependsOnData(code)) {
    const Code* address = &code;
    call_.assign(reinterpret_cast<const char*>(&address), sizeof(address));
    call_.append(reinterpret_cast<const char*>(command.values), code.captures.size() * sizeof(uint64_t));
    const auto found = known_.find(call_);
    if (found != known_.end()) {
      hit_ = &found->second;
      return;
    }
  } else {
    call_.clear();
  }
  vector_.Begin(code);
  running_.steps = true;
}

// Whether the time of a function follows from more than its operands: from what it loads.
bool TimingMonitor::DependsOnData(const Code& code) {
  const auto [known, fresh] = depends_on_data_.try_emplace(&code, false);
  if (!fresh) return known->second;
  for (size_t i = 0; i < code.insts.size(); ++i) {
    if (!code.debug[i].op) continue;
    const std::string& op = *code.debug[i].op;
    known->second |= op == "load" || op.rfind("vgather", 0) == 0 || op == "vscatter" || op == "vstur";
  }
  return known->second;
}

void TimingMonitor::EndFunction() {
  int64_t cycles = 0;
  if (running_.code->simt) {
    const SimtRun run = simt_.End();
    cycles = run.cycles;
    const TimingPlace first = places_.Of(*running_.code, 0u);
    for (const SimtRun::Line& line : run.lines) {
      totals_.lines[first + line.inst].cycles += line.cycles;
      totals_.lines[first + line.inst].executions += line.executions;
    }
    running_.task.gm_rate = static_cast<float>(figure::kGmUbRate);
    running_.task.hot_sector = run.hot_sector, running_.task.hot_cycles = static_cast<float>(run.hot_cycles);
  } else if (hit_) {
    ++hit_->times;
    cycles = hit_->run.cycles;
  } else {
    VectorRun run = vector_.End();
    cycles = run.cycles;
    if (!call_.empty() && known_.size() < kMostKnownRuns) {
      known_[call_] = {std::move(run), 1};
    } else {
      AddLines(*running_.code, run, 1);
    }
  }
  running_.task.cost = static_cast<float>(cycles);
}

void TimingMonitor::Done(const Core& core, Pipe pipe, const Command& command) {
  TimingTask& task = running_.task;
  CommandWork work;
  if (running_.kind == CommandKind::kVector) EndFunction();
  if (running_.kind == CommandKind::kMad) {
    const MadWork& mad = work.mad = MadWorkOf(core, command);
    totals_.mad_operations += 2 * mad.m * mad.n * mad.k;
    totals_.mad_peak_cycles += static_cast<double>(mad.m * mad.n) / (figure::kMadCube * figure::kMadCube) *
                               static_cast<double>(mad.k * mad.element_bits) / 256 *
                               (mad.whole_f32 ? figure::kMadF32Slowdown : 1);
  }
  if (running_.kind == CommandKind::kFixpipe) work.skips_rows = SkipsRowsOfL0c(core, command);
  ChargeCommand(running_.kind, &running_.accesses, work, &task);
  CoreTrace& trace = trace_.cores[static_cast<size_t>(core.slot())];
  task.first_sync = static_cast<uint32_t>(trace.syncs[pipe].size());
  task.syncs = static_cast<uint16_t>(running_.syncs.size());
  trace.syncs[pipe].insert(trace.syncs[pipe].end(), running_.syncs.begin(), running_.syncs.end());
  trace.tasks[pipe].push_back(task);
  running_.core = nullptr;
  running_.code = nullptr;
  running_.steps = false;
}

// --- what orders them ---

uint32_t TimingMonitor::KeyOf(const Core& core, const SyncPoint& p, Pipe pipe) {
  const uint32_t slot = static_cast<uint32_t>(core.slot());
  uint32_t key = 0;
  const uint32_t a = static_cast<uint32_t>(p.a), b = static_cast<uint32_t>(p.b), c = static_cast<uint32_t>(p.c);
  switch (p.kind) {
    case SyncPoint::kFlag:
      key = ((slot * kPipes + a) * kPipes + b) * kEventIds + c;
      break;
    case SyncPoint::kToken:
      key = kFlagKeys + (slot * BufferTokens::kIds + a) * kPipes + pipe;
      break;
    case SyncPoint::kIntra:
      key = kFlagKeys + kTokenKeys + (a * 2 + b) * IntraFlags::kIds + c;
      break;
    case SyncPoint::kUnit:
      key = kFlagKeys + kTokenKeys + kIntraKeys + a * 2 + b;
      break;
    case SyncPoint::kCross:
      return kCrossKey + a * CrossFlags::kIds + b;
    case SyncPoint::kBarrier:
      break;
  }
  return key;
}

void TimingMonitor::AddScalar(const Core& core, ScalarEvent event) {
  event.at = *core.progress().instructions;
  trace_.cores[static_cast<size_t>(core.slot())].scalar.push_back(event);
}

void TimingMonitor::AddSync(const Core& core, Pipe pipe, const TimingSync& sync) {
  if (pipe == kPipeS) {
    ScalarEvent event;
    event.kind = sync.count ? ScalarEvent::kWait : ScalarEvent::kSignal;
    event.sync = sync;
    AddScalar(core, event);
  } else {
    running_.syncs.push_back(sync);
  }
}

void TimingMonitor::Signal(const Core& core, Pipe pipe, const SyncPoint& p) {
  const uint32_t key = KeyOf(core, p, pipe);
  if (p.kind != SyncPoint::kCross) ++signals_[key];
  AddSync(core, pipe, {key, 0});
}

void TimingMonitor::Wait(const Core& core, Pipe pipe, const SyncPoint& p) {
  switch (p.kind) {
    case SyncPoint::kBarrier: {
      if (pipe != kPipeS) {
        running_.task.drains = true;
        return;
      }
      ScalarEvent event;
      event.kind = ScalarEvent::kBarrier;
      AddScalar(core, event);
      return;
    }
    case SyncPoint::kToken:
      for (int other = 0; other < kPipes; ++other) {
        const uint32_t key = KeyOf(core, p, static_cast<Pipe>(other));
        if (other != pipe && signals_[key]) AddSync(core, pipe, {key, signals_[key]});
      }
      return;
    case SyncPoint::kCross: {
      const uint32_t key = KeyOf(core, p, pipe);
      AddSync(core, pipe, {key, ++cross_waits_[core.slot()][key - kCrossKey]});
      return;
    }
    case SyncPoint::kIntra: {
      const uint32_t key = KeyOf(core, p, pipe);
      AddSync(core, pipe, {key, ++waits_[key]});
      return;
    }
    case SyncPoint::kFlag:
    case SyncPoint::kUnit: {
      const uint32_t key = KeyOf(core, p, pipe);
      if (signals_[key]) AddSync(core, pipe, {key, signals_[key]});
      return;
    }
  }
}

// --- accesses ---

void TimingMonitor::AddExtent(const Context& c, const Inst* in, Memory memory, int64_t offset, int64_t bytes,
                              bool write) {
  CoreTrace& trace = trace_.cores[static_cast<size_t>(running_.core->slot())];
  const uint32_t task = static_cast<uint32_t>(trace.tasks[running_.pipe].size());
  const TimingPlace place = places_.Of(*c.code, in);
  for (auto e = trace.extents.rbegin(); e != trace.extents.rend() && e->task == task && e->pipe == running_.pipe; ++e) {
    if (e->place != place || e->memory != static_cast<uint8_t>(memory) || e->write != write) continue;
    e->begin = std::min(e->begin, offset), e->end = std::max(e->end, offset + bytes);
    return;
  }
  TimingExtent e;
  e.task = task, e.pipe = running_.pipe, e.memory = static_cast<uint8_t>(memory), e.write = write;
  e.begin = offset, e.end = offset + bytes, e.place = place;
  trace.extents.push_back(e);
}

void TimingMonitor::Touch(const Context& c, const Inst* in, Memory memory, int64_t offset, int64_t bytes,
                          Access access) {
  if (OfScalarUnit(c) || access == Access::kSpoil || bytes <= 0) return;
  const bool write = access != Access::kRead;
  if (extents_ && block_ < kBlocksWithExtents) AddExtent(c, in, memory, offset, bytes, write);
  if (running_.code) {
    if (running_.steps && !running_.code->simt) vector_.Access(offset, bytes, write);
    return;
  }
  (write ? running_.accesses.written : running_.accesses.read)[static_cast<int>(memory)] += bytes;
  if (running_.kind == CommandKind::kUbL1) {
    (write ? running_.accesses.l1_written : running_.accesses.ub_read).Add(0, offset, bytes);
  }
}

void TimingMonitor::TouchPlaces(const Context& c, const Inst* in, const int64_t* offsets, int count, int64_t bytes,
                                Access access) {
  if (count == 0) return;
  const bool write = access != Access::kRead;
  if (extents_ && block_ < kBlocksWithExtents) {
    const auto [first, last] = std::minmax_element(offsets, offsets + count);
    AddExtent(c, in, c.ub_memory, *first, *last - *first + bytes, write);
  }
  for (int i = 0; i < count; ++i) vector_.Access(offsets[i], bytes, write);
}

void TimingMonitor::AddTraffic(bool write, uint32_t tensor, int64_t offset, int64_t bytes) {
  totals_.bytes[write] += bytes;
  totals_.coverage[write].Add(tensor, offset, bytes);
}

void TimingMonitor::TouchGm(const Context& c, const Inst*, const GmRange& range, Access access) {
  if (range.bytes <= 0) return;
  const bool write = access != Access::kRead;
  const int64_t offset = range.tensor ? range.offset : reinterpret_cast<intptr_t>(range.address);
  if (OfScalarUnit(c)) {
    ScalarGm(c, range, write);
    return;
  }
  AddTraffic(write, range.tensor, offset, range.bytes);
  running_.task.traffic += range.bytes;
  (write ? running_.accesses.gm_written : running_.accesses.gm_read).Add(range.tensor, offset, range.bytes);
}

// Stores of the scalar unit go to its cache; what they cost later is not known.
void TimingMonitor::ScalarGm(const Context& c, const GmRange& range, bool write) {
  const int64_t line = (range.tensor ? range.offset : reinterpret_cast<intptr_t>(range.address)) / kScalarLine;
  const int64_t tag = line | static_cast<int64_t>(range.tensor) << 48;
  std::vector<int64_t>& cache = scalar_cache_[c.core->slot()];
  int64_t& cached = cache[static_cast<size_t>(line) % cache.size()];
  if (cached == tag) return;
  cached = tag;
  if (write) return;
  AddTraffic(false, range.tensor, line * kScalarLine, kScalarLine);
  ScalarEvent event;
  event.kind = ScalarEvent::kDelay;
  event.cycles = static_cast<float>(figure::kScalarGmMiss);
  AddScalar(*c.core, event);
}

void TimingMonitor::TouchLanes(const Context& c, const Inst* in, const LaneAccess& access) {
  if (!running_.code) return;
  if (extents_ && block_ < kBlocksWithExtents && !access.gm) {
    int64_t begin = INT64_MAX, end = INT64_MIN;
    for (int i = c.mask.lo; i < c.mask.hi; ++i) {
      if (!c.mask.all && !c.mask.active[i]) continue;
      begin = std::min(begin, access.addresses[i]), end = std::max(end, access.addresses[i] + access.bytes);
    }
    if (begin < end) AddExtent(c, in, c.ub_memory, begin, end - begin, access.access != Access::kRead);
  }
  sectors_.clear();
  simt_.Lanes(c, in, access, &sectors_);
  constexpr int64_t kSector = GmCoverage::kSector;
  for (int write = 0; write < 2; ++write) {
    if (access.access != Access::kAtomic && write != (access.access == Access::kWrite)) continue;
    for (const GmSector& s : sectors_) {
      AddTraffic(write != 0, s.tensor, s.number * kSector, kSector);
      running_.task.gm_bytes[write] += static_cast<float>(kSector);
      running_.task.traffic += kSector;
    }
  }
}

void TimingMonitor::SyncThreads(const Context&, const Inst*) {
  if (running_.code) simt_.SyncThreads();
}

void TimingMonitor::MemBar(const Context&, const Inst*, uint8_t first, uint8_t second) {
  if (running_.steps) vector_.MemBar(first, second);
}

void TimingMonitor::Step(const Context& c, const Inst* in) {
  if (running_.code->simt) {
    simt_.Step(c, in);
  } else {
    vector_.Step(in);
  }
}

}  // namespace pto::engine
