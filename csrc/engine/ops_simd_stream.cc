// Streams: loads and stores of vector registers at any element through an alignment state, and predicates in memory.
//
// A state takes one register slot. A load stream's state is the 32-byte block the next load begins in, read when the
// stream was primed or by the load before. A store stream's state is the block that is not full yet.
#include <algorithm>
#include <cstring>
#include <string>

#include "core.h"
#include "simd.h"

namespace pto::engine {
namespace {

constexpr int64_t kBlock = 32;
constexpr int64_t BlockOf(int64_t address) { return address & ~(kBlock - 1); }

enum StreamKind : uint64_t { kLoadStream = 0x4C, kStoreStream = 0x53 };

struct AlignState {
  uint64_t kind;
  int64_t block;    // address of the block
  uint64_t number;  // kStoreStream: of the stream, 0 before its first store
  int32_t begin;    // kStoreStream: bytes [begin, end) of the block wait to be written
  int32_t end;
  uint8_t bytes[kBlock];
};
static_assert(sizeof(AlignState) <= kVectorBytes, "a state fits a register slot");

inline AlignState& State(Context& c, uint32_t slot) { return *reinterpret_cast<AlignState*>(c.v + slot); }

std::string At(int64_t address) { return "address " + std::to_string(address); }

// --- loads ---

// A block that a stream reads ahead may lie behind the end of the memory; nothing of it is used then.
void ReadBlock(const Context& c, int64_t block, AlignState& s) {
  s.kind = kLoadStream;
  s.block = block;
  s.number = 0;
  s.begin = s.end = 0;
  if (block >= 0 && block + kBlock <= c.ub_bytes) {
    std::memcpy(s.bytes, c.ub + block, kBlock);
  } else {
    std::memset(s.bytes, 0xFF, kBlock);
  }
}

// d: state, a: pointer, c: bytes of an element
const Inst* PrimeLoad(Context& c, const Inst* in) {
  const uint64_t p = c.S<uint64_t>(in->a);
  c.Ub(in, p, 0, in->c, in->c, Access::kRead);
  ReadBlock(c, BlockOf(OffsetOf(p)), State(c, in->d));
  return in + 1;
}

// d: register, e: next state, a: pointer, b: state, c: bytes of an element
const Inst* StreamLoad(Context& c, const Inst* in) {
  const uint64_t p = c.S<uint64_t>(in->a);
  const int64_t at = OffsetOf(p);
  const uint8_t* from = c.Ub(in, p, 0, kVectorBytes, in->c, Access::kRead);
  const AlignState s = State(c, in->b);
  if (s.kind != kLoadStream) c.Fail(in, "the state belongs to a store stream");
  if (s.block != BlockOf(at)) {
    c.Fail(in, "the state holds the block at " + At(s.block) + " and the load begins at " + At(at) +
                   ": prime the stream there with vldas");
  }
  const int64_t skip = at - s.block;
  if (std::memcmp(s.bytes + skip, from, static_cast<size_t>(kBlock - skip)) != 0) {
    c.Fail(in, "the state is stale: the block at " + At(s.block) +
                   " was written after the stream had read it; prime it again with vldas");
  }
  std::memcpy(c.v + in->d, from, kVectorBytes);
  ReadBlock(c, BlockOf(at + kVectorBytes), State(c, in->e));
  return in + 1;
}

// --- stores ---

const Inst* EmptyStore(Context& c, const Inst* in) {
  std::memset(c.v + in->d, 0, kVectorBytes);
  State(c, in->d).kind = kStoreStream;
  return in + 1;
}

// Appends n bytes at an address. Full blocks are written, the rest waits in the state.
void Append(Context& c, const Inst* in, AlignState& s, int64_t at, const uint8_t* from, int64_t n) {
  if (s.kind != kStoreStream) c.Fail(in, "the state belongs to a load stream");
  if (s.number != 0 && s.block + s.end != at) {
    c.Fail(in, "the stream goes on at " + At(s.block + s.end) + " and the store begins at " + At(at));
  }
  if (n == 0) return;
  if (s.number == 0) {
    s.block = BlockOf(at);
    s.begin = s.end = static_cast<int32_t>(at - s.block);
    s.number = ++c.core->streams.last_number;
  }
  c.core->streams.Close(s.number);
  while (n > 0) {
    const int64_t part = std::min<int64_t>(n, kBlock - s.end);
    std::memcpy(s.bytes + s.end, from, static_cast<size_t>(part));
    s.end += static_cast<int32_t>(part), from += part, n -= part;
    if (s.end < kBlock) break;
    std::memcpy(c.ub + s.block + s.begin, s.bytes + s.begin, static_cast<size_t>(kBlock - s.begin));
    s.block += kBlock;
    s.begin = s.end = 0;
  }
  if (s.end > s.begin) c.core->streams.open.push_back({s.number, in});
}

void Flush(Context& c, const Inst* in, const AlignState& s, int64_t at) {
  if (s.kind != kStoreStream) c.Fail(in, "the state belongs to a load stream");
  if (s.number == 0) return;
  if (s.block + s.end != at) {
    c.Fail(in, "the stream ends at " + At(s.block + s.end) + " and is flushed at " + At(at));
  }
  std::memcpy(c.ub + s.block + s.begin, s.bytes + s.begin, static_cast<size_t>(s.end - s.begin));
  c.core->streams.Close(s.number);
}

// d: next state, a: state, b: count, c: register, e: pointer, imm: bytes of an element
const Inst* StreamStore(Context& c, const Inst* in) {
  const int64_t count = c.S<int64_t>(in->b), lanes = kVectorBytes / in->imm;
  if (count < 0 || count > lanes) {
    c.Fail(in, "the count is " + std::to_string(count) + ", a register has " + std::to_string(lanes) + " elements");
  }
  const uint64_t p = c.S<uint64_t>(in->e);
  c.Ub(in, p, 0, count * in->imm, in->imm, Access::kWrite);
  AlignState s = State(c, in->a);
  Append(c, in, s, OffsetOf(p), c.v + in->c, count * in->imm);
  State(c, in->d) = s;
  return in + 1;
}

// The same with the length that the last vsqz left, at pointer + AR. flag: AR counts it.
const Inst* StreamStoreCounted(Context& c, const Inst* in) {
  StreamState& r = c.core->streams;
  const uint64_t p = AddBytes(c.S<uint64_t>(in->e), r.position);
  c.Ub(in, p, 0, r.squeezed_bytes, in->imm, Access::kWrite);
  AlignState s = State(c, in->a);
  Append(c, in, s, OffsetOf(p), c.v + in->c, r.squeezed_bytes);
  State(c, in->d) = s;
  if (in->flag) r.position += r.squeezed_bytes;
  return in + 1;
}

// a: state, b: offset, e: pointer, imm: bytes of an element
const Inst* FlushAt(Context& c, const Inst* in) {
  Flush(c, in, State(c, in->a), OffsetOf(c.S<uint64_t>(in->e)) + c.S<int64_t>(in->b) * in->imm);
  return in + 1;
}
const Inst* FlushCounted(Context& c, const Inst* in) {
  Flush(c, in, State(c, in->a), OffsetOf(c.S<uint64_t>(in->e)) + c.core->streams.position);
  return in + 1;
}

// --- predicates ---

// Offsets are in bytes. d: mask, a: pointer, b: offset
const Inst* LoadMask(Context& c, const Inst* in) {
  std::memcpy(c.M(in->d), c.Ub(in, c.S<uint64_t>(in->a), c.S<int64_t>(in->b), 32, 32, Access::kRead), 32);
  return in + 1;
}

// 16 bytes, every bit twice.
const Inst* LoadMaskDoubled(Context& c, const Inst* in) {
  uint64_t s[2];
  std::memcpy(s, c.Ub(in, c.S<uint64_t>(in->a), c.S<int64_t>(in->b), 16, 16, Access::kRead), 16);
  uint64_t* d = c.M(in->d);
  for (int i = 0; i < 4; ++i) {
    const uint64_t even = SpreadBits(s[i / 2] >> (32 * (i % 2)));
    d[i] = even | even << 1;
  }
  return in + 1;
}

// 64 bytes, every second bit.
const Inst* LoadMaskHalved(Context& c, const Inst* in) {
  uint64_t s[8];
  std::memcpy(s, c.Ub(in, c.S<uint64_t>(in->a), c.S<int64_t>(in->b), 64, 32, Access::kRead), 64);
  uint64_t* d = c.M(in->d);
  for (int i = 0; i < 4; ++i) d[i] = EvenBits(s[2 * i]) | EvenBits(s[2 * i + 1]) << 32;
  return in + 1;
}

const Inst* StoreMask(Context& c, const Inst* in) {
  std::memcpy(c.Ub(in, c.S<uint64_t>(in->a), c.S<int64_t>(in->b), 32, 32, Access::kWrite), c.M(in->d), 32);
  return in + 1;
}

// Even bits only.
const Inst* StoreMaskPacked(Context& c, const Inst* in) {
  const uint64_t* m = c.M(in->d);
  const uint64_t packed[2] = {EvenBits(m[0]) | EvenBits(m[1]) << 32, EvenBits(m[2]) | EvenBits(m[3]) << 32};
  std::memcpy(c.Ub(in, c.S<uint64_t>(in->a), c.S<int64_t>(in->b), 16, 16, Access::kWrite), packed, 16);
  return in + 1;
}

// One bit per lane appended to a store stream. d: next state, a: state, c: mask, e: pointer, imm: slot of the next one,
// flag: bytes of a lane, b: bytes of the pointer's elements
const Inst* StreamStoreMask(Context& c, const Inst* in) {
  const uint64_t* m = c.M(in->c);
  uint64_t bits[2] = {EvenBits(m[0]) | EvenBits(m[1]) << 32, EvenBits(m[2]) | EvenBits(m[3]) << 32};
  if (in->flag == 4) bits[0] = EvenBits(bits[0]) | EvenBits(bits[1]) << 32;
  const int64_t bytes = 32 / in->flag;
  const uint64_t p = c.S<uint64_t>(in->e);
  c.Ub(in, p, 0, bytes, in->b, Access::kWrite);
  AlignState s = State(c, in->a);
  Append(c, in, s, OffsetOf(p), reinterpret_cast<const uint8_t*>(bits), bytes);
  State(c, in->d) = s;
  c.S<uint64_t>(static_cast<uint32_t>(in->imm)) = AddBytes(p, bytes);
  return in + 1;
}

// --- compilation ---

uint32_t StateSlot(Builder& b, uint32_t value) {
  b.Expect(b.Type(value).kind == Kind::kAlignState,
           std::string("expected an align state, found a ") + Name(b.Type(value).kind));
  return b.Find(value).slot;
}

void CompilePrimeLoad(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 1);
  ExpectUb(b, op.operands[0]);
  const uint32_t p = b.Scalar(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&PrimeLoad, kCountVector);
  in.d = d.slot, in.a = p, in.c = static_cast<uint32_t>(ByteSize(b.Type(op.operands[0]).dtype));
}

void CompileStreamLoad(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 2);
  ExpectUb(b, op.operands[0]);
  b.ExpectVector(op.results[0]);
  const uint32_t p = b.Scalar(op.operands[0]), s = StateSlot(b, op.operands[1]);
  const Place d = b.Define(op.results[0]), next = b.Define(op.results[1]);
  Inst& in = b.Emit(&StreamLoad, kCountVector);
  in.d = d.slot, in.e = next.slot, in.a = p, in.b = s;
  in.c = static_cast<uint32_t>(ByteSize(b.Type(op.operands[0]).dtype));
}

