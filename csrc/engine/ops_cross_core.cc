// set_cross_block and wait_cross_block: a barrier among all cores of one kind of the launch (mode 0).
//
// A set takes effect when the earlier commands of its pipe are done. The launcher hands the flags over between its
// rounds (launch.cc); a wait stalls the scalar unit, so the core parks until then.
#include <string>

#include "builder.h"
#include "core.h"

namespace pto::engine {
namespace {

bool RunSet(Core& core, const Command& c) {
  const int id = static_cast<int>(c.values[0]);
  CrossFlags& f = core.cross;
  if (f.set[id] - f.delivered[id] == CrossFlags::kMost) {
    core.Fail(c.inst, "cross-core flag " + std::to_string(id) + " is set more than 15 times ahead of the other cores",
              kPipeNames[c.inst->b]);
  }
  ++f.set[id];
  core.Signal(static_cast<Pipe>(c.inst->b), {SyncPoint::kCross, core.function().core == CoreKind::kCube, id});
  return true;
}

int Id(Context& c, const Inst* in) {
  const int64_t id = c.S<int64_t>(in->a);
  if (id < 0 || id >= CrossFlags::kIds) c.Fail(in, "cross-core flag " + std::to_string(id) + " is not in 0..15");
  return static_cast<int>(id);
}

// a: slot of the id, b: pipe
const Inst* Set(Context& c, const Inst* in) {
  const int id = Id(c, in);
  const Pipe p = static_cast<Pipe>(in->b);
  *c.core->queue(p).Push(&RunSet, in, 1) = static_cast<uint64_t>(id);
  c.core->Issued(p);
  return in + 1;
}

const Inst* Wait(Context& c, const Inst* in) {
  const int id = Id(c, in);
  uint32_t& count = c.core->cross.count[id];
  if (count) {
    --count;
    c.core->Waited(kPipeS, {SyncPoint::kCross, c.core->function().core == CoreKind::kCube, id});
    return in + 1;
  }
  c.core->Park(in);
  return nullptr;
}

void Compile(Builder& b, const Op& op, Handler h) {
  b.ExpectCounts(op, 1, 0);
  const Pipe p = ParsePipe(b, b.TextAttribute(op, "pipe", ""), false);
  CompiledFunction& f = *b.scope().function;
  if (!f.cross.op) f.cross = {&*b.scope().names->insert(op.name).first, op.line};
  const uint32_t id = b.Int64(op.operands[0]);
  Inst& in = b.Emit(h);
  in.a = id, in.b = p;
}

void CompileSet(Builder& b, const Op& op) { Compile(b, op, &Set); }
void CompileWait(Builder& b, const Op& op) { Compile(b, op, &Wait); }

}  // namespace

std::string DescribeCrossWait(const Context& c, const Inst* in) {
  if (in->fn != &Wait) return "";
  return "cross-core flag " + std::to_string(*reinterpret_cast<const int64_t*>(c.s + in->a));
}

const OpTable& CrossCoreOps() {
  static const OpTable table = {
      {"set_cross_block", kOnScalar, &CompileSet},
      {"wait_cross_block", kOnScalar, &CompileWait},
  };
  return table;
}

}  // namespace pto::engine
