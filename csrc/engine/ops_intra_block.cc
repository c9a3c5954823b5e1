// set_intra_block and wait_intra_block: flags between the cube core of a block and each of its vector cores (mode 4).
//
// A set takes effect when the earlier commands of its pipe are done; a wait holds up its pipe only. Ids 0 to 15; the
// cube core reaches those of vector core 1 as 16 to 31.
#include "commands.h"

namespace pto::engine {
namespace {

struct FlagPlace {
  int vector_core, id;
};

FlagPlace Find(const Core& core, const Command& c) {
  const int id = static_cast<int>(c.values[0]);
  if (core.function().core == CoreKind::kCube) return {id / IntraFlags::kIds, id % IntraFlags::kIds};
  return {core.sub_block, id};
}

std::string FlagName(const Core& core, const FlagPlace& p, bool set) {
  const std::string other = "AIV" + std::to_string(p.vector_core);
  const bool from_cube = (core.function().core == CoreKind::kCube) == set;
  return (from_cube ? "AIC->" + other : other + "->AIC") + " " + std::to_string(p.id);
}

SyncPoint Point(const Core& core, const FlagPlace& p, bool set) {
  const bool from_cube = (core.function().core == CoreKind::kCube) == set;
  return {SyncPoint::kIntra, p.vector_core, from_cube, p.id};
}

bool RunSet(Core& core, const Command& c) {
  const FlagPlace p = Find(core, c);
  IntraFlags& f = core.shared->intra;
  auto& flags = core.function().core == CoreKind::kCube ? f.to_vector : f.to_cube;
  uint8_t& count = flags[p.vector_core][p.id];
  if (count == IntraFlags::kMost) {
    core.Fail(c.inst, "intra-block flag " + FlagName(core, p, true) + " is set more than 15 times ahead of its waits",
              kPipeNames[c.inst->b]);
  }
  ++count;
  core.Signal(static_cast<Pipe>(c.inst->b), Point(core, p, true));
  return true;
}

bool RunWait(Core& core, const Command& c) {
  const FlagPlace p = Find(core, c);
  IntraFlags& f = core.shared->intra;
  auto& flags = core.function().core == CoreKind::kCube ? f.to_cube : f.to_vector;
  uint8_t& count = flags[p.vector_core][p.id];
  if (count == 0) return false;
  --count;
  core.Waited(static_cast<Pipe>(c.inst->b), Point(core, p, false));
  return true;
}

// a: slot of the id, b: pipe, e: ids
template <CommandFn kRun>
const Inst* Issue(Context& c, const Inst* in) {
  const int64_t id = c.S<int64_t>(in->a);
  if (id < 0 || id >= in->e) {
    c.Fail(in, "intra-block flag " + std::to_string(id) + " is not in 0.." + std::to_string(in->e - 1) +
                   (in->e == IntraFlags::kIds
                        ? " (a vector core's own; 16 to 31 are the cube core's names for vector core 1)"
                        : ""));
  }
  const Pipe p = static_cast<Pipe>(in->b);
  *c.core->queue(p).Push(kRun, in, 1) = static_cast<uint64_t>(id);
  c.core->Issued(p);
  return in + 1;
}

template <CommandFn kRun>
void Compile(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 0);
  const Pipe p = ParsePipe(b, b.TextAttribute(op, "pipe", ""), false);
  b.Expect(p != kPipeS, "the scalar unit does not take part in flags within a block");
  b.Expect(b.scope().mixed, "flags within a block need a mixed kernel: one with a cube and a vector section");
  const uint32_t id = b.Int64(op.operands[0]);
  Inst& in = b.Emit(&Issue<kRun>);
  in.a = id, in.b = p;
  in.e = b.scope().core == CoreKind::kCube ? IntraFlags::kIds * IntraFlags::kVectorCores : IntraFlags::kIds;
}

}  // namespace

std::string DescribeIntraWait(const Core& core, const Command& c) {
  return c.fn == &RunWait ? "intra-block flag " + FlagName(core, Find(core, c), false) : "";
}

const OpTable& IntraBlockOps() {
  static const OpTable table = {
      {"set_intra_block", kOnScalar, &Compile<&RunSet>},
      {"wait_intra_block", kOnScalar, &Compile<&RunWait>},
  };
  return table;
}

}  // namespace pto::engine