void CompileEmptyStore(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 1);
  const Place d = b.Define(op.results[0]);
  b.Emit(&EmptyStore, kCountVector).d = d.slot;
}

int ExpectElements(Builder& b, uint32_t value, uint32_t pointer) {
  b.ExpectVector(value);
  ExpectUb(b, pointer);
  const int bytes = ByteSize(b.Type(value).dtype);
  b.Expect(ByteSize(b.Type(pointer).dtype) == bytes, "the pointer's elements have another width than the register's");
  return bytes;
}

void CompileStreamStore(Builder& b, const Op& op) {
  b.ExpectCounts(op, 4, 1);
  const int bytes = ExpectElements(b, op.operands[2], op.operands[3]);
  const uint32_t s = StateSlot(b, op.operands[0]), n = b.Int64(op.operands[1]), v = b.Vector(op.operands[2]);
  const uint32_t p = b.Scalar(op.operands[3]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&StreamStore, kCountVector);
  in.d = d.slot, in.a = s, in.b = n, in.c = v, in.e = p, in.imm = bytes;
}

void CompileStreamStoreCounted(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 1);
  const int bytes = ExpectElements(b, op.operands[1], op.operands[2]);
  const uint32_t s = StateSlot(b, op.operands[0]), v = b.Vector(op.operands[1]), p = b.Scalar(op.operands[2]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&StreamStoreCounted, kCountVector);
  in.d = d.slot, in.a = s, in.c = v, in.e = p, in.imm = bytes;
  in.flag = b.IntegerAttribute(op, "post_update", 0) != 0;
}

