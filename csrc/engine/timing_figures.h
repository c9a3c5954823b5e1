// The figures of the timing model as constants (timing_table.h), and for callers outside the engine.
#pragma once

#include <string>
#include <vector>

namespace pto::engine {

namespace figure {
#define PTO_FIGURE(name, value, unit, what, source, certainty) constexpr double name = value;
#include "timing_table.h"
#undef PTO_FIGURE
}  // namespace figure

// A row of the table.
struct TimingFigure {
  std::string name;
  double value;
  std::string unit, what, source, certainty;
};
std::vector<TimingFigure> TimingFigures();

// What an instruction of a SIMD function costs (vector_costs_table.h).
struct VectorCostFigure {
  std::string op, types;
  double latency, interval;
  std::string port, source, certainty;
};
std::vector<VectorCostFigure> VectorCostFigures();

}  // namespace pto::engine
