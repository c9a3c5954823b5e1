// get_buf and rls_buf: tokens that order the pipes of a core around a buffer.
//
// A get passes once all releases of its id that stand before it in the program are done, whatever their pipe. That
// gives both directions, producer to consumer and back, from one id.
#include <string>

#include "builder.h"
#include "core.h"

namespace pto::engine {
namespace {

// Command values: id, number of releases (get) or of this release (rls).
bool RunGet(Core& core, const Command& c) {
  // flag: mode 1 does not block.
  const int id = static_cast<int>(c.values[0]);
  if (c.inst->flag) return true;
  if (!core.tokens.Passed(id, c.values[1])) return false;
  core.Waited(static_cast<Pipe>(c.inst->b), {SyncPoint::kToken, id});
  return true;
}
bool RunRelease(Core& core, const Command& c) {
  // flag: mode 1 waits for all earlier releases.
  const int id = static_cast<int>(c.values[0]);
  const Pipe p = static_cast<Pipe>(c.inst->b);
  if (c.inst->flag) {
    if (!core.tokens.Passed(id, c.values[1])) return false;
    core.Waited(p, {SyncPoint::kToken, id});
  }
  core.tokens.Release(id, c.values[1]);
  core.Signal(p, {SyncPoint::kToken, id});
  return true;
}

int Id(Context& c, const Inst* in) {
  const int64_t id = c.S<int64_t>(in->a);
  if (id < 0 || id >= BufferTokens::kIds) c.Fail(in, "buffer id " + std::to_string(id) + " is not in 0..31");
  return static_cast<int>(id);
}

std::string Place(const Context& c, const Inst* in) {
  return "line " + std::to_string(c.code->debug[static_cast<size_t>(in - c.code->insts.data())].line);
}

// a: slot of the id, b: pipe, flag: mode
const Inst* Get(Context& c, const Inst* in) {
  const int id = Id(c, in);
  const Pipe p = static_cast<Pipe>(in->b);
  BufferTokens::Id& token = c.core->tokens.ids[id];
  // A scalar unit that waits runs its instruction again.
  if (token.open && !(p == kPipeS && token.open == in)) {
    c.Fail(in, "buffer " + std::to_string(id) + " is taken again before its release (taken at " + Place(c, token.open) +
                   ")");
  }
  if (p == kPipeS) {
    token.open = in;
    if (!in->flag && !c.core->tokens.Passed(id, token.done.size())) {
      c.core->Park(in);
      return nullptr;
    }
    if (!in->flag) c.core->Waited(kPipeS, {SyncPoint::kToken, id});
    return in + 1;
  }
  token.open = in;
  uint64_t* values = c.core->queue(p).Push(&RunGet, in, 2);
  values[0] = static_cast<uint64_t>(id), values[1] = token.done.size();
  c.core->Issued(p);
  return in + 1;
}

const Inst* Release(Context& c, const Inst* in) {
  const int id = Id(c, in);
  const Pipe p = static_cast<Pipe>(in->b);
  BufferTokens::Id& token = c.core->tokens.ids[id];
  if (!token.open) c.Fail(in, "buffer " + std::to_string(id) + " is released without having been taken");
  if (token.open->b != in->b || token.open->flag != in->flag) {
    c.Fail(in, "buffer " + std::to_string(id) + " was taken with another pipe or mode (" + Place(c, token.open) + ")");
  }
  if (p == kPipeS) {
    if (in->flag && !c.core->tokens.Passed(id, token.done.size())) {
      c.core->Park(in);
      return nullptr;
    }
    if (in->flag) c.core->Waited(kPipeS, {SyncPoint::kToken, id});
    token.open = nullptr;
    token.done.push_back(0);
    c.core->tokens.Release(id, token.done.size() - 1);
    c.core->Signal(kPipeS, {SyncPoint::kToken, id});
    if (!c.core->QueuesEmpty()) {
      for (int q = 0; q < kPipes; ++q) c.core->Issued(static_cast<Pipe>(q));
    }
    return in + 1;
  }
  token.open = nullptr;
  token.done.push_back(0);
  uint64_t* values = c.core->queue(p).Push(&RunRelease, in, 2);
  values[0] = static_cast<uint64_t>(id), values[1] = token.done.size() - 1;
  c.core->Issued(p);
  return in + 1;
}

void Compile(Builder& b, const Op& op, Handler h) {
  b.ExpectCounts(op, 1, 0);
  const Pipe p = ParsePipe(b, b.TextAttribute(op, "pipe", ""), false);
  const int64_t mode = b.IntegerAttribute(op, "mode", 0);
  b.Expect(mode == 0 || mode == 1, "mode is 0 or 1, found " + std::to_string(mode));
  const uint32_t id = b.Int64(op.operands[0]);
  Inst& in = b.Emit(h);
  in.a = id, in.b = p, in.flag = static_cast<uint8_t>(mode);
}

void CompileGet(Builder& b, const Op& op) { Compile(b, op, &Get); }
void CompileRelease(Builder& b, const Op& op) { Compile(b, op, &Release); }

std::string Buffer(int64_t id) { return "the releases of buffer " + std::to_string(id); }

}  // namespace

std::string DescribeTokenWait(const Command& c) {
  return c.fn == &RunGet || c.fn == &RunRelease ? Buffer(static_cast<int64_t>(c.values[0])) : "";
}
std::string DescribeTokenWait(const Context& c, const Inst* in) {
  if (in->fn != &Get && in->fn != &Release) return "";
  return Buffer(*reinterpret_cast<const int64_t*>(c.s + in->a));
}

const OpTable& BufferTokenOps() {
  static const OpTable table = {
      {"get_buf", kOnScalar, &CompileGet},
      {"rls_buf", kOnScalar, &CompileRelease},
  };
  return table;
}

}  // namespace pto::engine
