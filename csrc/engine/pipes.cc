// Queues, flags and barriers of a core: issue, drain, deadlock and leak reports.
#include <cstring>

#include "builder.h"
#include "core.h"

namespace pto::engine {

// --- draining ---

bool Core::RunCommand(Pipe p) {
  CommandQueue& q = queues_[p];
  if (q.Empty()) return false;
  const Command c = q.Head();
  if (__builtin_expect(monitor_ != nullptr, 0)) {
    monitor_->Start(*this, p, c);
    if (!c.fn(*this, c)) return false;
    monitor_->Done(*this, p, c);
  } else if (!c.fn(*this, c)) {
    return false;
  }
  q.Pop();
  return true;
}

bool Core::RunPipe(Pipe p) {
  bool progress = false;
  while (RunCommand(p)) progress = true;
  return progress;
}

bool Core::QueuesEmpty() const {
  for (const CommandQueue& q : queues_) {
    if (!q.Empty()) return false;
  }
  return true;
}

// --- reports ---

void Core::Fail(const Inst* in, const std::string& message, const char* pipe) const {
  Context c = scalar_;
  c.pipe = pipe;
  c.Fail(in, message);
}

namespace {

std::string FlagName(int src, int dst, int id) {
  return std::string(kPipeNames[src]) + "->" + kPipeNames[dst] + " " + std::to_string(id);
}

bool RunWait(Core& core, const Command& c);
const Inst* WaitScalar(Context& c, const Inst* in);

}  // namespace

std::string Core::Blocked() const {
  std::string s;
  auto line = [&](const Inst* in) {
    return " (line " +
           std::to_string(function_.code.debug[static_cast<size_t>(in - function_.code.insts.data())].line) + ")";
  };
  auto add = [&](const std::string& text) { s += (s.empty() ? "" : "; ") + text; };
  if (resume_) {
    if (resume_->fn == &WaitScalar) {
      Context c = scalar_;
      add("S waits for flag " + FlagName(resume_->b, kPipeS, static_cast<int>(c.S<int64_t>(resume_->a))) +
          line(resume_));
    } else if (std::string what = DescribeTokenWait(scalar_, resume_) + DescribeCrossWait(scalar_, resume_);
               !what.empty()) {
      add("S waits for " + what + line(resume_));
    } else {
      add("S waits in pipe_barrier ALL" + line(resume_));
    }
  }
  for (int p = 0; p < kPipes; ++p) {
    if (queues_[p].Empty()) continue;
    const Command c = queues_[p].Head();
    const std::string behind =
        queues_[p].Size() > 1 ? ", " + std::to_string(queues_[p].Size() - 1) + " commands behind it" : "";
    if (c.fn == &RunWait) {
      add(std::string(kPipeNames[p]) + " waits for flag " +
          FlagName(c.inst->b, c.inst->c, static_cast<int>(c.values[0])) + line(c.inst) + behind);
    } else if (const std::string what = DescribeTokenWait(c) + DescribeIntraWait(*this, c) + DescribeMadWait(*this, c) +
                                        DescribeFixpipeWait(*this, c);
               !what.empty()) {
      add(std::string(kPipeNames[p]) + " waits for " + what + line(c.inst) + behind);
    } else {
      add(std::string(kPipeNames[p]) + " is blocked" + line(c.inst) + behind);
    }
  }
  return s;
}

void Core::FailDeadlock() const { FailBlocked("deadlock: " + Blocked()); }

void Core::FailBlocked(const std::string& message) const {
  const Inst* in = resume_;
  const char* pipe = "S";
  for (int p = 0; !in && p < kPipes; ++p) {
    if (!queues_[p].Empty()) in = queues_[p].Head().inst, pipe = kPipeNames[p];
  }
  Fail(in, message, pipe);
}

void Core::CheckEnd() const {
  for (int src = 0; src < kPipes; ++src) {
    for (int dst = 0; dst < kPipes; ++dst) {
      if (!flags_[src][dst]) continue;
      std::string s;
      for (int id = 0; id < kEventIds; ++id) {
        if (flags_[src][dst] >> id & 1) s += (s.empty() ? "" : ", ") + FlagName(src, dst, id);
      }
      ErrorPlace place;
      place.function = function_.name;
      place.file = *function_.code.file;
      place.line = function_.line;
      place.core = block;
      place.core_name = name;
      throw Error("flag left set at the end of the kernel (it leaks into the next one): " + s, place);
    }
  }
  for (int id = 0; id < BufferTokens::kIds; ++id) {
    if (const Inst* in = tokens.ids[id].open) {
      Fail(in, "buffer " + std::to_string(id) + " is not released at the end of the kernel", kPipeNames[in->b]);
    }
  }
}

void Core::SetFlag(const Inst* in, Pipe src, Pipe dst, int id) {
  const uint8_t bit = static_cast<uint8_t>(1u << id);
  if (flags_[src][dst] & bit) {
    Fail(in, "flag " + FlagName(src, dst, id) + " is set again before any wait for it", kPipeNames[src]);
  }
  flags_[src][dst] |= bit;
  Signal(src, {SyncPoint::kFlag, src, dst, id, in});
}

// --- instructions ---

namespace {

int EventId(Context& c, const Inst* in) {
  const int64_t id = c.S<int64_t>(in->a);
  if (id < 0 || id >= kEventIds) c.Fail(in, "event id " + std::to_string(id) + " is not in 0..7");
  return static_cast<int>(id);
}

bool RunSet(Core& core, const Command& c) {
  core.SetFlag(c.inst, static_cast<Pipe>(c.inst->b), static_cast<Pipe>(c.inst->c), static_cast<int>(c.values[0]));
  return true;
}

bool RunWait(Core& core, const Command& c) {
  return core.TestAndClear(static_cast<Pipe>(c.inst->b), static_cast<Pipe>(c.inst->c), static_cast<int>(c.values[0]));
}

bool RunBarrier(Core& core, const Command& c) {
  core.Waited(static_cast<Pipe>(c.inst->b), {SyncPoint::kBarrier, static_cast<int>(c.inst->b)});
  return true;
}

// a: event id slot, b: source pipe, c: destination pipe
const Inst* SetQueued(Context& c, const Inst* in) {
  const int id = EventId(c, in);
  const Pipe src = static_cast<Pipe>(in->b);
  *c.core->queue(src).Push(&RunSet, in, 1) = static_cast<uint64_t>(id);
  c.core->Issued(src);
  return in + 1;
}

const Inst* SetScalar(Context& c, const Inst* in) {
  c.core->SetFlag(in, kPipeS, static_cast<Pipe>(in->c), EventId(c, in));
  c.core->Issued(static_cast<Pipe>(in->c));
  return in + 1;
}

const Inst* WaitQueued(Context& c, const Inst* in) {
  const int id = EventId(c, in);
  const Pipe dst = static_cast<Pipe>(in->c);
  *c.core->queue(dst).Push(&RunWait, in, 1) = static_cast<uint64_t>(id);
  c.core->Issued(dst);
  return in + 1;
}

const Inst* WaitScalar(Context& c, const Inst* in) {
  if (c.core->TestAndClear(static_cast<Pipe>(in->b), kPipeS, EventId(c, in))) return in + 1;
  c.core->Park(in);
  return nullptr;
}

// b: pipe
const Inst* Barrier(Context& c, const Inst* in) {
  const Pipe p = static_cast<Pipe>(in->b);
  c.core->queue(p).Push(&RunBarrier, in, 0);
  c.core->Issued(p);
  return in + 1;
}

const Inst* BarrierAll(Context& c, const Inst* in) {
  if (c.core->QueuesEmpty()) {
    c.core->Waited(kPipeS, {SyncPoint::kBarrier, kPipeAll});
    return in + 1;
  }
  c.core->Park(in);
  return nullptr;
}

// a: classes of accesses before it, b: of those behind it. Here everything in a vector function happens in program
// order; a monitor knows what the hardware may reorder.
const Inst* MemBar(Context& c, const Inst* in) {
  if (__builtin_expect(c.monitor != nullptr, 0)) {
    c.monitor->MemBar(c, in, static_cast<uint8_t>(in->a), static_cast<uint8_t>(in->b));
  }
  return in + 1;
}

void CompileFlag(Builder& b, const Op& op, bool set) {
  b.ExpectCounts(op, 1, 0);
  const Pipe src = ParsePipe(b, b.TextAttribute(op, "src", ""), false);
  const Pipe dst = ParsePipe(b, b.TextAttribute(op, "dst", ""), false);
  b.Expect(src != dst, "source and destination pipe are the same");
  const uint32_t id = b.Int64(op.operands[0]);
  Inst& in = b.Emit(set ? (src == kPipeS ? &SetScalar : &SetQueued) : (dst == kPipeS ? &WaitScalar : &WaitQueued));
  in.a = id, in.b = src, in.c = dst;
}

void CompileSet(Builder& b, const Op& op) { CompileFlag(b, op, true); }
void CompileWait(Builder& b, const Op& op) { CompileFlag(b, op, false); }

void CompileBarrier(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 0);
  const Pipe p = ParsePipe(b, b.TextAttribute(op, "pipe", ""), true);
  b.Expect(p != kPipeS, "pipe_barrier of pipe S does not exist");
  b.Emit(p == kPipeAll ? &BarrierAll : &Barrier).b = p;
}

struct BarrierKind {
  const char* name;
  uint8_t first, second;
};

void CompileMemBar(Builder& b, const Op& op) {
  constexpr uint8_t kVld = Monitor::kVectorLoad, kVst = Monitor::kVectorStore, kLd = Monitor::kScalarLoad,
                    kSt = Monitor::kScalarStore, kV = kVld | kVst, kS = kLd | kSt;
  static const BarrierKind kKinds[] = {
      {"VV_ALL", kV, kV}, {"VST_VLD", kVst, kVld}, {"VLD_VST", kVld, kVst}, {"VST_VST", kVst, kVst},
      {"VS_ALL", kV, kS}, {"VST_LD", kVst, kLd},   {"VLD_ST", kVld, kSt},   {"VST_ST", kVst, kSt},
      {"SV_ALL", kS, kV}, {"ST_VLD", kSt, kVld},   {"LD_VST", kLd, kVst},   {"ST_VST", kSt, kVst},
      {"SS_ALL", kS, kS}, {"ST_LD", kSt, kLd},     {"LD_ST", kLd, kSt},     {"ST_ST", kSt, kSt},
  };
  b.ExpectCounts(op, 0, 0);
  const std::string kind = b.TextAttribute(op, "kind", "");
  const BarrierKind* found = nullptr;
  for (const BarrierKind& k : kKinds) {
    if (kind == k.name) found = &k;
  }
  b.Expect(found, "unknown kind " + kind);
  Inst& in = b.Emit(&MemBar);
  in.a = found->first, in.b = found->second;
}

bool RunVector(Core& core, const Command& c) {
  core.RunVectorFunction(*core.function().code.children[c.inst->a], c.values);
  return true;
}

}  // namespace

