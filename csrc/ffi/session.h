// Simulation sessions: options for all launches of the process, and a report of each of them.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace pto::ffi {

// A launch as its report names it.
struct LaunchName {
  std::string kernel, file, text;
};

// Runs a launch with the options of the innermost session, which keeps a report of it, or with those that the
// environment asks for. Throws engine::Error, engine::FindingError for a finding unless the session only reports
// them: then tilelang_pto.sim_failed_report gives this thread the report of the launch. Throws BadSetting.
void LaunchInSession(const engine::Program& program, const LaunchName& name, const std::vector<engine::Arg>& args,
                     int64_t grid, engine::LaunchOptions options, engine::LaunchStats* stats);

}  // namespace pto::ffi
