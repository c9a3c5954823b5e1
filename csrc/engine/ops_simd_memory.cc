// Vector loads and stores.
#include <cstring>

#include "clones.h"
#include "dispatch.h"
#include "simd.h"

namespace pto::engine {
namespace {

// 256 bytes; both sides are 32-byte aligned.
typedef uint64_t Block32 __attribute__((vector_size(32), may_alias));
inline void Copy256(void* to, const void* from) {
  Block32* d = static_cast<Block32*>(to);
  const Block32* s = static_cast<const Block32*>(from);
  Block32 r[8];
  for (int i = 0; i < 8; ++i) r[i] = s[i];
  for (int i = 0; i < 8; ++i) d[i] = r[i];
}

// imm: bytes per element of the pointer (the offset's unit)
inline const uint8_t* Source(Context& c, const Inst* in, int64_t bytes, int64_t alignment) {
  return c.Ub(in, c.S<uint64_t>(in->a), c.S<int64_t>(in->b) * in->imm, bytes, alignment, Access::kRead);
}

// --- loads: d register, a pointer, b offset ---

PTO_CLONES const Inst* LoadNorm(Context& c, const Inst* in) {
  Copy256(c.v + in->d, Source(c, in, 256, 32));
  return in + 1;
}

template <class T>
PTO_CLONES const Inst* LoadBroadcast(Context& c, const Inst* in) {
  const T value = *reinterpret_cast<const T*>(Source(c, in, sizeof(T), sizeof(T)));
  T* d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = value;
  return in + 1;
}

template <class T>
PTO_CLONES const Inst* LoadUpsample(Context& c, const Inst* in) {
  const T* s = reinterpret_cast<const T*>(Source(c, in, 128, 32));
  T* d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = s[i / 2];
  return in + 1;
}

template <class T>
PTO_CLONES const Inst* LoadDownsample(Context& c, const Inst* in) {
  const T* s = reinterpret_cast<const T*>(Source(c, in, 512, 32));
  T* d = c.V<T>(in->d);
  for (int i = 0; i < kLanes<T>; ++i) d[i] = s[2 * i];
  return in + 1;
}

template <class T, class Wide>
PTO_CLONES const Inst* LoadUnpack(Context& c, const Inst* in) {
  const T* s = reinterpret_cast<const T*>(Source(c, in, 256 * sizeof(T) / sizeof(Wide), 32));
  Wide* d = c.V<Wide>(in->d);
  for (int i = 0; i < kLanes<Wide>; ++i) d[i] = s[i];
  return in + 1;
}

PTO_CLONES const Inst* LoadBlock(Context& c, const Inst* in) {
  const uint8_t* s = Source(c, in, 32, 32);
  for (int i = 0; i < 8; ++i) std::memcpy(c.v + in->d + 32 * i, s, 32);
  return in + 1;
}

// Element k fills block k.
template <class T>
PTO_CLONES const Inst* LoadElementToBlock(Context& c, const Inst* in) {
  const T* s = reinterpret_cast<const T*>(Source(c, in, 8 * sizeof(T), 8 * sizeof(T)));
  T* d = c.V<T>(in->d);
  constexpr int kPerBlock = static_cast<int>(32 / sizeof(T));
  for (int i = 0; i < kLanes<T>; ++i) d[i] = s[i / kPerBlock];
  return in + 1;
}

// --- double loads: d and e registers ---

template <class T>
PTO_CLONES const Inst* LoadDeinterleave(Context& c, const Inst* in) {
  const T* __restrict s = reinterpret_cast<const T*>(Source(c, in, 512, 32));
  T* __restrict low = c.V<T>(in->d);
  T* __restrict high = c.V<T>(in->e);
  for (int i = 0; i < kLanes<T>; ++i) low[i] = s[2 * i], high[i] = s[2 * i + 1];
  return in + 1;
}

PTO_CLONES const Inst* LoadBlockDeinterleave(Context& c, const Inst* in) {
  const uint8_t* s = Source(c, in, 512, 32);
  for (int i = 0; i < 8; ++i) {
    std::memcpy(c.v + in->d + 32 * i, s + 64 * i, 32);
    std::memcpy(c.v + in->e + 32 * i, s + 64 * i + 32, 32);
  }
  return in + 1;
}

// --- stores: d register, a pointer, b offset, c mask ---

inline uint8_t* Target(Context& c, const Inst* in, int64_t bytes, int64_t alignment) {
  return c.Ub(in, c.S<uint64_t>(in->a), c.S<int64_t>(in->b) * in->imm, bytes, alignment, Access::kWrite);
}
// The same where only the lanes of a mask are written; the monitor is told by TouchActive.
inline uint8_t* MaskedTarget(Context& c, const Inst* in, int64_t bytes, int64_t alignment) {
  return c.UbPlace(in, c.S<uint64_t>(in->a), c.S<int64_t>(in->b) * in->imm, bytes, alignment);
}

// Bytes from the start of the register to the end of the last active lane.
template <int kBytes>
int ActiveExtent(const uint64_t* m) {
  for (int w = 3; w >= 0; --w) {
    const uint64_t bits = m[w] & kLaneBits<kBytes>;
    if (bits) return 64 * w + 63 - __builtin_clzll(bits) + kBytes;
  }
  return 0;
}

template <int kBytes>
PTO_CLONES const Inst* StoreNorm(Context& c, const Inst* in) {
  const uint64_t* m = c.M(in->c);
  if (__builtin_expect(AllActive<kBytes>(m), 1)) {
    Copy256(Target(c, in, 256, 32), c.v + in->d);
    return in + 1;
  }
  // Inactive lanes are not accessed, so a tail may end at the end of the memory.
  const int extent = ActiveExtent<kBytes>(m);
  uint64_t* to = reinterpret_cast<uint64_t*>(MaskedTarget(c, in, extent, 32));
  if (__builtin_expect(c.monitor != nullptr, 0)) {
    TouchActive<kBytes>(c, in, reinterpret_cast<uint8_t*>(to) - c.ub, kBytes, m, kVectorBytes / kBytes);
  }
  if (extent == 0) return in + 1;
  const uint64_t* from = reinterpret_cast<const uint64_t*>(c.v + in->d);
  const uint64_t* table = ExpandTable<kBytes>();
  for (int i = 0; 8 * i < extent; ++i) {
    const uint64_t lanes = table[m[i >> 3] >> (8 * (i & 7)) & 0xFF];
    if (8 * i + 8 <= extent) {
      to[i] = (to[i] & ~lanes) | (from[i] & lanes);
    } else {
      uint8_t* bytes = reinterpret_cast<uint8_t*>(to + i);
      for (int k = 0; 8 * i + k < extent; ++k) {
        if (lanes >> (8 * k) & 0xFF) bytes[k] = static_cast<uint8_t>(from[i] >> (8 * k));
      }
    }
  }
  return in + 1;
}

template <class T>
PTO_CLONES const Inst* StorePoint(Context& c, const Inst* in) {
  std::memcpy(Target(c, in, sizeof(T), sizeof(T)), c.v + in->d, sizeof(T));
  return in + 1;
}

// The low part of each wide lane.
template <class T, class Wide>
PTO_CLONES const Inst* StorePack(Context& c, const Inst* in) {
  const uint64_t* m = c.M(in->c);
  const Wide* s = c.V<Wide>(in->d);
  if (AllActive<sizeof(Wide)>(m)) {
    T* to = reinterpret_cast<T*>(Target(c, in, kLanes<Wide> * static_cast<int>(sizeof(T)), 32));
    for (int i = 0; i < kLanes<Wide>; ++i) to[i] = static_cast<T>(s[i]);
    return in + 1;
  }
  const int extent = ActiveExtent<sizeof(Wide)>(m) / static_cast<int>(sizeof(Wide)) * static_cast<int>(sizeof(T));
  T* to = reinterpret_cast<T*>(MaskedTarget(c, in, extent, 32));
  if (__builtin_expect(c.monitor != nullptr, 0)) {
    TouchActive<sizeof(Wide)>(c, in, reinterpret_cast<uint8_t*>(to) - c.ub, sizeof(T), m, kLanes<Wide>);
  }
  for (int i = 0; i < extent / static_cast<int>(sizeof(T)); ++i) {
    if (LaneActive<sizeof(Wide)>(m, i)) to[i] = static_cast<T>(s[i]);
  }
  return in + 1;
}

// d and e registers; no mask
template <class T>
PTO_CLONES const Inst* StoreInterleave(Context& c, const Inst* in) {
  T* __restrict to = reinterpret_cast<T*>(Target(c, in, 512, 32));
  const T* __restrict low = c.V<T>(in->d);
  const T* __restrict high = c.V<T>(in->e);
  for (int i = 0; i < kLanes<T>; ++i) to[2 * i] = low[i], to[2 * i + 1] = high[i];
  return in + 1;
}

// --- compilation ---

struct LoadDist {
  const char* name;
  int bytes;  // element width it is for; 0: any
  Handler handler;
};

const LoadDist kLoads[] = {
    {"NORM", 0, &LoadNorm},
    {"BRC_B8", 1, &LoadBroadcast<uint8_t>},
    {"BRC_B16", 2, &LoadBroadcast<uint16_t>},
    {"BRC_B32", 4, &LoadBroadcast<uint32_t>},
    {"US_B8", 1, &LoadUpsample<uint8_t>},
    {"US_B16", 2, &LoadUpsample<uint16_t>},
    {"DS_B8", 1, &LoadDownsample<uint8_t>},
    {"DS_B16", 2, &LoadDownsample<uint16_t>},
    {"UNPK_B8", 1, &LoadUnpack<uint8_t, uint16_t>},
    {"UNPK_B16", 2, &LoadUnpack<uint16_t, uint32_t>},
    {"UNPK_B32", 4, &LoadUnpack<uint32_t, uint64_t>},
    {"UNPK4", 1, &LoadUnpack<uint8_t, uint32_t>},
    {"UNPK4_B8", 1, &LoadUnpack<uint8_t, uint32_t>},
    {"BRC_BLK", 0, &LoadBlock},
    {"E2B_B16", 2, &LoadElementToBlock<uint16_t>},
    {"E2B_B32", 4, &LoadElementToBlock<uint32_t>},
};

const LoadDist kDoubleLoads[] = {
    {"DINTLV_B8", 1, &LoadDeinterleave<uint8_t>},
    {"DINTLV_B16", 2, &LoadDeinterleave<uint16_t>},
    {"DINTLV_B32", 4, &LoadDeinterleave<uint32_t>},
    {"BDINTLV", 0, &LoadBlockDeinterleave},
};

struct StoreDist {
  const char* name;
  int element;  // element width of the register; 0: any
  int mask;     // element width of the mask; 0: ignored
  Handler handler;
};

const StoreDist kStores[] = {
    {"NORM_B8", 1, 1, &StoreNorm<1>},
    {"NORM_B16", 2, 2, &StoreNorm<2>},
    {"NORM_B32", 4, 4, &StoreNorm<4>},
    {"1PT_B8", 1, 0, &StorePoint<uint8_t>},
    {"1PT_B16", 2, 0, &StorePoint<uint16_t>},
    {"1PT_B32", 4, 0, &StorePoint<uint32_t>},
    {"PK_B16", 2, 2, &StorePack<uint8_t, uint16_t>},
    {"PK_B32", 4, 4, &StorePack<uint16_t, uint32_t>},
    {"PK4_B32", 4, 4, &StorePack<uint8_t, uint32_t>},
    {"PK_B64", 8, 0, &StorePack<uint32_t, uint64_t>},
};

const StoreDist kDoubleStores[] = {
    {"INTLV_B8", 1, 0, &StoreInterleave<uint8_t>},
    {"INTLV_B16", 2, 0, &StoreInterleave<uint16_t>},
    {"INTLV_B32", 4, 0, &StoreInterleave<uint32_t>},
};

template <class Table>
auto FindDist(Builder& b, const Table& table, const std::string& name) -> decltype(&table[0]) {
  for (const auto& d : table) {
    if (name == d.name) return &d;
  }
  b.Fail("unknown or unsupported dist " + name);
}

void CompileLoad(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 1);
  ExpectUb(b, op.operands[0]);
  b.ExpectVector(op.results[0]);
  const int unit = ByteSize(b.Type(op.operands[0]).dtype);
  const LoadDist* dist = FindDist(b, kLoads, b.TextAttribute(op, "dist", "NORM"));
  b.Expect(dist->bytes == 0 || dist->bytes == unit,
           std::string("dist ") + dist->name + " does not fit elements of " + std::to_string(unit) + " bytes");
  const uint32_t p = b.Scalar(op.operands[0]), o = b.Int64(op.operands[1]);
  const Place d = b.Define(op.results[0]);
  Inst& in = b.Emit(dist->handler, kCountVector);
  in.d = d.slot, in.a = p, in.b = o, in.imm = unit;
}

void CompileDoubleLoad(Builder& b, const Op& op) {
  b.ExpectCounts(op, 2, 2);
  ExpectUb(b, op.operands[0]);
  b.ExpectVector(op.results[0]);
  b.ExpectVector(op.results[1]);
  const int unit = ByteSize(b.Type(op.operands[0]).dtype);
  const LoadDist* dist = FindDist(b, kDoubleLoads, b.TextAttribute(op, "dist", ""));
  b.Expect(dist->bytes == 0 || dist->bytes == unit,
           std::string("dist ") + dist->name + " does not fit elements of " + std::to_string(unit) + " bytes");
  const uint32_t p = b.Scalar(op.operands[0]), o = b.Int64(op.operands[1]);
  const Place low = b.Define(op.results[0]), high = b.Define(op.results[1]);
  Inst& in = b.Emit(dist->handler, kCountVector);
  in.d = low.slot, in.e = high.slot, in.a = p, in.b = o, in.imm = unit;
}

void CompileStore(Builder& b, const Op& op) {
  b.ExpectCounts(op, 4, 0);
  b.ExpectVector(op.operands[0]);
  ExpectUb(b, op.operands[1]);
  const int unit = ByteSize(b.Type(op.operands[1]).dtype), element = ByteSize(b.Type(op.operands[0]).dtype);
  const StoreDist* dist = FindDist(b, kStores, b.TextAttribute(op, "dist", "NORM_B32"));
  // A 32-bit register may hold 64-bit pairs; every other width has to fit.
  const bool fits = dist->element == element || (dist->element == 8 && element == 4);
  b.Expect(fits, std::string("dist ") + dist->name + " does not fit elements of " + std::to_string(element) + " bytes");
  b.ExpectMask(op.operands[3], dist->mask);
  const uint32_t v = b.Vector(op.operands[0]), p = b.Scalar(op.operands[1]), o = b.Int64(op.operands[2]);
  const uint32_t m = b.Mask(op.operands[3]);
  Inst& in = b.Emit(dist->handler, kCountVector);
  in.d = v, in.a = p, in.b = o, in.c = m, in.imm = unit;
}

void CompileDoubleStore(Builder& b, const Op& op) {
  b.ExpectCounts(op, 5, 0);
  b.ExpectVector(op.operands[0]);
  b.ExpectSame(op.operands[0], op.operands[1]);
  ExpectUb(b, op.operands[2]);
  const int unit = ByteSize(b.Type(op.operands[2]).dtype), element = ByteSize(b.Type(op.operands[0]).dtype);
  const StoreDist* dist = FindDist(b, kDoubleStores, b.TextAttribute(op, "dist", ""));
  b.Expect(dist->element == element,
           std::string("dist ") + dist->name + " does not fit elements of " + std::to_string(element) + " bytes");
  b.ExpectMask(op.operands[4], 0);
  const uint32_t low = b.Vector(op.operands[0]), high = b.Vector(op.operands[1]);
  const uint32_t p = b.Scalar(op.operands[2]), o = b.Int64(op.operands[3]);
  Inst& in = b.Emit(dist->handler, kCountVector);
  in.d = low, in.e = high, in.a = p, in.b = o, in.imm = unit;
}

}  // namespace

void ExpectUb(Builder& b, uint32_t pointer) {
  b.ExpectPointer(pointer);
  b.Expect(b.Type(pointer).space == Space::kUb,
           std::string("the pointer is in ") + Name(b.Type(pointer).space) + ", not in ub");
}

const OpTable& SimdMemoryOps() {
  static const OpTable table = {
      {"vlds", kOnVector, &CompileLoad},
      {"vldsx2", kOnVector, &CompileDoubleLoad},
      {"vsts", kOnVector, &CompileStore},
      {"vstsx2", kOnVector, &CompileDoubleStore},
  };
  return table;
}

}  // namespace pto::engine
