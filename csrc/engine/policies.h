// When the queues of the pipes are worked off.
//
// Any order that flags, barriers and tokens permit is one the hardware may show. A correct kernel gives the same
// results under every policy.
#pragma once

#include <memory>

#include "core.h"

namespace pto::engine {

// Eager: every pipe goes as far as it can after each issue, so effects happen in program order where flags permit.
// Late: computation goes ahead, and a transfer happens only when nothing else can go on without it.
// Random: after each issue and whenever the scalar unit waits, some pipes go on, drawn from the seed of the launch.
std::unique_ptr<DrainPolicy> MakePolicy(const LaunchOptions& options);

}  // namespace pto::engine
