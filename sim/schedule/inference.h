#pragma once

#include "foretrain/schedule.h"
#include "sim/schedule/capped_faults.h"

#include <cstddef>
#include <vector>

/// What lists that came without a name tell about themselves.
namespace foretrain {

/// Fills in sizes and placement from the lists; `lines` tells where each list stands in the text.
void infer_sizes(Schedule& schedule, const std::vector<std::size_t>& lines, CappedFaults& faults);

/// Files of early PyTorch write B for the input gradient of a split backward. In lists that have W
/// but no I, each B whose micro-batch and stage have a W is read as I, and the note says so.
void read_old_letters(Schedule& schedule);

}  // namespace foretrain
