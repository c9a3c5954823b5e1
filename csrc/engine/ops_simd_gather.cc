// Gather and scatter by index, and loads and stores of blocks with a stride.
#include <cstring>
#include <string>

#include "dispatch.h"
#include "simd.h"

namespace pto::engine {
namespace {

// Base of a gather or scatter: aligned to what one index moves, an element or a block; the places are checked one by
// one.
inline int64_t Base(Context& c, const Inst* in, int64_t alignment) {
  const int64_t base = OffsetOf(c.S<uint64_t>(in->a));
  if (base & (alignment - 1)) c.FailAlignment(in, base, alignment);
  return base;
}

// What the active lanes of an instruction access, for the monitor.
template <int kMost>
class Places {
 public:
  Places(const Context& c, const Inst* in, int64_t bytes) : c_(c), in_(in), bytes_(bytes) {}

  // The element of one lane.
  uint8_t* At(int64_t base, uint64_t index) {
    const int64_t address = base + static_cast<int64_t>(index) * bytes_;
    if (__builtin_expect(address < 0 || address > c_.ub_bytes - bytes_, 0)) c_.FailUb(in_, address, bytes_);
    if (__builtin_expect(c_.monitor != nullptr, 0)) offsets_[count_++] = address;
    return c_.ub + address;
  }
  void Tell(Access access) const {
    if (__builtin_expect(c_.monitor != nullptr, 0)) {
      c_.monitor->TouchPlaces(c_, in_, offsets_, count_, bytes_, access);
    }
  }

