#include "sim/schedule/lists.h"

#include "sim/base/format.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr std::size_t kMostMessages = 20;

bool known_cell(const Schedule& schedule, const Action& action) {
  return action.stage >= 0 && action.stage < schedule.stages() && action.micro_batch >= 0 &&
         action.micro_batch < schedule.size.micro_batches;
}

/// Checks one action where it stands and notes it as done: forward 1, backward 2.
std::string action_fault(const Schedule& schedule,
                         std::int32_t rank,
                         const Action& action,
                         std::vector<std::uint8_t>& done) {
  const std::string where = "rank " + std::to_string(rank) + ": " + to_string(action);
  if (!known_cell(schedule, action)) {
    return where + " is outside " + std::to_string(schedule.stages()) + " " +
           plural("stage", schedule.stages()) + " and " +
           std::to_string(schedule.size.micro_batches) + " " +
           plural("micro-batch", schedule.size.micro_batches);
  }
  if (schedule.owner(action.stage) != rank) {
    return where + " belongs to rank " + std::to_string(schedule.owner(action.stage));
  }
  if (action.kind != ActionKind::kForward && action.kind != ActionKind::kBackward) {
    return where + ": a split backward (I, W) is not built yet";
  }
  std::uint8_t& state = done[cell(schedule, action)];
  const bool forward = action.kind == ActionKind::kForward;
  const std::uint8_t bit = forward ? 1 : 2;
  if ((state & bit) != 0) {
    return where + " stands twice";
  }
  const bool early = !forward && (state & 1) == 0;
  state = static_cast<std::uint8_t>(state | bit);
  return early ? where + " stands before its forward" : "";
}

void find_missing(const Schedule& schedule,
                  const std::vector<std::uint8_t>& done,
                  std::vector<std::string>& faults) {
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    for (std::int32_t k = 0; k < schedule.size.micro_batches; ++k) {
      for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
        const Action action{stage, kind, k};
        const int bit = kind == ActionKind::kForward ? 1 : 2;
        if ((done[cell(schedule, action)] & bit) == 0) {
          faults.push_back("rank " + std::to_string(schedule.owner(stage)) + ": " +
                           to_string(action) + " is missing");
        }
      }
    }
  }
}

}  // namespace

std::optional<Action> dependency(const Schedule& schedule, const Action& action) {
  if (action.kind == ActionKind::kForward) {
    if (action.stage == 0) {
      return std::nullopt;
    }
    return Action{action.stage - 1, ActionKind::kForward, action.micro_batch};
  }
  if (action.stage + 1 == schedule.stages()) {
    return Action{action.stage, ActionKind::kForward, action.micro_batch};
  }
  return Action{action.stage + 1, ActionKind::kBackward, action.micro_batch};
}

std::vector<std::string> list_faults(const Schedule& schedule) {
  std::vector<std::string> faults;
  const ScheduleSize& size = schedule.size;
  if (size.pp < 1 || size.vpp < 1 || size.micro_batches < 1 ||
      schedule.ranks.size() != static_cast<std::size_t>(size.pp)) {
    faults.push_back(std::to_string(schedule.ranks.size()) + " lists for pp " +
                     std::to_string(size.pp) + ", vpp " + std::to_string(size.vpp) + ", " +
                     std::to_string(size.micro_batches) + " " +
                     plural("micro-batch", size.micro_batches));
    return faults;
  }
  std::vector<std::uint8_t> done(cell_count(schedule));
  for (std::int32_t rank = 0; rank < size.pp; ++rank) {
    for (const Action& action : schedule.ranks[static_cast<std::size_t>(rank)]) {
      std::string fault = action_fault(schedule, rank, action, done);
      if (!fault.empty()) {
        faults.push_back(std::move(fault));
      }
    }
  }
  find_missing(schedule, done, faults);
  if (faults.size() > kMostMessages) {
    const std::size_t more = faults.size() - kMostMessages;
    faults.resize(kMostMessages);
    faults.push_back("and " + std::to_string(more) + " more");
  }
  return faults;
}

std::vector<std::string> schedule_faults(const Schedule& schedule) {
  std::vector<std::string> faults = list_faults(schedule);
  if (faults.empty()) {
    if (std::optional<std::string> blocked = find_deadlock(schedule)) {
      faults.push_back(*std::move(blocked));
    }
  }
  return faults;
}

std::vector<std::int32_t> peak_in_flight(const Schedule& schedule) {
  std::vector<std::int32_t> peaks;
  for (const std::vector<Action>& list : schedule.ranks) {
    std::int32_t held = 0;
    std::int32_t peak = 0;
    for (const Action& action : list) {
      if (action.kind == ActionKind::kForward) {
        peak = std::max(peak, ++held);
      } else if (action.kind != ActionKind::kInputGradient) {
        --held;
      }
    }
    peaks.push_back(peak);
  }
  return peaks;
}

std::int64_t message_count(const Schedule& schedule) {
  std::int64_t count = 0;
  for (const std::vector<Action>& list : schedule.ranks) {
    for (const Action& action : list) {
      if (action.kind == ActionKind::kWeightGradient) {
        continue;
      }
      const std::int32_t next = action.stage + (action.kind == ActionKind::kForward ? 1 : -1);
      const bool crosses = next >= 0 && next < schedule.stages() &&
                           schedule.owner(next) != schedule.owner(action.stage);
      count += crosses ? 1 : 0;
    }
  }
  return count;
}

}  // namespace foretrain
