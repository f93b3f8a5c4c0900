#pragma once

#include "foretrain/schedule.h"
#include "sim/lower/stage_template.h"

namespace foretrain {

/// What each virtual stage's actions take when nothing else runs: the blocks of the rank's first
/// link class, alone. Actions the schedule does not have keep their defaults of 0.
ScheduleCosts chunk_costs(const TemplateInputs& inputs);

}  // namespace foretrain
