// Writing JSON.
#pragma once

#include <string>

#include "engine.h"

namespace pto::engine {

// A JSON string with its quotes.
std::string Quoted(const std::string& text);

// The counts of a launch as a JSON object.
std::string StatsText(const LaunchStats& stats);

}  // namespace pto::engine
