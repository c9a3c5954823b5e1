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

// By a mad (to 1) or the fixpipe (to 0), at the end of its command.
inline void ChangeUnits(const Core& core, Pipe pipe, CubeMemory& m, int64_t first, int64_t bytes, uint8_t value) {
  for (int64_t u = first / kUnitBytes; u <= (first + bytes - 1) / kUnitBytes; ++u) {
    m.unit_set[u] = value;
    core.Signal(pipe, {SyncPoint::kUnit, static_cast<int>(u), value});
  }
}

// All units had the value that the command waits for.
inline void UnitsPassed(Core& core, Pipe pipe, int64_t first, int64_t bytes, uint8_t value) {
  if (!core.monitor()) return;
  for (int64_t u = first / kUnitBytes; u <= (first + bytes - 1) / kUnitBytes; ++u) {
    core.Waited(pipe, {SyncPoint::kUnit, static_cast<int>(u), value});
  }
}

}  // namespace pto::engine
