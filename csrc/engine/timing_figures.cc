#include "timing_figures.h"

namespace pto::engine {

std::vector<TimingFigure> TimingFigures() {
  return {
#define PTO_FIGURE(name, value, unit, what, source, certainty) {#name, value, unit, what, source, certainty},
#include "timing_table.h"
#undef PTO_FIGURE
  };
}

}  // namespace pto::engine
