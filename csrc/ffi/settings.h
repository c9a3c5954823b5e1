// Environment variables that a launch reads. The Python side (tilelang_pto/settings.py) has the same rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/engine.h"

namespace pto::ffi {

// A variable's value is not understood. what to say, and what to do instead.
struct BadSetting {
  std::string message, advice;
};

// TILELANG_PTO_THREADS: host threads of the simulator, 0 for all.
int HostThreads();

// TILELANG_PTO_ULP: the seed of `perturb:SEED`, nothing for `exact`.
std::optional<uint64_t> Perturbation();

// TILELANG_PTO_SEED: how the cores of a block take turns, 0 for equal turns.
uint64_t InterleavingSeed();

// What a launch checks, and in which order the pipes do what nothing orders.
struct SimulationChecks {
  engine::Check check = engine::Check::kFull;
  engine::Policy policy = engine::Policy::kLate;
  uint64_t seed = 0;
};

// check: off, bounds or full; policy: late, eager or random:SEED. Empty: the default.
SimulationChecks ParseChecks(const std::string& check, const std::string& policy);

// TILELANG_PTO_SIM_CHECK and TILELANG_PTO_SIM_POLICY.
SimulationChecks ChecksFromEnvironment();

// What they say as the options of a session, in JSON.
std::string OptionsText();

// TILELANG_PTO_MAD_ORDER: how a mad adds its products.
engine::MadOrder MadOrder();

}  // namespace pto::ffi
