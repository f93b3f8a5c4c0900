#pragma once

#include "foretrain/schedule.h"

/// The generators behind the table, a file for each family. Sizes reach them checked.
namespace foretrain {

using ActionLists = std::vector<std::vector<Action>>;

ActionLists gpipe_lists(const ScheduleSize& size);
ActionLists looped_bfs_lists(const ScheduleSize& size);

ActionLists one_f_one_b_lists(const ScheduleSize& size);
ActionLists eager_one_f_one_b_lists(const ScheduleSize& size);
ActionLists overlapped_one_f_one_b_lists(const ScheduleSize& size);

ActionLists interleaved_lists(const ScheduleSize& size);
std::optional<Diagnostic> interleaved_illegal(const ScheduleSize& size);
ActionLists pytorch_interleaved_lists(const ScheduleSize& size);
std::optional<Diagnostic> pytorch_interleaved_illegal(const ScheduleSize& size);
ActionLists overlapped_interleaved_lists(const ScheduleSize& size);
std::optional<Diagnostic> overlapped_interleaved_illegal(const ScheduleSize& size);

/// Micro-batches per round, as PyTorch cuts them: m / max(1, m div p).
std::int32_t pytorch_group(const ScheduleSize& size);

ActionLists zb_h1_lists(const ScheduleSize& size);
ActionLists zb_h2_lists(const ScheduleSize& size);
ActionLists zb_interleaved_lists(const ScheduleSize& size);
std::optional<Diagnostic> zb_interleaved_illegal(const ScheduleSize& size);

ActionLists zb_v_lists(const ScheduleSize& size);
ActionLists v_half_lists(const ScheduleSize& size);
ActionLists v_min_lists(const ScheduleSize& size);

ActionLists dualpipe_lists(const ScheduleSize& size);
std::optional<Diagnostic> dualpipe_illegal(const ScheduleSize& size);
ActionLists dualpipev_lists(const ScheduleSize& size);
std::optional<Diagnostic> dualpipev_illegal(const ScheduleSize& size);

ActionLists seq1f1b_lists(const ScheduleSize& size);
std::optional<Diagnostic> seq1f1b_illegal(const ScheduleSize& size);

}  // namespace foretrain
