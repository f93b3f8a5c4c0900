#pragma once

#include "sim/schedule/list_run.h"

namespace foretrain {

/// Lists that did not come to their end, for people: each rank's surroundings with what it waits
/// for, then one circle of ranks that wait for each other.
std::string blocked_grid(const Schedule& schedule,
                         const ScheduleCosts& costs,
                         const ListOutcome& run);

}  // namespace foretrain