void CompileFlushAt(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 0);
  ExpectUb(b, op.operands[1]);
  const uint32_t s = StateSlot(b, op.operands[0]), p = b.Scalar(op.operands[1]), o = b.Int64(op.operands[2]);
  Inst& in = b.Emit(&FlushAt, kCountVector);
  in.a = s, in.e = p, in.b = o, in.imm = ByteSize(b.Type(op.operands[1]).dtype);
}

void CompileFlushCounted(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 0);
  ExpectUb(b, op.operands[1]);
  const uint32_t s = StateSlot(b, op.operands[0]), p = b.Scalar(op.operands[1]);
  Inst& in = b.Emit(&FlushCounted, kCountVector);
  in.a = s, in.e = p;
}

void CompileLoadMask(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  ExpectUb(b, op.operands[0]);
  b.ExpectMask(op.results[0], 0);
  const std::string dist = b.TextAttribute(op, "dist", "NORM");
  b.Expect(dist == "NORM" || dist == "US" || dist == "DS", "unknown dist " + dist);
  const uint32_t p = b.Scalar(op.operands[0]), o = b.Int64(op.operands[1]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(dist == "NORM" ? &LoadMask : dist == "US" ? &LoadMaskDoubled : &LoadMaskHalved, kCountVector);
  in.d = d.slot, in.a = p, in.b = o;
}

void CompileStoreMask(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 0);
  b.ExpectMask(op.operands[0], 0);
  ExpectUb(b, op.operands[1]);
  const std::string dist = b.TextAttribute(op, "dist", "NORM");
  b.Expect(dist == "NORM" || dist == "PK", "unknown dist " + dist);
  const uint32_t m = b.Mask(op.operands[0]), p = b.Scalar(op.operands[1]), o = b.Int64(op.operands[2]);
  Inst& in = b.Emit(dist == "NORM" ? &StoreMask : &StoreMaskPacked, kCountVector);
  in.d = m, in.a = p, in.b = o;
}

