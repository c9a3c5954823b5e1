// The buffers of a kernel in the memories of a core, as far as its text names them, and which pointers come from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program.h"

namespace pto::engine {

struct PointerView {
  std::string name;
  Space space = Space::kNone;
  int64_t begin = 0, end = 0;  // bytes of its memory
  int64_t limit = 0;           // the end of the last unit of the memory in it: transfers write whole units
};

// One that an instruction accesses memory through.
struct ViewUse {
  uint16_t view = 0;  // from 1
  bool reads = false, writes = false;
};

// For every value the number of the view it points into, from 1 in the order of `views`; 0: none, or not known which.
// Empty when the function names no views.
std::vector<uint16_t> FindPointerViews(const FunctionTree& tree, std::vector<PointerView>* views);

// The views an operation accesses, by its pointer operands.
std::vector<ViewUse> UsesOfViews(const FunctionTree& tree, const std::vector<uint16_t>& of_values,
                                 const std::vector<PointerView>& views, const Op& op);

}  // namespace pto::engine
