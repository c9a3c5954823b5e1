// The table of accuracy_table.h for callers outside the engine.
#include "approximate.h"
#include "engine.h"

namespace pto::engine {

std::vector<AccuracyFigure> AccuracyFigures() {
  std::vector<AccuracyFigure> figures;
  for (const Accuracy& row : kAccuracies) {
    std::vector<DType> types;
    if (row.types & kTakesF16) types.push_back(DType::kF16);
    if (row.types & kTakesF32) types.push_back(DType::kF32);
    figures.push_back({row.op, row.region, std::move(types), row.ulp, row.source, row.certainty});
  }
  return figures;
}

}  // namespace pto::engine