void CompileStreamStoreMask(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 2);
  b.ExpectMask(op.operands[1], 0);
  ExpectUb(b, op.operands[2]);
  b.ExpectSame(op.operands[2], op.results[1]);
  const int lane = kVectorBytes / static_cast<int>(b.Type(op.operands[1]).lanes);
  b.Expect(lane == 2 || lane == 4, "pstu takes b16 and b32 masks");
  const uint32_t s = StateSlot(b, op.operands[0]), m = b.Mask(op.operands[1]), p = b.Scalar(op.operands[2]);
  const Place d = b.Define(op.results[0]), next = b.Define(op.results[1]);
  Inst& in = b.Emit(&StreamStoreMask, kCountVector);
  in.d = d.slot, in.a = s, in.c = m, in.e = p, in.imm = next.slot, in.flag = static_cast<uint8_t>(lane);
  in.b = static_cast<uint32_t>(ByteSize(b.Type(op.operands[2]).dtype));
}

}  // namespace

const OpTable& SimdStreamOps() {
  static const OpTable table = {
      {"vldas", kOnVector, &CompilePrimeLoad},          {"vldus", kOnVector, &CompileStreamLoad},
      {"init_align", kOnVector, &CompileEmptyStore},    {"vstus", kOnVector, &CompileStreamStore},
      {"vstur", kOnVector, &CompileStreamStoreCounted}, {"vstas", kOnVector, &CompileFlushAt},
      {"vstar", kOnVector, &CompileFlushCounted},       {"plds", kOnVector, &CompileLoadMask},
      {"psts", kOnVector, &CompileStoreMask},           {"pstu", kOnVector, &CompileStreamStoreMask},
  };
  return table;
}

}  // namespace pto::engine
