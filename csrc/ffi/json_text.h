// Writing JSON.
#pragma once

#include <string>

#include "engine/engine.h"

namespace pto::ffi {

// A JSON string with its quotes.
std::string Quoted(const std::string& text);

// The counts of a launch as a JSON object.
std::string StatsText(const engine::LaunchStats& stats);

}  // namespace pto::ffi
