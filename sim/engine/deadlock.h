#pragma once

#include "foretrain/program.h"
#include "foretrain/timeline.h"

#include <cstdint>
#include <vector>

namespace foretrain {

/// The tasks at the heads of the streams that can go no further in a step, and what each waits for.
/// `progress`: tasks done in that step, per instance and stream.
Deadlock describe_deadlock(const Program& program,
                           const std::vector<std::vector<std::int32_t>>& progress);

}  // namespace foretrain