Pipe ParsePipe(Builder& b, std::string name, bool all_allowed) {
  if (name.rfind("PIPE_", 0) == 0) name = name.substr(5);
  for (int p = 0; p < kPipes; ++p) {
    if (name == kPipeNames[p]) {
      const bool cube_only = p == kPipeM || p == kPipeMte1 || p == kPipeFix;
      const bool vector_only = p == kPipeV || p == kPipeMte3;
      const char* advice = b.scope().mixed ? " (in a mixed kernel it belongs into a section)" : "";
      if (b.scope().core == CoreKind::kVector && cube_only) b.Fail("a vector core has no pipe " + name + advice);
      if (b.scope().core == CoreKind::kCube && vector_only) b.Fail("a cube core has no pipe " + name + advice);
      return static_cast<Pipe>(p);
    }
  }
  if (all_allowed && name == "ALL") return kPipeAll;
  b.Fail("unknown pipe " + name);
}

const Inst* IssueVectorFunction(Context& c, const Inst* in) {
  const Code& child = *c.code->children[in->a];
  uint64_t* values = c.core->queue(kPipeV).Push(&RunVector, in, static_cast<uint32_t>(child.captures.size()));
  for (size_t i = 0; i < child.captures.size(); ++i) values[i] = c.S<uint64_t>(child.captures[i].from);
  c.core->Issued(kPipeV);
  return in + 1;
}

const OpTable& SyncOps() {
  static const OpTable table = {
      {"set_flag", kOnScalar, &CompileSet},
      {"wait_flag", kOnScalar, &CompileWait},
      {"pipe_barrier", kOnScalar, &CompileBarrier},
      {"mem_bar", kOnVector, &CompileMemBar},
  };
  return table;
}

}  // namespace pto::engine
