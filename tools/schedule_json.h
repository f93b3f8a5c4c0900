#pragma once

#include "tools/schedule_costs.h"

#include "foretrain/schedule.h"

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace foretrain {

/// Sizes, figures, and per rank the units with their starts: times in the unit of the input,
/// seconds when it has one.
nlohmann::ordered_json schedule_json(const Schedule& schedule,
                                     const ScheduleTiming& timing,
                                     const TypedCosts& costs);

/// Sizes and lists only, for a schedule that deadlocks.
nlohmann::ordered_json deadlock_json(const Schedule& schedule,
                                     const TypedCosts& costs,
                                     const std::string& grid);

}  // namespace foretrain
