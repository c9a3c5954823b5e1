// Random numbers by splitmix64: the same everywhere, and cheap enough for one state per core.
#pragma once

#include <cstdint>

namespace pto::engine {

// Spreads every bit of x over all bits.
inline uint64_t Scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

// The next number of a state.
inline uint64_t NextRandom(uint64_t* state) { return Scramble(*state += UINT64_C(0x9E3779B97F4A7C15)); }

}  // namespace pto::engine
