// Unit flags: one for each 512 bytes of L0C, between mad and the fixpipe.
//
// A mad with the flag waits until its units are 0 and may set them; a fixpipe command waits until its units are 1 and
// may clear them.
#pragma once

#include "commands.h"

namespace pto::engine {

enum UnitFlag : uint8_t { kUnitOff = 0, kUnitCheck = 2, kUnitCheckAndChange = 3 };

// True when all units of the bytes have the value.
inline bool UnitsAre(const CubeMemory& m, int64_t first, int64_t bytes, uint8_t value) {
  for (int64_t u = first / kUnitBytes; u <= (first + bytes - 1) / kUnitBytes; ++u) {
    if (m.unit_set[u] != value) return false;
  }
  return true;
}

inline void ChangeUnits(CubeMemory& m, int64_t first, int64_t bytes, uint8_t value) {
  for (int64_t u = first / kUnitBytes; u <= (first + bytes - 1) / kUnitBytes; ++u) m.unit_set[u] = value;
}

}  // namespace pto::engine
