// Registers and predicates of vector functions.
#pragma once

#include <cstring>

#include "builder.h"
#include "code.h"

namespace pto::engine {

constexpr int kVectorBytes = 256;
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

// The pointer is one into UB.
void ExpectUb(Builder& b, uint32_t pointer);

// An instruction from a register (the first operand, slot a) under a mask (the last one, slot c) to a register (slot
// d).
Inst& EmitMasked(Builder& b, const Op& op, Handler h);

// The bits that count for elements of this many bytes: the lowest of each group.
template <int kBytes>
inline constexpr uint64_t kLaneBits = kBytes == 1   ? ~UINT64_C(0)
                                      : kBytes == 2 ? UINT64_C(0x5555555555555555)
                                      : kBytes == 4 ? UINT64_C(0x1111111111111111)
                                                    : UINT64_C(0x0101010101010101);

template <int kBytes>
inline bool AllActive(const uint64_t* m) {
  constexpr uint64_t k = kLaneBits<kBytes>;
  return ((m[0] & m[1] & m[2] & m[3]) & k) == k;
}

template <int kBytes>
inline bool LaneActive(const uint64_t* m, int lane) {
  const int bit = lane * kBytes;
  return m[bit >> 6] >> (bit & 63) & 1;
}

template <int kBytes>
inline void SetLane(uint64_t* m, int lane) {
  const int bit = lane * kBytes;
  m[bit >> 6] |= UINT64_C(1) << (bit & 63);
}

// One byte of a predicate covers 8 bytes of a register: table[k][byte] is that piece with active lanes all ones.
extern const uint64_t (*const kExpand8)[256];
template <int kBytes>
inline const uint64_t* ExpandTable() {
  return kExpand8[kBytes == 1 ? 0 : kBytes == 2 ? 1 : kBytes == 4 ? 2 : 3];
}

template <int kBytes>
inline void ExpandMask(const uint64_t* m, uint64_t* lanes /* 32 */) {
  const uint64_t* table = ExpandTable<kBytes>();
  for (int w = 0; w < 4; ++w) {
    for (int i = 0; i < 8; ++i) lanes[8 * w + i] = table[m[w] >> (8 * i) & 0xFF];
  }
}

// Inactive lanes become zero.
template <int kBytes>
inline void ZeroInactive(void* d, const uint64_t* m) {
  if (AllActive<kBytes>(m)) return;
  uint64_t lanes[32];
  ExpandMask<kBytes>(m, lanes);
  uint64_t* r = static_cast<uint64_t*>(d);
  for (int i = 0; i < 32; ++i) r[i] &= lanes[i];
}

// Tells the monitor of a store of the active lanes: lane i writes `bytes` bytes at offset + i * bytes of UB.
template <int kBytes>
inline void TouchActive(const Context& c, const Inst* in, int64_t offset, int bytes, const uint64_t* m, int lanes) {
  for (int i = 0; i < lanes;) {
    if (!LaneActive<kBytes>(m, i)) {
      ++i;
      continue;
    }
    int end = i + 1;
    while (end < lanes && LaneActive<kBytes>(m, end)) ++end;
    c.monitor->Touch(c, in, c.ub_memory, offset + i * bytes, (end - i) * bytes, Access::kWrite);
    i = end;
  }
}

// Bits 0, 2, 4, ... as the low half.
inline uint64_t EvenBits(uint64_t x) {
  x &= UINT64_C(0x5555555555555555);
  x = (x | x >> 1) & UINT64_C(0x3333333333333333);
  x = (x | x >> 2) & UINT64_C(0x0F0F0F0F0F0F0F0F);
  x = (x | x >> 4) & UINT64_C(0x00FF00FF00FF00FF);
  x = (x | x >> 8) & UINT64_C(0x0000FFFF0000FFFF);
  return (x | x >> 16) & UINT64_C(0x00000000FFFFFFFF);
}
// The low half as bits 0, 2, 4, ...
inline uint64_t SpreadBits(uint64_t x) {
  x &= UINT64_C(0x00000000FFFFFFFF);
  x = (x | x << 16) & UINT64_C(0x0000FFFF0000FFFF);
  x = (x | x << 8) & UINT64_C(0x00FF00FF00FF00FF);
  x = (x | x << 4) & UINT64_C(0x0F0F0F0F0F0F0F0F);
  x = (x | x << 2) & UINT64_C(0x3333333333333333);
  return (x | x << 1) & UINT64_C(0x5555555555555555);
}

// Lane flags (0 or 1 bytes) to a predicate.
template <int kBytes>
inline void PackMask(const uint8_t* flags, uint64_t* m) {
  constexpr int kPerWord = 64 / kBytes;
  for (int w = 0; w < 4; ++w) {
    uint64_t word = 0;
    for (int i = 0; i < kPerWord; ++i) word |= static_cast<uint64_t>(flags[w * kPerWord + i]) << (i * kBytes);
    m[w] = word;
  }
}

}  // namespace pto::engine
