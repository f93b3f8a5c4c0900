#pragma once

#include "foretrain/schedule.h"

#include <array>

/// Rules a schedule's lists must keep before anything runs them.
namespace foretrain {

/// Lists beyond this are refused rather than built: about 1.5 GB with their times.
constexpr std::int64_t kMostActions = std::int64_t{1} << 25;

/// What is wrong with the lists themselves; whether they deadlock is another question.
std::vector<std::string> list_faults(const Schedule& schedule);

/// What an action waits for besides its own rank's order: the end of a forward, or of the part of a
/// backward that hands the gradient on (B or I), of the same micro-batch and copy.
struct ActionInput {
  std::int32_t stage = -1;  ///< -1: none
  bool gradient = false;
  std::int16_t slice = -1;
};
/// F(s) waits for F(s-1) and the slice before; B or I of s for the gradient of s+1 (of the last
/// stage: its own forward) and of the slice after; W for nothing, it follows its I on the rank.
std::array<ActionInput, 2> inputs_of(const Schedule& schedule, const Action& action);

/// An input as the action that gives it: the F, or whichever of B and I the lists have.
Action producer_of(const Schedule& schedule, const Action& action, const ActionInput& input);

/// The rank that takes an action's output over a link, or -1: none, or the same rank.
std::int32_t receiver_of(const Schedule& schedule, const Action& action);

/// Dense index of (copy, stage, micro-batch, slice).
inline std::size_t cell(const Schedule& schedule,
                        const Action& action,
                        std::int32_t stage,
                        std::int32_t slice) {
  const auto at = [](std::int32_t value) {
    return static_cast<std::size_t>(value > 0 ? value : 0);
  };
  const std::size_t place = at(action.copy) * at(schedule.stages()) + at(stage);
  return (place * at(schedule.size.micro_batches) + at(action.micro_batch)) *
             at(schedule.size.slices) +
         at(slice);
}
inline std::size_t cell(const Schedule& schedule, const Action& action) {
  return cell(schedule, action, action.stage, action.slice);
}

inline std::size_t cell_count(const Schedule& schedule) {
  return static_cast<std::size_t>(schedule.copies()) * static_cast<std::size_t>(schedule.stages()) *
         static_cast<std::size_t>(schedule.size.micro_batches) *
         static_cast<std::size_t>(schedule.size.slices);
}

}  // namespace foretrain
