#pragma once

#include "tools/schedule_costs.h"

#include "foretrain/schedule.h"

#include <string>

namespace foretrain {

/// The timeline as a picture for a slide: a row per rank, forwards and backwards in two colours
/// (later chunks darker), micro-batch numbers where they fit, a time axis.
std::string schedule_svg(const Schedule& schedule,
                         const ScheduleTiming& timing,
                         const TypedCosts& costs);

}  // namespace foretrain
