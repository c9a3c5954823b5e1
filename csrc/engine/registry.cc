// All operations by name.
#include <algorithm>
#include <unordered_map>

#include "builder.h"

namespace pto::engine {
namespace {

using Registry = std::unordered_map<std::string, std::vector<const OpEntry*>>;

const Registry& All() {
  static const Registry registry = [] {
    Registry r;
    for (const OpTable* table :
         {&ScalarOps(),         &ScalarMemoryOps(), &ControlOps(),    &MteOps(),         &SyncOps(),
          &SimdArithmeticOps(), &SimdReduceOps(),   &SimdMemoryOps(), &SimdGatherOps(),  &SimdStreamOps(),
          &SimdWideOps(),       &SimdCountOps(),    &SortOps(),       &SimdConvertOps(), &SimdMaskOps(),
          &SimdMoveOps(),       &SimtOps(),         &SimtMemoryOps(), &SimtWarpOps(),    &SimtAtomicOps(),
          &WideIntegerOps(),    &BufferTokenOps(),  &CrossCoreOps(),  &DebugOps(),       &IntraBlockOps(),
          &CubeCopyOps(),       &CubeLoadOps(),     &MadOps(),        &FixpipeOps()}) {
      for (const OpEntry& e : *table) r[e.name].push_back(&e);
    }
    return r;
  }();
  return registry;
}

}  // namespace

const OpEntry* FindOp(const std::string& name, uint8_t units) {
  auto it = All().find(name);
  if (it == All().end()) return nullptr;
  for (const OpEntry* e : it->second) {
    if (e->units & units) return e;
  }
  return nullptr;
}

bool IsKnownOp(const std::string& name) { return All().count(name) != 0; }

std::vector<std::string> SupportedOps() {
  std::vector<std::string> names;
  for (const auto& entry : All()) names.push_back(entry.first);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace pto::engine
