#include "timing_replay.h"

#include <cmath>
#include <stdexcept>

#include "timing_figures.h"

namespace pto::engine {
namespace {

// Rates of transfers in steps of this, so that many share one.
constexpr double kRateStep = 1.0 / 16;

double LatencyOf(uint32_t key) {
  if (key >= kCrossKey) return figure::kCrossLatency;
  if (key >= kFlagKeys + kTokenKeys && key < kFlagKeys + kTokenKeys + kIntraKeys) return figure::kIntraLatency;
  return key < kFlagKeys + kTokenKeys ? figure::kFlagLatency : 0;
}

bool MovesGm(const TimingTask& t) { return t.gm_bytes[0] + t.gm_bytes[1] > 0; }

}  // namespace

TimingReplay::TimingReplay(const std::vector<std::shared_ptr<const BlockTrace>>& traces, const TimingPlaces& places,
                           const Chip& chip, const std::vector<bool>& cube_cores)
    : traces_(traces), places_(places), chip_(chip), cube_cores_(cube_cores), flows_(figure::kGmBytesPerCycle) {
  for (int i = 0; i < 2; ++i) {
    charge_[i] = std::max(chip.first_share[i], figure::kGmBytesPerCycle / figure::kL2BytesPerCycle);
  }
  int64_t tasks = 0;
  for (const auto& trace : traces) {
    for (const CoreTrace& core : trace->cores) {
      for (const auto& pipe : core.tasks) tasks += static_cast<int64_t>(pipe.size());
    }
  }
  forget_ = tasks > kMostTasks;
  place_cycles_.resize(places.size());
  times_.resize(traces.size());
  states_.resize(traces.size());
}

void TimingReplay::Run() {
  const uint32_t first = static_cast<uint32_t>(std::min<size_t>(traces_.size(), static_cast<size_t>(chip_.cores)));
  while (next_block_ < first) BeginBlock(next_block_++, 0, -1);
  for (;;) {
    Work();
    const double event = events_.empty() ? GmFlows::kNever : events_.top().at, flow = flows_.NextEnd();
    if (event == GmFlows::kNever && flow == GmFlows::kNever) break;
    if (flow <= event) {
      const uint32_t id = flows_.End();
      const Agent a = flowing_[id];
      free_ids_.push_back(id);
      PipeState& p = StateOf(a).pipes[a.pipe];
      const TimingTask& task = TraceOf(a).tasks[a.pipe][p.next];
      const TaskTime& time = times_[a.block].cores[a.core].tasks[a.pipe][p.next];
      p.moving = false;
      EndTask(a, std::max({flow, time.start + task.cost, p.held}));
      continue;
    }
    const Event e = events_.top();
    events_.pop();
    if (e.new_block) {
      states_[e.agent.block].reset();
      ++ended_;
      if (next_block_ < traces_.size()) BeginBlock(next_block_++, e.at, e.agent.block);
    } else {
      StateOf(e.agent).pipes[e.agent.pipe].scheduled = false;
      BeginTask(e.agent);
    }
  }
  if (ended_ != traces_.size()) throw std::logic_error("the timing model has come to a stop before the end");
}

void TimingReplay::BeginBlock(uint32_t block, double at, int64_t before) {
  const BlockTrace& trace = *traces_[block];
  auto state = std::make_unique<BlockState>();
  state->signals.resize(kTimingKeys);
  state->cores.resize(trace.cores.size());
  state->sets.resize(trace.cores.size());
  BlockTimes& times = times_[block];
  times.start = times.end = times.last_time = at, times.before = before;
  times.cores.resize(trace.cores.size());
  for (size_t c = 0; c < trace.cores.size(); ++c) {
    for (int p = 1; p < kPipes; ++p) {
      times.cores[c].tasks[p].resize(trace.cores[c].tasks[p].size());
      state->cores[c].pipes[p].free = state->cores[c].pipes[p].complete = state->cores[c].pipes[p].covered = at;
      state->unfinished += static_cast<int64_t>(trace.cores[c].tasks[p].size());
    }
    times.cores[c].tasks[kPipeS].resize(trace.cores[c].scalar.size());
    times.cores[c].end = at;
    state->cores[c].scalar.time = state->cores[c].scalar.since = at;
    ++state->unfinished;
  }
  states_[block] = std::move(state);
  for (size_t c = 0; c < trace.cores.size(); ++c) Wake({block, static_cast<uint8_t>(c), kPipeS});
}

void TimingReplay::Work() {
  while (!work_.empty()) {
    const Agent a = work_.back();
    work_.pop_back();
    if (a.pipe == kPipeS) {
      RunScalar(a);
    } else {
      RunPipe(a);
    }
  }
}

// --- scalar units ---

double TimingReplay::IssueCost(TimingPlace place) const {
  switch (places_.KindOf(place)) {
    case CommandKind::kSync:
      return figure::kScalarSyncIssue;
    case CommandKind::kGmUb:
    case CommandKind::kUbGm:
    case CommandKind::kGmL1:
      return figure::kScalarDmaIssue;
    default:
      return figure::kScalarCommandIssue;
  }
}

void TimingReplay::RunScalar(const Agent& a) {
  CoreState& core = StateOf(a);
  ScalarState& s = core.scalar;
  const CoreTrace& trace = TraceOf(a);
  CoreTimes& times = times_[a.block].cores[a.core];
  if (s.done) return;
  s.key = kNoKey, s.waits_all = false, s.waits_queue = -1;
  const auto pass = [&](double cycles) { s.time += cycles, times.issuing += cycles; };
  for (;;) {
    int64_t at = trace.instructions;
    int next = -1;
    if (s.event < trace.scalar.size()) at = trace.scalar[s.event].at, next = kPipeS;
    for (int p = 1; p < kPipes; ++p) {
      if (s.pushed[p] == trace.tasks[p].size()) continue;
      const int64_t issued = trace.tasks[p][s.pushed[p]].issued;
      if (next < 0 || issued < at) at = issued, next = p;
    }
    if (at > s.instructions) {
      pass(static_cast<double>(at - s.instructions) * figure::kScalarInstruction);
      s.instructions = at;
    }
    if (next < 0) {
      s.done = true;
      times.end = std::max(times.end, s.time);
      BlockTimes& block = times_[a.block];
      if (s.time > block.end) {
        block.end = s.time, block.last = s.cause, block.last_time = s.since, block.last_core = a.core;
      }
      if (--states_[a.block]->unfinished == 0) Finished(a.block);
      return;
    }
    if (next == kPipeS) {
      if (!PassScalarEvent(a, &s, trace.scalar[s.event])) return;
      ++s.event;
      continue;
    }
    PipeState& p = core.pipes[next];
    if (s.pushed[next] - p.next - (p.moving ? 1 : 0) >= figure::kQueueDepth) {
      s.waits_queue = next;
      return;
    }
    pass(IssueCost(trace.tasks[next][s.pushed[next]].place));
    p.issued.push_back({s.time, s.since, s.cause});
    ++s.pushed[next];
    Wake({a.block, a.core, static_cast<uint8_t>(next)});
  }
}

// False when it has to wait.
bool TimingReplay::PassScalarEvent(const Agent& a, ScalarState* s, const ScalarEvent& e) {
  CoreTimes& times = times_[a.block].cores[a.core];
  TaskTime& time = times.tasks[kPipeS][s->event];
  const TaskRef self = Ref(a, s->event);
  time.start = s->time, time.cause = s->cause, time.cause_time = s->since;
  switch (e.kind) {
    case ScalarEvent::kDelay:
      s->time += e.cycles;
      times.issuing += e.cycles;
      break;
    case ScalarEvent::kSignal:
      Fire(a, e.sync.key, {s->time, self});
      break;
    case ScalarEvent::kWait: {
      Signal signal;
      if (!Passed(a, e.sync, &signal)) {
        s->key = e.sync.key;
        return false;
      }
      const double at = signal.at + LatencyOf(e.sync.key);
      if (at > s->time) time.waited = at - s->time, s->time = at, time.cause = signal.by, time.cause_time = signal.at;
      break;
    }
    case ScalarEvent::kBarrier: {
      const CoreState& core = StateOf(a);
      for (int p = 1; p < kPipes; ++p) {
        if (core.pipes[p].next < s->pushed[p]) {
          s->waits_all = true;
          return false;
        }
      }
      for (int p = 1; p < kPipes; ++p) {
        const double complete = core.pipes[p].complete;
        if (s->pushed[p] == 0 || complete <= s->time) continue;
        time.waited += complete - s->time;
        s->time = complete;
        time.cause = core.pipes[p].last, time.cause_time = complete;
      }
      break;
    }
  }
  time.taken = time.complete = s->time;
  if (time.waited > 0) s->cause = self, s->since = s->time;
  return true;
}

// --- pipes ---

bool TimingReplay::Passed(const Agent& a, const TimingSync& sync, Signal* signal) const {
  if (sync.key < kCrossKey) {
    const std::vector<Signal>& signals = states_[a.block]->signals[sync.key];
    if (signals.size() < sync.count) return false;
    *signal = signals[sync.count - 1];
    return true;
  }
  const std::vector<Round>& rounds = rounds_[sync.key - kCrossKey];
  if (rounds.size() < sync.count) return false;
  const bool cube = sync.key - kCrossKey >= CrossFlags::kIds;
  int64_t all = 0;
  for (const bool kind : cube_cores_) all += kind == cube ? static_cast<int64_t>(traces_.size()) : 0;
  *signal = rounds[sync.count - 1].last;
  return rounds[sync.count - 1].arrived == all;
}

void TimingReplay::Fire(const Agent& a, uint32_t key, const Signal& signal) {
  const auto wake = [&](uint32_t block) {
    if (!states_[block]) return;
    BlockState& state = *states_[block];
    for (size_t c = 0; c < state.cores.size(); ++c) {
      CoreState& core = state.cores[c];
      if (core.scalar.key == key) Wake({block, static_cast<uint8_t>(c), kPipeS});
      for (int p = 1; p < kPipes; ++p) {
        if (core.pipes[p].key == key) Wake({block, static_cast<uint8_t>(c), static_cast<uint8_t>(p)});
      }
    }
  };
  if (key < kCrossKey) {
    states_[a.block]->signals[key].push_back(signal);
    wake(a.block);
    return;
  }
  std::vector<Round>& rounds = rounds_[key - kCrossKey];
  const uint32_t round = ++states_[a.block]->sets[a.core][key - kCrossKey];
  if (rounds.size() < round) rounds.resize(round);
  ++rounds[round - 1].arrived;
  Signal& last = rounds[round - 1].last;
  if (!last.by.Known() || signal.at > last.at) last = signal;
  for (uint32_t block = 0; block < states_.size(); ++block) wake(block);
}

// Finds out when the next task begins; false when that is not known yet.
bool TimingReplay::Ready(const Agent& a, PipeState* p, const TimingTask& task, TaskTime* time) {
  const Issue& issued = p->issued[p->next];
  const auto later = [&](double at, double since, TaskRef cause) {
    if (at <= time->start) return;
    time->start = at, time->cause = cause, time->cause_time = since;
  };
  *time = TaskTime();
  time->start = times_[a.block].start, time->cause_time = time->start;
  const TaskRef before = p->next > 0 ? Ref(a, p->next - 1) : TaskRef();
  later(issued.at, issued.since, issued.cause);
  later(p->free, p->free, before);
  if (task.drains) later(p->complete, p->complete, p->last);
  const double idle = time->start;
  const TimingSync* syncs = TraceOf(a).syncs[a.pipe].data() + task.first_sync;
  for (int i = 0; i < task.syncs; ++i) {
    if (syncs[i].count == 0) continue;
    Signal signal;
    if (!Passed(a, syncs[i], &signal)) {
      p->key = syncs[i].key;
      return false;
    }
    later(signal.at + LatencyOf(syncs[i].key), signal.at, signal.by);
  }
  time->waited = time->start - idle;
  return true;
}

void TimingReplay::RunPipe(const Agent& a) {
  PipeState& p = StateOf(a).pipes[a.pipe];
  p.key = kNoKey;
  while (!p.moving && !p.scheduled && p.next < p.issued.size()) {
    const TimingTask& task = TraceOf(a).tasks[a.pipe][p.next];
    TaskTime& time = times_[a.block].cores[a.core].tasks[a.pipe][p.next];
    if (!Ready(a, &p, task, &time)) return;
    if (MovesGm(task)) {
      p.scheduled = true;
      events_.push({time.start, event_number_++, a, false});
    } else {
      BeginTask(a);
    }
  }
}

void TimingReplay::BeginTask(const Agent& a) {
  CoreState& core = StateOf(a);
  PipeState& p = core.pipes[a.pipe];
  const TimingTask& task = TraceOf(a).tasks[a.pipe][p.next];
  const TaskTime& time = times_[a.block].cores[a.core].tasks[a.pipe][p.next];
  if (core.scalar.waits_queue == a.pipe) {
    if (time.start > core.scalar.time) {
      core.scalar.time = core.scalar.since = time.start;
      core.scalar.cause = Ref(a, p.next);
    }
    Wake({a.block, a.core, kPipeS});
  }
  if (!MovesGm(task)) {
    EndTask(a, time.start + task.cost);
    return;
  }
  uint32_t id = static_cast<uint32_t>(flowing_.size());
  if (free_ids_.empty()) {
    flowing_.push_back(a);
  } else {
    id = free_ids_.back();
    free_ids_.pop_back();
    flowing_[id] = a;
  }
  p.moving = true;
  p.held = 0;
  if (task.hot_cycles > 0) {
    // Atomics of all cores on one sector come one after the other.
    double& taken = sectors_[task.hot_sector];
    taken = std::max(taken, time.start + figure::kVectorLaunch) + task.hot_cycles;
    p.held = taken + figure::kVectorDrain;
  }
  // The rate is that of the bytes that are asked for, the bandwidth is taken by what they cost.
  const double bytes = task.gm_bytes[0] * charge_[0] + task.gm_bytes[1] * charge_[1];
  const double rate = task.gm_rate * bytes / static_cast<double>(std::max<int64_t>(1, task.traffic));
  flows_.Add(time.start, bytes, std::max(kRateStep, std::round(rate / kRateStep) * kRateStep), id);
}

void TimingReplay::EndTask(const Agent& a, double taken) {
  CoreState& core = StateOf(a);
  PipeState& p = core.pipes[a.pipe];
  CoreTimes& times = times_[a.block].cores[a.core];
  const TimingTask& task = TraceOf(a).tasks[a.pipe][p.next];
  TaskTime& time = times.tasks[a.pipe][p.next];
  time.taken = taken;
  time.complete = taken + task.latency;
  p.free = taken;
  if (time.complete > p.complete || !p.last.Known()) p.last = Ref(a, p.next);
  p.complete = std::max(p.complete, time.complete);
  ++times.commands[a.pipe];
  place_cycles_[task.place] += time.complete - std::max(time.start, std::min(p.covered, time.complete));
  times.busy[a.pipe] += std::max(0.0, time.complete - std::max(time.start, p.covered));
  p.covered = std::max(p.covered, time.complete);
  times.end = std::max(times.end, p.complete);
  const TimingSync* syncs = TraceOf(a).syncs[a.pipe].data() + task.first_sync;
  const uint32_t index = p.next++;
  for (int i = 0; i < task.syncs; ++i) {
    if (syncs[i].count == 0) Fire(a, syncs[i].key, {p.complete, p.last});
  }
  if (core.scalar.waits_all) Wake({a.block, a.core, kPipeS});
  Wake(a);
  BlockTimes& block = times_[a.block];
  if (!block.last.Known() || time.complete > block.end) {
    block.end = std::max(block.end, time.complete);
    block.last = Ref(a, index), block.last_time = block.end, block.last_core = a.core;
  }
  if (--states_[a.block]->unfinished == 0) Finished(a.block);
}

void TimingReplay::Finished(uint32_t block) {
  BlockTimes& times = times_[block];
  if (times.end > cycles_) cycles_ = times.end, last_block_ = block;
  if (forget_ && block >= kKeptBlocks && block + kKeptBlocks < static_cast<int64_t>(traces_.size())) {
    for (CoreTimes& core : times.cores) {
      for (auto& tasks : core.tasks) std::vector<TaskTime>().swap(tasks);
    }
  }
  events_.push({times.end, event_number_++, {block, 0, 0}, true});
}

}  // namespace pto::engine
