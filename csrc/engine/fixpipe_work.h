// What the timing model has to know of a store of L0C besides what it accesses.
#pragma once

#include "core.h"

namespace pto::engine {

// Whether a command of pipe FIX that stores L0C takes rows of L0C that do not follow each other (nz2dn with a stride).
bool SkipsRowsOfL0c(const Core& core, const Command& command);

}  // namespace pto::engine
