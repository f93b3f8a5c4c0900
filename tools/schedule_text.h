#pragma once

#include "tools/schedule_costs.h"

#include "foretrain/schedule.h"

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace foretrain {

/// The picture and the figures with what they mean, at most `width` columns for the picture.
std::string schedule_text(const Schedule& schedule,
                          const ScheduleTiming& timing,
                          const TypedCosts& costs,
                          int width);

/// The same as JSON: times in the unit of the input, seconds when it has one.
nlohmann::ordered_json schedule_json(const Schedule& schedule,
                                     const ScheduleTiming& timing,
                                     const TypedCosts& costs);

/// Sizes and lists only, for a schedule that deadlocks.
nlohmann::ordered_json deadlock_json(const Schedule& schedule, const std::string& grid);

}  // namespace foretrain
