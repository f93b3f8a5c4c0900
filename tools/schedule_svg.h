#pragma once

#include "tools/schedule_costs.h"

#include "foretrain/schedule.h"

#include <string>

namespace foretrain {

/// The timeline as a picture for a slide: a row per rank, a colour per kind of action (later chunks
/// darker), overlapped units as one box of two colours, the second model copy marked below,
/// micro-batch numbers where they fit, a time axis. More than forty ranks show both ends; boxes too
/// narrow to see become columns of shares.
std::string schedule_svg(const Schedule& schedule,
                         const ScheduleTiming& timing,
                         const TypedCosts& costs);

}  // namespace foretrain
