#pragma once

#include "tools/schedule_costs.h"

#include "foretrain/schedule.h"

#include <string>

namespace foretrain {

/// The picture and the figures with what they mean, at most `width` columns for the picture.
std::string schedule_text(const Schedule& schedule,
                          const ScheduleTiming& timing,
                          const TypedCosts& costs,
                          int width);

}  // namespace foretrain
