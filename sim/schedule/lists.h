#pragma once

#include "foretrain/schedule.h"

/// Rules a schedule's lists must keep before anything runs them.
namespace foretrain {

/// What is wrong with the lists themselves; whether they deadlock is another question.
std::vector<std::string> list_faults(const Schedule& schedule);

/// What an action waits for besides its own rank, or nothing: F(s) for F(s-1), the last stage's B
/// for its F, B(s) for B(s+1).
std::optional<Action> dependency(const Schedule& schedule, const Action& action);

/// Dense index of (stage, micro-batch).
inline std::size_t cell(const Schedule& schedule, const Action& action) {
  return static_cast<std::size_t>(action.stage) *
             static_cast<std::size_t>(schedule.size.micro_batches) +
         static_cast<std::size_t>(action.micro_batch);
}

inline std::size_t cell_count(const Schedule& schedule) {
  return static_cast<std::size_t>(schedule.stages()) *
         static_cast<std::size_t>(schedule.size.micro_batches);
}

}  // namespace foretrain
