#include "hazards.h"

#include <algorithm>

namespace pto::engine {
namespace {

// Accesses to GM that are kept for a block.
constexpr size_t kMostGmAccesses = 4'000'000;

bool IsScalarUnit(const Context& c) { return c.pipe[0] == 'S' && c.pipe[1] == 0; }

bool IsVectorCode(const Context& c) { return c.code != &c.core->function().code; }

// Tells the executions of instructions apart.
int64_t StepOf(const Context& c) { return c.counts[kCountNothing] + c.counts[kCountScalar] + c.counts[kCountVector]; }

std::string Bytes(int64_t n) { return std::to_string(n) + (n == 1 ? " byte" : " bytes"); }

}  // namespace

HazardMonitor::HazardMonitor(const CompiledFunction& function, const LaunchOptions& options,
                             const BarrierClocks& barriers)
    : function_(function),
      full_(options.check == Check::kFull),
      barriers_(barriers),
      flags_(kCoresOfBlock * kPipes * kPipes * kEventIds),
      tokens_(kCoresOfBlock * BufferTokens::kIds * kPipes),
      shadow_(options.ub_bytes),
      shared_bytes_(function.views) {
  for (int i = 0; i < IntraFlags::kVectorCores; ++i) {
    vector_order_.emplace_back(options.ub_bytes);
    thread_races_.emplace_back(options.ub_bytes);
  }
}

void HazardMonitor::Reset(int64_t block) {
  block_ = block;
  for (int a = 0; a < kAgents; ++a) {
    agents_[a] = Agent();
    executed_[a].clear();
  }
  for (int core = 0; core < kCoresOfBlock; ++core) {
    executions_[core].clear();
    scalar_[core].assign(1, Clock());
    std::fill(std::begin(sets_[core]), std::end(sets_[core]), 0);
    std::fill(std::begin(waits_[core]), std::end(waits_[core]), 0);
  }
  for (auto& core : intra_) {
    for (auto& direction : core) {
      for (auto& flag : direction) flag.clear();
    }
  }
  flags_.Clear();
  tokens_.Clear();
  units_.clear();
  running_ = Running();
  shadow_.Reset();
  shared_bytes_.Reset();
  history_ = BlockHistory();
  history_.block = block;
  gm_open_ = false;
  places_.clear();
}

void HazardMonitor::Finish(GmHistory* history) {
  if (full_ && !history_.accesses.empty()) history->Add(std::move(history_));
  history_ = BlockHistory();
}

std::vector<Finding> HazardMonitor::Findings() const {
  std::vector<Finding> all;
  for (const auto& [key, found] : findings_) {
    all.push_back(found.finding);
    all.back().views = ViewNames(found.finding);
  }
  return all;
}

// --- clocks ---

Clock HazardMonitor::Snapshot(int agent) const {
  Clock clock = agents_[agent].knows;
  const bool running = running_.core && running_.agent == agent;
  clock.at[agent] = agents_[agent].done + (running ? 1 : 0);
  return clock;
}

void HazardMonitor::Learn(int agent, const Clock& clock) {
  agents_[agent].knows.Join(clock);
  agents_[agent].gm_clock = 0;
}

void HazardMonitor::LearnScalar(const Core& core, const Clock& clock) {
  const int agent = AgentOf(core, kPipeS);
  Learn(agent, clock);
  scalar_[core.slot()].push_back(agents_[agent].knows);
}

void HazardMonitor::Signal(const Core& core, Pipe pipe, const SyncPoint& p) {
  if (!full_) return;
  const int slot = core.slot(), agent = AgentOf(core, pipe);
  switch (p.kind) {
    case SyncPoint::kFlag:
      if (pipe == kPipeS) {
        const Running before = running_;  // of a command that had to stay
        Begin(core, agent, &core.function().code, p.set, *core.progress().instructions);
        CheckSet(core, agent, p);
        End();
        running_ = before;
      } else {
        CheckSet(core, agent, p);
      }
      flags_[FlagNumber(slot, p)].clock = Snapshot(agent);
      break;
    case SyncPoint::kToken:
      tokens_[static_cast<size_t>((slot * BufferTokens::kIds + p.a) * kPipes + pipe)].Join(Snapshot(agent));
      break;
    case SyncPoint::kIntra:
      intra_[p.a][p.b][p.c].push_back(Snapshot(agent));
      break;
    case SyncPoint::kUnit:
      units_[{p.a, p.b}] = Snapshot(agent);
      break;
    case SyncPoint::kCross: {
      const int barrier = p.a * CrossFlags::kIds + p.b;
      history_.sets.push_back({static_cast<uint8_t>(barrier), ++sets_[slot][barrier], Snapshot(agent)});
      break;
    }
    case SyncPoint::kBarrier:
      break;
  }
}

void HazardMonitor::Wait(const Core& core, Pipe pipe, const SyncPoint& p) {
  if (!full_) return;
  const int slot = core.slot(), agent = AgentOf(core, pipe);
  Clock clock;
  switch (p.kind) {
    case SyncPoint::kFlag: {
      Flag& flag = flags_[FlagNumber(slot, p)];
      clock = flag.clock;
      flag.waited = pipe == kPipeS ? 0 : agents_[agent].done + 1;
      break;
    }
    case SyncPoint::kToken:
      // Two pairs on one pipe do not order it with itself.
      for (int other = 0; other < kPipes; ++other) {
        if (other == pipe) continue;
        clock.Join(tokens_[static_cast<size_t>((slot * BufferTokens::kIds + p.a) * kPipes + other)]);
      }
      break;
    case SyncPoint::kIntra:
      clock = intra_[p.a][p.b][p.c].front();
      intra_[p.a][p.b][p.c].pop_front();
      break;
    case SyncPoint::kUnit: {
      auto it = units_.find({p.a, p.b});
      if (it != units_.end()) clock = it->second;
      break;
    }
    case SyncPoint::kCross: {
      const int barrier = p.a * CrossFlags::kIds + p.b;
      const uint32_t round = ++waits_[slot][barrier];
      for (const BarrierSet& set : history_.sets) {
        if (set.barrier == barrier && set.round == round) clock.Join(set.clock);
      }
      clock.JoinRounds(barriers_.Get(barrier, round));
      break;
    }
    case SyncPoint::kBarrier:
      if (p.a == kPipeAll) {
        for (int q = 0; q < kPipes; ++q) clock.Join(Snapshot(slot * kPipes + q));
      } else {
        clock.at[agent] = agents_[agent].done;
      }
      break;
  }
  if (pipe == kPipeS) {
    LearnScalar(core, clock);
  } else {
    Learn(agent, clock);
  }
}

void HazardMonitor::AddRound(int barrier, uint32_t round, BarrierRounds* rounds) const {
  for (const BarrierSet& set : history_.sets) {
    if (set.barrier != barrier || set.round != round) continue;
    for (int i = 0; i < kBarriers; ++i) (*rounds)[i] = std::max((*rounds)[i], set.clock.rounds[i]);
  }
}

// --- commands ---

void HazardMonitor::Begin(const Core& core, int agent, const Code* code, const Inst* inst, int64_t issued) {
  running_ = Running();
  running_.core = &core;
  running_.agent = agent;
  Agent& a = agents_[agent];
  if (executed_[agent].size() > a.done) return;  // had to stay
  std::vector<uint32_t>& counts = executions_[core.slot()];
  const Code& scalar_code = core.function().code;
  counts.resize(scalar_code.insts.size());
  executed_[agent].push_back({code, inst, issued, ++counts[Index(scalar_code, inst)]});
}

void HazardMonitor::End() {
  const int agent = running_.agent;
  Agent& a = agents_[agent];
  CloseGm();
  if (full_) {
    shadow_.Fold(static_cast<uint8_t>(agent), a.done + 1,
                 [&](uint32_t granule, const Record& r, uint32_t mask, uint32_t inst, bool write, bool reach) {
                   Conflict(agent, granule, r, mask, inst, write, reach);
                 });
  } else {
    shadow_.Discard();
  }
  ++a.done;
  running_ = Running();
}

void HazardMonitor::Start(const Core& core, Pipe pipe, const Command& command) {
  const int agent = AgentOf(core, pipe);
  Begin(core, agent, &core.function().code, command.inst, command.issued);
  Agent& a = agents_[agent];
  if (a.scalar_version != command.waits) {
    a.scalar_version = command.waits;
    Learn(agent, scalar_[core.slot()][full_ ? command.waits : 0]);
  }
  if (pipe == kPipeV) vector_order_[static_cast<size_t>(core.sub_block)].Begin();
}

void HazardMonitor::Done(const Core& core, Pipe, const Command& command) {
  End();
  // A command that fills a buffer may have had nothing to move.
  const Code& code = core.function().code;
  if (shared_bytes_.Empty() || code.views.empty()) return;
  const ViewRange range = code.views[Index(code, command.inst)];
  for (uint32_t i = range.first; i < range.first + range.count; ++i) {
    if (code.view_uses[i].writes) shared_bytes_.Refill(code.view_uses[i].view);
  }
}

template <class F>
void HazardMonitor::InCommand(const Context& c, const Inst* in, F f) {
  if (!IsScalarUnit(c)) {
    executed_[running_.agent].back().code = c.code;
    f();
    return;
  }
  const Running before = running_;  // of a command that had to stay
  Begin(*c.core, AgentOf(*c.core, kPipeS), c.code, in, *c.core->progress().instructions);
  f();
  End();
  running_ = before;
}

// --- accesses ---

// c and in outlive what is returned.
auto HazardMonitor::OrderConflict(const Context& c, const Inst* in, Memory memory, bool scalar, bool write) {
  return [this, &c, in, memory, scalar, write](uint32_t earlier, bool earlier_write, int64_t from, int64_t to) {
    const uint32_t seq = agents_[running_.agent].done + 1;
    const Sides sides{&c.code->insts[earlier], in, 0, seq, seq};
    if (Again(sides, from, to)) return;
    Finding f;
    f.kind = "race";
    f.hazard = HazardName(earlier_write, write);
    f.memory = kMemoryNames[static_cast<int>(memory)];
    f.begin = from, f.end = to;
    f.first = Place(running_.agent, seq, earlier, earlier_write);
    f.second = Place(running_.agent, seq, Index(*c.code, in), write);
    const bool earlier_scalar = c.code->insts[earlier].counter != kCountVector;
    const auto name = [](bool is_scalar, bool writes) {
      return std::string(is_scalar ? "" : "V") + (writes ? "ST" : "LD");
    };
    f.missing = "no mem_bar(\"" + name(earlier_scalar, earlier_write) + "_" + name(scalar, write) +
                "\") between them in the vector function";
    Report(sides, std::move(f));
  };
}

void HazardMonitor::Touch(const Context& c, const Inst* in, Memory memory, int64_t offset, int64_t bytes,
                          Access access) {
  if (bytes <= 0) return;
  InCommand(c, in, [&] {
    const uint32_t inst = Index(*c.code, in);
    const Pipe pipe = PipeOf(running_.agent);
    // Vector functions read registers and tiles of which they use a part; what leaves the core has to be known.
    const bool strict = pipe == kPipeS || pipe == kPipeMte3;
    // A register load may reach beyond what its users need of it, into a buffer that is being filled: where it begins
    // decides. A tile that is not ready is read at its beginning, too.
    const bool reaches = pipe == kPipeV && IsVectorCode(c) && access == Access::kRead;
    CheckView(c, inst, memory, offset, reaches ? 1 : bytes, access);
    if (reaches) {
      shadow_.TouchRegister(memory, offset, bytes, inst);
    } else if (!shadow_.Touch(memory, offset, bytes, access, inst, strict) && pipe != kPipeV) {
      Uninitialised(c, in, memory, offset, bytes, strict);
    }
    if (!full_ || pipe != kPipeV || !IsVectorCode(c)) return;
    if (c.code->simt) {  // of all threads
      LaneAccess together;
      together.base = c.ub, together.bytes = bytes, together.access = access;
      CheckThreads(c, inst, together, &offset);
      return;
    }
    const bool write = access != Access::kRead, scalar = in->counter != kCountVector;
    vector_order_[static_cast<size_t>(c.core->sub_block)].Touch(*c.code, inst, StepOf(c), scalar, write, offset, bytes,
                                                                OrderConflict(c, in, memory, scalar, write));
  });
}

void HazardMonitor::TouchPlaces(const Context& c, const Inst* in, const int64_t* offsets, int count, int64_t bytes,
                                Access access) {
  InCommand(c, in, [&] {
    const uint32_t inst = Index(*c.code, in);
    if (!function_.views.empty() && count > 0) {
      const auto [least, most] = std::minmax_element(offsets, offsets + count);
      if (shared_bytes_.Empty()) {
        CheckView(c, inst, c.ub_memory, *least, bytes, access);
        CheckView(c, inst, c.ub_memory, *most, bytes, access);
      } else {
        for (int i = 0; i < count; ++i) CheckView(c, inst, c.ub_memory, offsets[i], bytes, access);
      }
    }
    // Neighbours together.
    pieces_.resize(static_cast<size_t>(count));
    size_t pieces = 0;
    for (int i = 0; i < count; ++i) {
      const uint64_t offset = static_cast<uint64_t>(offsets[i]);
      const uint32_t granule = static_cast<uint32_t>(offset / kGranule);
      const uint32_t mask = GranuleMask(offset % kGranule, offset % kGranule + static_cast<uint64_t>(bytes));
      if (pieces && pieces_[pieces - 1].granule == granule) {
        pieces_[pieces - 1].mask |= mask;
      } else {
        pieces_[pieces++] = {granule, mask};
      }
    }
    pieces_.resize(pieces);
    shadow_.TouchPieces(c.ub_memory, pieces_, access, inst);
    if (!full_) return;
    const bool write = access != Access::kRead;
    VectorOrder& order = vector_order_[static_cast<size_t>(c.core->sub_block)];
    const int64_t step = StepOf(c);
    if (order.TouchPieces(*c.code, inst, step, write, pieces_)) return;
    for (int i = 0; i < count; ++i) {
      order.Touch(*c.code, inst, step, false, write, offsets[i], bytes,
                  OrderConflict(c, in, c.ub_memory, false, write));
    }
  });
}

void HazardMonitor::CheckView(const Context& c, uint32_t inst, Memory memory, int64_t offset, int64_t bytes,
                              Access access) {
  if (function_.views.empty() || access == Access::kSpoil) return;
  const ViewRange range = c.code->views.empty() ? ViewRange() : c.code->views[inst];
  const bool read = access != Access::kWrite, write = access != Access::kRead;
  const Space space = SpaceOf(memory);
  const PointerView* left = nullptr;
  for (uint32_t i = range.first; i < range.first + range.count; ++i) {
    const ViewUse& use = c.code->view_uses[i];
    const PointerView& view = function_.views[use.view - 1u];
    if (view.space != space || !(write ? use.writes : use.reads)) continue;
    if (offset < view.begin || offset + bytes > view.limit) {
      left = &view;
      continue;
    }
    if (shared_bytes_.Empty()) return;
    if (read) FindLost(c, inst, memory, offset, bytes, use.view);
    if (write) {
      shared_bytes_.Write(memory, offset, bytes, {use.view, running_.agent, agents_[running_.agent].done + 1, inst});
    }
    return;
  }
  if (!left) {
    if (write) shared_bytes_.WriteUnknown(memory, offset, bytes);
    return;
  }
  const int64_t begin = offset < left->begin ? offset : std::max(offset, left->end);
  const int64_t end = offset < left->begin ? std::min(left->begin, offset + bytes) : offset + bytes;
  const uint32_t seq = agents_[running_.agent].done + 1;
  const Sides sides{&c.code->insts[inst], &c.code->insts[inst], 3000, seq, seq};
  if (Again(sides, begin, end)) return;
  Finding f;
  f.kind = "bounds";
  f.memory = kMemoryNames[static_cast<int>(memory)];
  f.begin = begin, f.end = end;
  f.first = f.second = Place(running_.agent, seq, inst, write);
  f.message = std::string("the ") + (write ? "write" : "read") + " by " + f.first.op + " (line " +
              std::to_string(f.first.line) + ") through view " + left->name + " of " + f.memory +
              " goes outside of its bytes " + std::to_string(left->begin) + " to " + std::to_string(left->end - 1);
  Report(sides, std::move(f));
}

void HazardMonitor::FindLost(const Context& c, uint32_t inst, Memory memory, int64_t offset, int64_t bytes,
                             uint16_t view) {
  shared_bytes_.Read(memory, offset, bytes, view, [&](const SharedBytes::Writer& by, int64_t begin, int64_t end) {
    const uint32_t seq = agents_[running_.agent].done + 1;
    const Code* earlier = executed_[by.agent][by.seq - 1].code;
    const Sides sides{&earlier->insts[by.inst], &c.code->insts[inst], 4000, by.seq, seq};
    if (Again(sides, begin, end)) return;
    Finding f;
    f.kind = "overlap";
    f.memory = kMemoryNames[static_cast<int>(memory)];
    f.begin = begin, f.end = end;
    f.first = Place(by.agent, by.seq, by.inst, true);
    f.second = Place(running_.agent, seq, inst, false);
    const std::string lost = function_.views[view - 1u].name, kept = function_.views[by.view - 1u].name;
    f.message = "views " + lost + " and " + kept + " of " + f.memory + " overlap: what " + lost + " held is read by " +
                f.second.op + " (line " + std::to_string(f.second.line) + ") after it was overwritten through " + kept +
                " by " + f.first.op + " (line " + std::to_string(f.first.line) + ")";
    Report(sides, std::move(f));
  });
}

std::string HazardMonitor::ViewNames(const Finding& f) const {
  std::string names;
  for (const PointerView& view : function_.views) {
    int memory = 0;
    while (memory < static_cast<int>(Memory::kMemories) && kMemoryNames[memory] != f.memory) ++memory;
    if (memory == static_cast<int>(Memory::kMemories)) break;
    if (SpaceOf(static_cast<Memory>(memory)) != view.space || f.begin >= view.limit || f.end <= view.begin) continue;
    names += (names.empty() ? "" : ", ") + view.name;
  }
  return names;
}

void HazardMonitor::TouchGm(const Context& c, const Inst* in, const GmRange& range, Access access) {
  if (!full_ || range.bytes <= 0) return;
  InCommand(c, in, [&] {
    AddGm(c, BeginGm(c, in, access), range);
    if (!c.code->simt) return;
    // Of all threads.
    LaneAccess together;
    together.gm = true, together.base = range.address, together.bytes = range.bytes, together.access = access;
    const int64_t at = 0;
    CheckThreads(c, Index(*c.code, in), together, &at);
  });
}

// Which tensor an address lies in.
void HazardMonitor::FindTensor(const Context& c, GmRange* range) {
  for (uint32_t t = 0; t < c.n_tensors && !range->tensor; ++t) {
    const Tensor& tensor = c.tensors[t];
    const int64_t offset = range->address - tensor.data;
    if (offset < 0 || tensor.extent < 0 || offset >= tensor.extent) continue;
    range->tensor = t + 1, range->offset = offset;
  }
}

GmAccess HazardMonitor::BeginGm(const Context& c, const Inst* in, Access access) {
  Agent& a = agents_[running_.agent];
  if (!running_.gm_command) {
    const Executed& e = executed_[running_.agent].back();
    history_.commands.push_back({static_cast<uint8_t>(running_.agent), a.done + 1, e.issued, e.execution});
    running_.gm_command = static_cast<uint32_t>(history_.commands.size());
    gm_repeats_.Begin();
  }
  if (!a.gm_clock) {
    history_.clocks.push_back(a.knows);
    a.gm_clock = static_cast<uint32_t>(history_.clocks.size());
  }
  const uint32_t inst = Index(*c.code, in);
  auto [place, fresh] = places_.try_emplace({c.code, inst}, static_cast<uint32_t>(history_.places.size()));
  if (fresh) history_.places.push_back({c.code->debug[inst].op, c.code->debug[inst].line});
  GmAccess entry;
  entry.clock = a.gm_clock - 1, entry.command = running_.gm_command - 1, entry.line = place->second;
  entry.access = access;
  return entry;
}

void HazardMonitor::AddGm(const Context& c, GmAccess entry, GmRange range) {
  entry.begin = reinterpret_cast<uintptr_t>(range.address);
  entry.end = entry.begin + static_cast<uint64_t>(range.bytes);
  if (!history_.accesses.empty()) {
    GmAccess& last = history_.accesses.back();
    if (last.command == entry.command && last.end == entry.begin && last.access == entry.access &&
        last.line == entry.line) {
      last.end = entry.end;
      return;
    }
  }
  CloseGm();
  if (history_.accesses.size() >= kMostGmAccesses) {
    history_.cut = true;
    return;
  }
  FindTensor(c, &range);
  entry.offset = range.offset, entry.tensor = range.tensor;
  history_.accesses.push_back(entry);
  gm_open_ = c.code->simt;
}

void HazardMonitor::CloseGm() {
  if (gm_open_) gm_repeats_.Fold(&history_.accesses);
  gm_open_ = false;
}

void HazardMonitor::TouchLanes(const Context& c, const Inst* in, const LaneAccess& access) {
  const uint32_t inst = Index(*c.code, in);
  const Memory memory = c.ub_memory;
  executed_[running_.agent].back().code = c.code;
  if (c.mask.count == 0 || (access.gm && !full_)) return;
  GmAccess entry;
  if (access.gm) entry = BeginGm(c, in, access.access);
  // Runs of threads with adjacent bytes count as one access of the command.
  int64_t from = 0, to = 0;
  const auto flush = [&] {
    if (to == from) return;
    if (access.gm) {
      GmRange range;
      range.address = reinterpret_cast<const uint8_t*>(reinterpret_cast<intptr_t>(access.base) + from);
      range.tensor = access.tensor, range.offset = access.tensor ? from : 0, range.bytes = to - from;
      AddGm(c, entry, range);
    } else {
      CheckView(c, inst, memory, from, to - from, access.access);
      shadow_.Touch(memory, from, to - from, access.access, inst, false);
    }
  };
  const auto extend = [&](int64_t at) {
    if (at >= from && at + access.bytes <= to) return;  // several threads at one place
    if (at != to) {
      flush();
      from = at;
    }
    to = at + access.bytes;
  };
  if (access.gm && lane_places_.Gather(c.mask, access)) {
    lane_places_.InOrder(extend);
  } else {
    for (int i = c.mask.lo; i < c.mask.hi; ++i) {
      if (c.mask.all || c.mask.active[i]) extend(access.addresses[i]);
    }
  }
  flush();
  if (full_) CheckThreads(c, inst, access, nullptr);
}

// `at`: the one place of all active threads, null when each has its own.
void HazardMonitor::CheckThreads(const Context& c, uint32_t inst, const LaneAccess& access, const int64_t* at) {
  if (access.gm && !c.code->writes_gm) return;  // threads that only read do not race
  ThreadRaces& races = thread_races_[static_cast<size_t>(c.core->sub_block)];
  if (!running_.lanes) {
    running_.lanes = true;
    races.Begin(c.code->narrowest);
  }
  const auto found = [&](const ThreadRaces::Side& first, const ThreadRaces::Side& second, int64_t begin,
                         int64_t bytes) {
    const uint32_t seq = agents_[running_.agent].done + 1;
    const Inst* const in = &c.code->insts[inst];
    GmRange range{access.tensor, access.base + begin, begin, bytes};
    if (access.gm) FindTensor(c, &range);
    const int64_t place = access.gm ? range.offset : begin;
    const Sides sides{&c.code->insts[first.inst], in, 1, seq, seq};
    if (Again(sides, place, place + bytes)) return;
    Finding f;
    f.kind = "race";
    f.hazard = HazardName(first.write, second.write);
    f.memory = access.gm ? "GM" : kMemoryNames[static_cast<int>(c.ub_memory)];
    f.begin = place, f.end = place + bytes;
    f.first = Place(running_.agent, seq, first.inst, first.write);
    f.second = Place(running_.agent, seq, second.inst, second.write);
    f.first.thread = first.thread, f.second.thread = second.thread;
    f.missing = "no syncthreads between them, and not both are atomic";
    if (range.tensor) f.tensor = TensorName(function_, range.tensor);
    Report(sides, std::move(f));
  };
  if (at) {
    races.TouchTogether(c, inst, access, *at, found);
  } else {
    races.Touch(c, inst, access, found);
  }
}

void HazardMonitor::SyncThreads(const Context& c, const Inst*) {
  thread_races_[static_cast<size_t>(c.core->sub_block)].Barrier();
}

void HazardMonitor::FenceThreads(const Context& c, const Inst*) {
  thread_races_[static_cast<size_t>(c.core->sub_block)].Fence(c);
}

void HazardMonitor::MemBar(const Context& c, const Inst*, uint8_t first, uint8_t second) {
  vector_order_[static_cast<size_t>(c.core->sub_block)].MemBar(first, second);
}

// --- findings ---

AccessPlace HazardMonitor::Place(int agent, uint32_t seq, uint32_t inst, bool write) const {
  const Executed& e = executed_[agent][seq - 1];
  AccessPlace p;
  if (e.code && inst < e.code->debug.size()) {
    const DebugInfo& d = e.code->debug[inst];
    p.line = d.line;
    if (d.op) p.op = *d.op;
  }
  p.pipe = kPipeNames[PipeOf(agent)];
  p.block = block_;
  p.core = CoreName(function_, agent);
  p.write = write;
  p.execution = e.execution;
  return p;
}

void HazardMonitor::Conflict(int agent, uint32_t granule, const Record& r, uint32_t mask, uint32_t inst, bool write,
                             bool reach) {
  const Clock& knows = agents_[agent].knows;
  if (r.agent == agent && InOrder(PipeOf(agent))) return;
  if (r.seq <= knows.at[r.agent]) return;
  int64_t offset = 0;
  const Memory memory = shadow_.MemoryOf(granule, &offset);
  const uint32_t seq = agents_[agent].done + 1;
  const int64_t begin = offset + __builtin_ctz(mask), end = offset + 32 - __builtin_clz(mask);
  const Code *earlier = executed_[r.agent][r.seq - 1].code, *later = executed_[agent][seq - 1].code;
  const Sides sides{&earlier->insts[r.inst], &later->insts[inst], static_cast<uint32_t>(r.agent * kAgents + agent) + 2,
                    r.seq, seq};
  // Bytes that nobody may need only tell how far a race reaches.
  if (Again(sides, begin, end) || reach) return;
  Finding f;
  f.kind = "race";
  f.memory = kMemoryNames[static_cast<int>(memory)];
  f.begin = begin, f.end = end;
  f.first = Place(r.agent, r.seq, r.inst, r.write);
  f.second = Place(agent, seq, inst, write);
  // In one core the order of the program, whatever was executed first.
  if (r.agent / kPipes == agent / kPipes && executed_[agent][seq - 1].issued < executed_[r.agent][r.seq - 1].issued) {
    std::swap(f.first, f.second);
  }
  f.hazard = HazardName(f.first.write, f.second.write);
  if (f.first.pipe == f.second.pipe && f.first.core == f.second.core) {
    f.missing = "no pipe_barrier(\"" + f.first.pipe + "\") between them, and commands of this pipe may overlap";
  } else if (f.first.core == f.second.core) {
    f.missing = "no " + f.first.pipe + "->" + f.second.pipe + " flag, token or barrier between them";
  } else {
    f.missing = "no flag from " + f.first.pipe + " of " + f.first.core + " to " + f.second.pipe + " of " +
                f.second.core + " between them";
  }
  Report(sides, std::move(f));
}

void HazardMonitor::CheckSet(const Core& core, int agent, const SyncPoint& p) {
  const uint32_t waited = flags_[FlagNumber(core.slot(), p)].waited;
  const int waiter = core.slot() * kPipes + p.b;
  if (!waited || agents_[agent].knows.at[waiter] >= waited) return;
  const uint32_t seq = agents_[agent].done + 1;
  const Executed &wait = executed_[waiter][waited - 1], &set = executed_[agent][seq - 1];
  const Sides sides{wait.inst, set.inst, 2000, waited, seq};
  if (Again(sides, 0, 0)) return;
  const auto index = [](const Executed& e) { return Index(*e.code, e.inst); };
  Finding f;
  f.kind = "flag";
  f.first = Place(waiter, waited, index(wait), false);
  f.second = Place(agent, seq, index(set), true);
  const std::string name = std::string(kPipeNames[p.a]) + "->" + kPipeNames[p.b] + " " + std::to_string(p.c);
  f.message = "flag " + name + " may be set again before the wait for its last set: nothing orders wait_flag (line " +
              std::to_string(f.first.line) + ") before set_flag (line " + std::to_string(f.second.line) + ")";
  f.missing = std::string("no ") + kPipeNames[p.b] + "->" + kPipeNames[p.a] + " flag, token or barrier between them";
  f.memory = name;
  Report(sides, std::move(f));
}

void HazardMonitor::Uninitialised(const Context& c, const Inst* in, Memory memory, int64_t offset, int64_t bytes,
                                  bool strict) {
  const uint32_t seq = agents_[running_.agent].done + 1;
  const Sides sides{in, in, 1000, seq, seq};
  if (Again(sides, offset, offset + bytes)) return;
  Finding f;
  f.kind = "uninitialised";
  f.memory = kMemoryNames[static_cast<int>(memory)];
  f.begin = offset, f.end = offset + bytes;
  f.first = f.second = Place(running_.agent, agents_[running_.agent].done + 1, Index(*c.code, in), false);
  f.message = Bytes(bytes) + " of " + f.memory + " from byte " + std::to_string(offset) + " on are read, and " +
              (strict ? "not all of them have been written" : "none of them has been written");
  f.missing = "nothing has written them before";
  Report(sides, std::move(f));
}

void HazardMonitor::Extend(Found* found, const Sides& sides, int64_t begin, int64_t end) {
  Finding& f = found->finding;
  if (f.first.block != block_ || found->seqs != std::make_pair(sides.first_seq, sides.second_seq)) return;
  f.begin = std::min(f.begin, begin), f.end = std::max(f.end, end);
}

bool HazardMonitor::Again(const Sides& sides, int64_t begin, int64_t end) {
  auto it = known_.find(sides);
  if (it == known_.end()) return false;
  ++it->second->finding.count;
  Extend(it->second, sides, begin, end);
  return true;
}

void HazardMonitor::Report(const Sides& sides, Finding f) {
  const auto key = std::make_tuple(f.first.line, f.second.line, static_cast<int>(f.first.write),
                                   static_cast<int>(f.second.write), f.memory, f.kind);
  const int64_t begin = f.begin, end = f.end;
  auto [place, fresh] = findings_.try_emplace(key, Found{std::move(f), {}});
  // Its bytes are those of the executions that it names.
  if (fresh) place->second.seqs = {sides.first_seq, sides.second_seq};
  if (!fresh) {
    ++place->second.finding.count;
    Extend(&place->second, sides, begin, end);
  }
  known_.emplace(sides, &place->second);
}

}  // namespace pto::engine
