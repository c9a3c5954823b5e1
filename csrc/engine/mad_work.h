// How much a mad computes, for the timing model.
#pragma once

#include "core.h"

namespace pto::engine {

struct MadWork {
  int64_t m = 0, n = 0, k = 0;
  int element_bits = 16;
  bool whole_f32 = false;  // f32 operands that are not rounded
  bool scaled = false;
};

// Of a command of pipe M that is a mad.
MadWork MadWorkOf(const Core& core, const Command& command);

}  // namespace pto::engine