 private:
  const Context& c_;
  const Inst* const in_;
  const int64_t bytes_;
  int64_t offsets_[kMost];
  int count_ = 0;
};

// Lane i of the indices' width: element[index[i]], zero extended. Inactive lanes are 0 and access nothing.
// d: register, a: pointer, b: indices, c: mask
template <class T, class I>
const Inst* Gather(Context& c, const Inst* in) {
  const int64_t base = Base(c, in, sizeof(T));
  const I* index = c.V<I>(in->b);
  const uint64_t* m = c.M(in->c);
  Places<kLanes<I>> places(c, in, sizeof(T));
  I out[kLanes<I>] = {};
  for (int i = 0; i < kLanes<I>; ++i) {
    if (!LaneActive<sizeof(I)>(m, i)) continue;
    T value;
    std::memcpy(&value, places.At(base, index[i]), sizeof(T));
    out[i] = value;
  }
  places.Tell(Access::kRead);
  std::memcpy(c.v + in->d, out, kVectorBytes);
  return in + 1;
}

// Block k of the result: 32 bytes at base + offset[k].
const Inst* GatherBlocks(Context& c, const Inst* in) {
  const int64_t base = Base(c, in, 32);
  const uint32_t* offset = c.V<uint32_t>(in->b);
  const uint64_t* m = c.M(in->c);
  uint8_t out[kVectorBytes] = {};
  for (int k = 0; k < 8; ++k) {
    if (!LaneActive<4>(m, k)) continue;
    if (offset[k] & 31) {
      c.Fail(in, "offset " + std::to_string(offset[k]) + " of block " + std::to_string(k) +
                     " is not a multiple of 32 bytes");
    }
    std::memcpy(out + 32 * k, c.Ub(in, static_cast<uint64_t>(base), offset[k], 32, 32, Access::kRead), 32);
  }
  std::memcpy(c.v + in->d, out, kVectorBytes);
  return in + 1;
}

// d: value, a: pointer, b: indices, c: mask. A value lane is as wide as an index, its low part is stored.
template <class T, class I>
const Inst* Scatter(Context& c, const Inst* in) {
  const int64_t base = Base(c, in, sizeof(T));
  const I *index = c.V<I>(in->b), *value = c.V<I>(in->d);
  const uint64_t* m = c.M(in->c);
  Places<kLanes<I>> places(c, in, sizeof(T));
  for (int i = 0; i < kLanes<I>; ++i) {
    if (!LaneActive<sizeof(I)>(m, i)) continue;
    const T x = static_cast<T>(value[i]);
    std::memcpy(places.At(base, index[i]), &x, sizeof(T));
  }
  places.Tell(Access::kWrite);
  // Of several lanes with one target any may win on the hardware. Where they differ, a lane no longer finds its value.
  for (int i = 0; i < kLanes<I>; ++i) {
    if (!LaneActive<sizeof(I)>(m, i)) continue;
    T found;
    std::memcpy(&found, c.ub + base + static_cast<int64_t>(index[i]) * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if (found == static_cast<T>(value[i])) continue;
    c.Fail(in, "lane " + std::to_string(i) + " and a later lane write different values to element " +
                   std::to_string(index[i]) + ": which one stays is not specified");
  }
  return in + 1;
}

// The 32 mask bits of block k.
inline uint32_t BlockBits(const uint64_t* m, int k) { return static_cast<uint32_t>(m[k / 2] >> (32 * (k % 2))); }

// d: register, a: pointer, b: block stride, e: repeat stride (both unsigned, in blocks), c: mask. A block is loaded
// whole if any of its lanes is active.
template <int kBytes>
const Inst* LoadStrided(Context& c, const Inst* in) {
  const uint64_t pointer = c.S<uint64_t>(in->a);
  const int64_t block = c.S<uint16_t>(in->b), repeat = c.S<uint16_t>(in->e);
  const uint64_t* m = c.M(in->c);
  uint8_t* d = c.v + in->d;
  for (int k = 0; k < 8; ++k) {
    if (BlockBits(m, k) & static_cast<uint32_t>(kLaneBits<kBytes>)) {
      std::memcpy(d + 32 * k, c.Ub(in, pointer, 32 * (repeat + k * block), 32, 32, Access::kRead), 32);
    } else {
      std::memset(d + 32 * k, 0, 32);
    }
  }
  return in + 1;
}

// The same for stores; only active lanes are written. flag: post update, the repeat stride moves the pointer instead
// and imm is the slot of the new one.
template <int kBytes>
const Inst* StoreStrided(Context& c, const Inst* in) {
  const uint64_t pointer = c.S<uint64_t>(in->a);
  const int64_t block = c.S<uint16_t>(in->b), repeat = c.S<uint16_t>(in->e);
  const uint64_t* m = c.M(in->c);
  const uint8_t* s = c.v + in->d;
  const uint64_t* table = ExpandTable<kBytes>();
  for (int k = 0; k < 8; ++k) {
    const uint32_t bits = BlockBits(m, k);
    if (!(bits & static_cast<uint32_t>(kLaneBits<kBytes>))) continue;
    uint8_t* to = c.UbPlace(in, pointer, 32 * ((in->flag ? 0 : repeat) + k * block), 32, 32);
    if (__builtin_expect(c.monitor != nullptr, 0)) {
      const uint64_t block_mask[4] = {bits, 0, 0, 0};
      TouchActive<kBytes>(c, in, to - c.ub, kBytes, block_mask, 32 / kBytes);
    }
    for (int i = 0; i < 4; ++i) {
      uint64_t now, next;
      std::memcpy(&now, to + 8 * i, 8);
      std::memcpy(&next, s + 32 * k + 8 * i, 8);
      const uint64_t lanes = table[bits >> (8 * i) & 0xFF];
      now = (now & ~lanes) | (next & lanes);
      std::memcpy(to + 8 * i, &now, 8);
    }
  }
  if (in->flag) c.S<uint64_t>(static_cast<uint32_t>(in->imm)) = AddBytes(pointer, 32 * repeat);
  return in + 1;
}

// --- compilation ---

void ExpectIndex(Builder& b, uint32_t index, int bytes) {
  b.ExpectVector(index);
  const DType t = b.Type(index).dtype;
  b.Expect(IsInteger(t) && ByteSize(t) == bytes, std::string("the indices are ") + Name(t) + ", integers of " +
                                                     std::to_string(8 * bytes) + " bits are needed");
}

void EmitGather(Builder& b, const Op& op, Handler h) {
  const uint32_t p = b.Scalar(op.operands[0]), index = b.Vector(op.operands[1]), m = b.Mask(op.operands[2]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(h, kCountVector);
  in.d = d.slot, in.a = p, in.b = index, in.c = m;
}

// `wide`: 16-bit elements are gathered by 32-bit indices, each into the low half of a 32-bit lane.
void CompileGather(Builder& b, const Op& op, bool wide) {
  b.ExpectCounts(op, 3, 1);
  ExpectUb(b, op.operands[0]);
  b.ExpectVector(op.results[0]);
  const int element = ByteSize(b.Type(op.operands[0]).dtype), result = ByteSize(b.Type(op.results[0]).dtype);
  const int index = wide ? 4 : element == 1 ? 2 : element;
  b.Expect(wide ? element == 2 || element == 4 : element <= 4,
           "elements of " + std::to_string(element) + " bytes are not supported");
  b.Expect(result == element || result == index,
           "the result has elements of " + std::to_string(result) + " bytes, " + std::to_string(index) + " are needed");
  ExpectIndex(b, op.operands[1], index);
  b.ExpectMask(op.operands[2], index);
  EmitGather(b, op,
             element == 1   ? &Gather<uint8_t, uint16_t>
             : element == 4 ? &Gather<uint32_t, uint32_t>
             : index == 4   ? &Gather<uint16_t, uint32_t>
                            : &Gather<uint16_t, uint16_t>);
}
void CompileGather2(Builder& b, const Op& op) { CompileGather(b, op, false); }
void CompileGatherBc(Builder& b, const Op& op) { CompileGather(b, op, true); }

void CompileGatherBlocks(Builder& b, const Op& op) {
  b.ExpectCounts(op, 3, 1);
  ExpectUb(b, op.operands[0]);
  b.ExpectVector(op.results[0]);
  ExpectIndex(b, op.operands[1], 4);
  b.ExpectMask(op.operands[2], 4);
  EmitGather(b, op, &GatherBlocks);
}

void CompileScatter(Builder& b, const Op& op) {
  b.ExpectCounts(op, 4, 0);
  b.ExpectVector(op.operands[0]);
  ExpectUb(b, op.operands[1]);
  const int element = ByteSize(b.Type(op.operands[0]).dtype), index = element == 1 ? 2 : element;
  b.Expect(ByteSize(b.Type(op.operands[1]).dtype) == element, "the pointer's elements have another width");
  b.Expect(element <= 4, "elements of " + std::to_string(element) + " bytes are not supported");
  ExpectIndex(b, op.operands[2], index);
  b.ExpectMask(op.operands[3], index);
  const uint32_t v = b.Vector(op.operands[0]), p = b.Scalar(op.operands[1]), i = b.Vector(op.operands[2]);
  const uint32_t m = b.Mask(op.operands[3]);
  Inst& in = b.Emit(element == 1   ? &Scatter<uint8_t, uint16_t>
                    : element == 2 ? &Scatter<uint16_t, uint16_t>
                                   : &Scatter<uint32_t, uint32_t>,
                    kCountVector);
  in.d = v, in.a = p, in.b = i, in.c = m;
}

void ExpectStride(Builder& b, uint32_t value) {
  b.ExpectInteger(value);
  b.Expect(ByteSize(b.Type(value).dtype) == 2, "a stride has 16 bits");
}

void CompileLoadStrided(Builder& b, const Op& op) {
  b.ExpectCounts(op, 4, 1);
  ExpectUb(b, op.operands[0]);
  ExpectStride(b, op.operands[1]);
  ExpectStride(b, op.operands[2]);
  b.ExpectVector(op.results[0]);
  const int bytes = ByteSize(b.Type(op.results[0]).dtype);
  b.ExpectMask(op.operands[3], bytes);
  const uint32_t p = b.Scalar(op.operands[0]), block = b.Scalar(op.operands[1]), repeat = b.Scalar(op.operands[2]);
  const uint32_t m = b.Mask(op.operands[3]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(bytes == 1 ? &LoadStrided<1> : bytes == 2 ? &LoadStrided<2> : &LoadStrided<4>, kCountVector);
  in.d = d.slot, in.a = p, in.b = block, in.e = repeat, in.c = m;
}

void CompileStoreStrided(Builder& b, const Op& op) {
  const bool post = b.IntegerAttribute(op, "post_update", 0) != 0;
  b.ExpectCounts(op, 5, post ? 1 : 0);
  b.ExpectVector(op.operands[0]);
  ExpectUb(b, op.operands[1]);
  ExpectStride(b, op.operands[2]);
  ExpectStride(b, op.operands[3]);
  const int bytes = ByteSize(b.Type(op.operands[0]).dtype);
  b.ExpectMask(op.operands[4], bytes);
  if (post) b.ExpectSame(op.operands[1], op.results[0]);
  const uint32_t v = b.Vector(op.operands[0]), p = b.Scalar(op.operands[1]), block = b.Scalar(op.operands[2]);
  const uint32_t repeat = b.Scalar(op.operands[3]), m = b.Mask(op.operands[4]);
  const uint32_t next = post ? b.Define(op.results[0]).slot : 0;
  Inst& in = b.Emit(bytes == 1 ? &StoreStrided<1> : bytes == 2 ? &StoreStrided<2> : &StoreStrided<4>, kCountVector);
  in.d = v, in.a = p, in.b = block, in.e = repeat, in.c = m, in.flag = post, in.imm = next;
}

}  // namespace

const OpTable& SimdGatherOps() {
  static const OpTable table = {
      {"vgather2", kOnVector, &CompileGather2},      {"vgather2_bc", kOnVector, &CompileGatherBc},
      {"vgatherb", kOnVector, &CompileGatherBlocks}, {"vscatter", kOnVector, &CompileScatter},
      {"vsldb", kOnVector, &CompileLoadStrided},     {"vsstb", kOnVector, &CompileStoreStrided},
  };
  return table;
}

}  // namespace pto::engine
