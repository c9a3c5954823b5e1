// Predicates: patterns, counts, logic, packing.
#include <algorithm>
#include <array>

#include "simd.h"

namespace pto::engine {
namespace {

template <int kBytes>
std::array<uint64_t, 256> MakeExpand() {
  std::array<uint64_t, 256> t{};
  for (int byte = 0; byte < 256; ++byte) {
    for (int i = 0; i < 8; ++i) {
      // Byte i of the piece belongs to the lane whose bit is the lowest of its group.
      if (byte >> (i / kBytes * kBytes) & 1) t[byte] |= UINT64_C(0xFF) << (8 * i);
    }
  }
  return t;
}

struct ExpandTables {
  uint64_t t[4][256];
  ExpandTables() {
    const std::array<uint64_t, 256> all[] = {MakeExpand<1>(), MakeExpand<2>(), MakeExpand<4>(), MakeExpand<8>()};
    for (int i = 0; i < 4; ++i) std::copy(all[i].begin(), all[i].end(), t[i]);
  }
};
const ExpandTables kTables;

int ElementBytes(const ValueType& mask) { return 256 / static_cast<int>(mask.lanes); }

uint64_t LaneBits(int bytes) { return bytes == 1 ? kLaneBits<1> : bytes == 2 ? kLaneBits<2> : kLaneBits<4>; }

// First n lanes.
inline void FirstLanes(uint64_t* d, int bytes, uint64_t n) {
  const uint64_t bits = LaneBits(bytes);
  const uint64_t per_word = 64 / static_cast<uint64_t>(bytes);
  for (uint64_t w = 0; w < 4; ++w) {
    const uint64_t left = n > w * per_word ? n - w * per_word : 0;
    d[w] = left >= per_word ? bits : bits & ((UINT64_C(1) << (left * bytes)) - 1);
  }
}

// imm: first of eight words in the extra list
const Inst* Pattern(Context& c, const Inst* in) {
  std::memcpy(c.M(in->d), c.code->extra.data() + in->imm, 32);
  return in + 1;
}

// d: mask, e: rest, a: count, b: element bytes
const Inst* CountMask(Context& c, const Inst* in) {
  const uint32_t n = c.S<uint32_t>(in->a), lanes = 256 / in->b;
  FirstLanes(c.M(in->d), static_cast<int>(in->b), n);
  c.S<uint64_t>(in->e) = n > lanes ? n - lanes : 0;
  return in + 1;
}

enum LogicOp { kAnd, kOr, kXor };
template <LogicOp kOp>
const Inst* Logic(Context& c, const Inst* in) {
  const uint64_t *a = c.M(in->a), *b = c.M(in->b), *m = c.M(in->c);
  uint64_t* d = c.M(in->d);
  for (int i = 0; i < 4; ++i) d[i] = (kOp == kAnd ? a[i] & b[i] : kOp == kOr ? a[i] | b[i] : a[i] ^ b[i]) & m[i];
  return in + 1;
}
const Inst* Invert(Context& c, const Inst* in) {
  const uint64_t *a = c.M(in->a), *m = c.M(in->c);
  uint64_t* d = c.M(in->d);
  for (int i = 0; i < 4; ++i) d[i] = ~a[i] & m[i];
  return in + 1;
}
const Inst* Choose(Context& c, const Inst* in) {
  const uint64_t *a = c.M(in->a), *b = c.M(in->b), *m = c.M(in->c);
  uint64_t* d = c.M(in->d);
  for (int i = 0; i < 4; ++i) d[i] = (a[i] & m[i]) | (b[i] & ~m[i]);
  return in + 1;
}
const Inst* CopyMask(Context& c, const Inst* in) {
  std::memcpy(c.M(in->d), c.M(in->a), 32);
  return in + 1;
}

// imm: 0 lower half, 1 higher half
const Inst* Pack(Context& c, const Inst* in) {
  const uint64_t* a = c.M(in->a);
  const uint64_t low = EvenBits(a[0]) | EvenBits(a[1]) << 32, high = EvenBits(a[2]) | EvenBits(a[3]) << 32;
  uint64_t* d = c.M(in->d);
  std::memset(d, 0, 32);
  d[2 * in->imm] = low, d[2 * in->imm + 1] = high;
  return in + 1;
}
const Inst* Unpack(Context& c, const Inst* in) {
  const uint64_t* a = c.M(in->a) + 2 * in->imm;
  const uint64_t low = a[0], high = a[1];
  uint64_t* d = c.M(in->d);
  d[0] = SpreadBits(low), d[1] = SpreadBits(low >> 32), d[2] = SpreadBits(high), d[3] = SpreadBits(high >> 32);
  return in + 1;
}

// Lane i of a mask of kBytes elements.
template <int kBytes>
inline uint64_t LaneGroup(const uint64_t* m, int i) {
  const int bit = i * kBytes;
  return m[bit >> 6] >> (bit & 63) & ((1u << kBytes) - 1);
}
template <int kBytes>
inline void PutGroup(uint64_t* m, int i, uint64_t group) {
  const int bit = i * kBytes;
  m[bit >> 6] |= group << (bit & 63);
}

// d, e: low and high half of a0, b0, a1, b1, ... in groups of one lane
template <int kBytes, bool kDeinterleave>
const Inst* InterleaveMasks(Context& c, const Inst* in) {
  constexpr int kCount = 256 / kBytes;
  uint64_t both[8], out[8] = {};
  std::memcpy(both, c.M(in->a), 32);
  std::memcpy(both + 4, c.M(in->b), 32);
  for (int i = 0; i < kCount; ++i) {
    if (kDeinterleave) {
      PutGroup<kBytes>(out, i, LaneGroup<kBytes>(both, 2 * i));
      PutGroup<kBytes>(out, kCount + i, LaneGroup<kBytes>(both, 2 * i + 1));
    } else {
      PutGroup<kBytes>(out, 2 * i, LaneGroup<kBytes>(both, i));
      PutGroup<kBytes>(out, 2 * i + 1, LaneGroup<kBytes>(both, kCount + i));
    }
  }
  std::memcpy(c.M(in->d), out, 32);
  std::memcpy(c.M(in->e), out + 4, 32);
  return in + 1;
}

// --- compilation ---

void CompilePattern(Builder& b, const Op& op) {
  b.ExpectCounts(op, 0, 1);
  b.ExpectMask(op.results[0], 0);
  std::string name = b.TextAttribute(op, "pattern", "");
  if (name.rfind("PAT_", 0) == 0) name = name.substr(4);
  const int lanes = static_cast<int>(b.Type(op.results[0]).lanes), bytes = ElementBytes(b.Type(op.results[0]));
  uint64_t m[4] = {};
  if (name == "ALL") {
    FirstLanes(m, bytes, static_cast<uint64_t>(lanes));
  } else if (name == "ALLF") {
  } else if (name == "H") {
    FirstLanes(m, bytes, static_cast<uint64_t>(lanes / 2));
  } else if (name == "Q") {
    FirstLanes(m, bytes, static_cast<uint64_t>(lanes / 4));
  } else if (name == "M3" || name == "M4") {
    const int step = name == "M3" ? 3 : 4;
    for (int i = 0; i < lanes; i += step) m[i * bytes >> 6] |= UINT64_C(1) << (i * bytes & 63);
  } else if (name.rfind("VL", 0) == 0 && name.size() > 2 && name.size() <= 5 &&
             name.find_first_not_of("0123456789", 2) == std::string::npos) {
    FirstLanes(m, bytes,
               std::min<uint64_t>(static_cast<uint64_t>(std::stoi(name.substr(2))), static_cast<uint64_t>(lanes)));
  } else {
    b.Fail("unknown pattern " + name);
  }
  const int64_t first = static_cast<int64_t>(b.code().extra.size());
  for (uint64_t w : m) {
    b.code().extra.push_back(static_cast<uint32_t>(w));
    b.code().extra.push_back(static_cast<uint32_t>(w >> 32));
  }
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&Pattern, kCountVector);
  in.d = d.slot, in.imm = first;
}

void CompileCount(Builder& b, const Op& op) {
  b.ExpectCounts(op, 1, 2);
  b.ExpectInteger(op.operands[0]);
  b.Expect(ByteSize(b.Type(op.operands[0]).dtype) >= 4, "the count has at least 32 bits");
  b.ExpectMask(op.results[0], 0);
  b.ExpectInteger(op.results[1]);
  const uint32_t n = b.Scalar(op.operands[0]);
  const Place d = b.Define(op.results[0]), rest = b.Define(op.results[1]);
  Inst& in = b.Emit(&CountMask, kCountVector);
  in.d = d.slot, in.e = rest.slot, in.a = n, in.b = static_cast<uint32_t>(ElementBytes(b.Type(op.results[0])));
}

void CompileThree(Builder& b, const Op& op, Handler h) {
  b.ExpectCounts(op, 3, 1);
  b.ExpectSame(op.operands[0], op.operands[1]);
  b.ExpectSame(op.operands[0], op.operands[2]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const uint32_t x = b.Mask(op.operands[0]), y = b.Mask(op.operands[1]), m = b.Mask(op.operands[2]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h, kCountVector);
  in.d = d.slot, in.a = x, in.b = y, in.c = m;
}
template <Handler H>
void CompileLogic(Builder& b, const Op& op) {
  CompileThree(b, op, H);
}

void CompileNot(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  b.ExpectSame(op.operands[0], op.operands[1]);
  b.ExpectSame(op.operands[0], op.results[0]);
  const uint32_t x = b.Mask(op.operands[0]), m = b.Mask(op.operands[1]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(&Invert, kCountVector);
  in.d = d.slot, in.a = x, in.c = m;
}

void EmitOne(Builder& b, const Op& op, Handler h, int64_t part, uint8_t counter) {
  b.ExpectCounts(op, 1, 1);
  b.ExpectMask(op.results[0], 0);
  const uint32_t x = b.Mask(op.operands[0]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h, counter);
  in.d = d.slot, in.a = x, in.imm = part;
}

int64_t Part(Builder& b, const Op& op) {
  const std::string part = b.TextAttribute(op, "part", "");
  b.Expect(part == "LOWER" || part == "HIGHER", "part is LOWER or HIGHER");
  return part == "HIGHER";
}

template <bool kDeinterleave>
void CompileInterleave(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 2);
  b.ExpectMask(op.operands[0], 0);
  b.ExpectSame(op.operands[0], op.operands[1]);
  for (uint32_t r : op.results) b.ExpectSame(op.operands[0], r);
  const int bytes = ElementBytes(b.Type(op.operands[0]));
  const uint32_t x = b.Mask(op.operands[0]), y = b.Mask(op.operands[1]);
  const Place low = b.Define(op.results[0]), high = b.Define(op.results[1]);
  Inst& in = b.Emit(bytes == 1   ? &InterleaveMasks<1, kDeinterleave>
                    : bytes == 2 ? &InterleaveMasks<2, kDeinterleave>
                                 : &InterleaveMasks<4, kDeinterleave>,
                    kCountVector);
  in.d = low.slot, in.e = high.slot, in.a = x, in.b = y;
}

void CompileBitcast(Builder& b, const Op& op) { EmitOne(b, op, &CopyMask, 0, kCountNothing); }
void CompilePack(Builder& b, const Op& op) { EmitOne(b, op, &Pack, Part(b, op), kCountVector); }
void CompileUnpack(Builder& b, const Op& op) { EmitOne(b, op, &Unpack, Part(b, op), kCountVector); }

}  // namespace

const uint64_t (*const kExpand8)[256] = kTables.t;

const OpTable& SimdMaskOps() {
  static const OpTable table = {
      {"pset", kOnVector, &CompilePattern},
      {"pge", kOnVector, &CompilePattern},
      {"plt", kOnVector, &CompileCount},
      {"pand", kOnVector, &CompileLogic<&Logic<kAnd>>},
      {"por", kOnVector, &CompileLogic<&Logic<kOr>>},
      {"pxor", kOnVector, &CompileLogic<&Logic<kXor>>},
      {"psel", kOnVector, &CompileLogic<&Choose>},
      {"pnot", kOnVector, &CompileNot},
      {"pbitcast", kOnVector, &CompileBitcast},
      {"ppack", kOnVector, &CompilePack},
      {"punpack", kOnVector, &CompileUnpack},
      {"pintlv", kOnVector, &CompileInterleave<false>},
      {"pdintlv", kOnVector, &CompileInterleave<true>},
  };
  return table;
}

}  // namespace pto::engine
