#pragma once

#include "foretrain/program.h"
#include "foretrain/timeline.h"
#include "sim/engine/event_run.h"

#include <cstdint>

namespace foretrain {

/// The account of one instance, read off the log of a run (RankAccount says the rules).
RankAccount account_of(const Program& program,
                       const EventRun& run,
                       std::int32_t instance,
                       std::int32_t first_measured,
                       std::int32_t steps);

}  // namespace foretrain
