#include "ffi/settings.h"

#include <cstdlib>

#include "engine/json_text.h"

namespace pto::ffi {
namespace {

std::string Read(const char* variable) {
  const char* value = std::getenv(variable);
  std::string text = value ? value : "";
  text.erase(0, text.find_first_not_of(" \t"));
  text.erase(text.find_last_not_of(" \t") + 1);
  return text;
}

// Decimal digits, at most 18 of them.
std::optional<uint64_t> Number(const std::string& text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::strtoull(text.c_str(), nullptr, 10);
}

}  // namespace

int HostThreads() {
  const std::string text = Read("TILELANG_PTO_THREADS");
  if (text.empty()) return 0;
  const std::optional<uint64_t> threads = Number(text);
  if (!threads || *threads > 4096) {
    throw BadSetting{"TILELANG_PTO_THREADS=" + text + " is not a number of threads",
                     "use a number from 1 to 4096, or 0 for all"};
  }
  return static_cast<int>(*threads);
}

std::optional<uint64_t> Perturbation() {
  const std::string text = Read("TILELANG_PTO_ULP"), prefix = "perturb:";
  if (text.empty() || text == "exact") return std::nullopt;
  if (text.compare(0, prefix.size(), prefix) == 0) {
    if (const std::optional<uint64_t> seed = Number(text.substr(prefix.size()))) return seed;
  }
  throw BadSetting{"TILELANG_PTO_ULP=" + text + " is not understood",
                   "use exact, or perturb:SEED with a number of at most 18 digits"};
}

uint64_t InterleavingSeed() {
  const std::string text = Read("TILELANG_PTO_SEED");
  if (text.empty()) return 0;
  const std::optional<uint64_t> seed = Number(text);
  if (!seed) {
    throw BadSetting{"TILELANG_PTO_SEED=" + text + " is not a seed",
                     "use a number of at most 18 digits, 0 for equal turns"};
  }
  return *seed;
}

SimulationChecks ParseChecks(const std::string& check, const std::string& policy) {
  SimulationChecks found;
  if (check == "off") {
    found.check = engine::Check::kOff;
  } else if (check == "bounds") {
    found.check = engine::Check::kBounds;
  } else if (!check.empty() && check != "full") {
    throw BadSetting{"TILELANG_PTO_SIM_CHECK=" + check + " is not a mode", "use off, bounds or full"};
  }
  const std::string prefix = "random:";
  if (policy == "eager") {
    found.policy = engine::Policy::kEager;
  } else if (policy.compare(0, prefix.size(), prefix) == 0) {
    const std::optional<uint64_t> seed = Number(policy.substr(prefix.size()));
    if (!seed)
      throw BadSetting{"TILELANG_PTO_SIM_POLICY=" + policy + " has no seed",
                       "use random:SEED with a number of at most 18 digits"};
    found.policy = engine::Policy::kRandom, found.seed = *seed;
  } else if (!policy.empty() && policy != "late") {
    throw BadSetting{"TILELANG_PTO_SIM_POLICY=" + policy + " is not a policy", "use late, eager or random:SEED"};
  }
  return found;
}

SimulationChecks ChecksFromEnvironment() {
  return ParseChecks(Read("TILELANG_PTO_SIM_CHECK"), Read("TILELANG_PTO_SIM_POLICY"));
}

std::string OptionsText() {
  const auto named = [](const char* name, const std::string& otherwise) {
    const std::string text = Read(name);
    return engine::Quoted(text.empty() ? otherwise : text);
  };
  return "{\"check\": " + named("TILELANG_PTO_SIM_CHECK", "full") +
         ", \"policy\": " + named("TILELANG_PTO_SIM_POLICY", "late") +
         ", \"race\": \"raise\", \"timing\": false, \"timeline\": false, \"max_events\": 1}";
}

engine::MadOrder MadOrder() {
  const std::string text = Read("TILELANG_PTO_MAD_ORDER");
  engine::MadOrder order;
  if (!text.empty() && !engine::MadOrder::Parse(text, &order)) {
    throw BadSetting{"TILELANG_PTO_MAD_ORDER=" + text + " is not an order of summation",
                     "use ascending, blocked, reverse or random:SEED"};
  }
  return order;
}

}  // namespace pto::ffi
