#pragma once

#include "foretrain/schedule.h"

/// The generators behind the table, one file each. Sizes reach them checked.
namespace foretrain {

using ActionLists = std::vector<std::vector<Action>>;

ActionLists gpipe_lists(const ScheduleSize& size);
ActionLists one_f_one_b_lists(const ScheduleSize& size);
ActionLists interleaved_lists(const ScheduleSize& size);
std::optional<Diagnostic> interleaved_illegal(const ScheduleSize& size);

}  // namespace foretrain
