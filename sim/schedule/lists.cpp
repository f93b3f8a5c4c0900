#include "sim/schedule/lists.h"

#include "sim/base/format.h"
#include "sim/schedule/capped_faults.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr std::uint8_t bit_of(ActionKind kind) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind));
}
constexpr std::uint8_t kForwardBit = bit_of(ActionKind::kForward);
constexpr std::uint8_t kBackwardBit = bit_of(ActionKind::kBackward);
constexpr std::uint8_t kInputBit = bit_of(ActionKind::kInputGradient);
constexpr std::uint8_t kWeightBit = bit_of(ActionKind::kWeightGradient);

/// What was seen of each cell, and which copy of the model each micro-batch runs through.
struct Seen {
  std::vector<std::uint8_t> done;
  std::vector<std::int8_t> copy;
};

std::string sizes_text(const Schedule& schedule) {
  const ScheduleSize& size = schedule.size;
  std::string text = std::to_string(schedule.stages()) + " " + plural("stage", schedule.stages()) +
                     " and " + std::to_string(size.micro_batches) + " " +
                     plural("micro-batch", size.micro_batches);
  if (size.slices > 1) {
    text += " of " + std::to_string(size.slices) + " slices";
  }
  return text + (schedule.copies() > 1 ? " in 2 copies" : "");
}

bool known_cell(const Schedule& schedule, const Action& action) {
  return action.stage >= 0 && action.stage < schedule.stages() && action.micro_batch >= 0 &&
         action.micro_batch < schedule.size.micro_batches &&
         (action.slice >= 0) == (schedule.size.slices > 1) && action.slice < schedule.size.slices &&
         (action.copy >= 0) == (schedule.copies() > 1) && action.copy < schedule.copies();
}

/// What must, and what must not, have been done in its cell before an action.
std::string order_fault(const Action& action, std::uint8_t state) {
  const auto done = [state](std::uint8_t bits) { return (state & bits) != 0; };
  if (done(bit_of(action.kind))) {
    return " stands twice";
  }
  if (action.kind == ActionKind::kForward) {
    return state != 0 ? " stands after its backward" : "";
  }
  if (action.kind == ActionKind::kWeightGradient) {
    return done(kInputBit) ? "" : " stands before its input gradient";
  }
  if (action.kind == ActionKind::kBackward ? done(kInputBit) : done(kBackwardBit)) {
    return ": the micro-batch has a whole and a split backward here";
  }
  return done(kForwardBit) ? "" : " stands before its forward";
}

/// Checks one action where it stands and notes it as done; what follows its name, or nothing.
std::string action_fault(const Schedule& schedule,
                         std::int32_t rank,
                         const Action& action,
                         Seen& seen) {
  if (!known_cell(schedule, action)) {
    return " is outside " + sizes_text(schedule);
  }
  if (schedule.owner(action) != rank) {
    return " belongs to rank " + std::to_string(schedule.owner(action));
  }
  std::int8_t& copy = seen.copy[static_cast<std::size_t>(action.micro_batch)];
  if (copy >= 0 && action.copy >= 0 && copy != action.copy) {
    return ": the micro-batch runs through the other copy of the model elsewhere";
  }
  copy = action.copy;
  std::uint8_t& state = seen.done[cell(schedule, action)];
  std::string fault = order_fault(action, state);
  state = static_cast<std::uint8_t>(state | bit_of(action.kind));
  return fault;
}

/// An overlapped unit is a forward and then a backward, or its input half.
std::string unit_fault(const std::vector<Action>& list, std::size_t at) {
  if (!list[at].overlapped) {
    return "";
  }
  const bool pair = list[at].kind == ActionKind::kForward && at + 1 < list.size() &&
                    (list[at + 1].kind == ActionKind::kBackward ||
                     list[at + 1].kind == ActionKind::kInputGradient);
  return pair ? "" : " overlaps with no backward";
}

/// The action a cell still lacks, or nothing.
std::optional<ActionKind> missing_from(std::uint8_t state) {
  if ((state & kForwardBit) == 0) {
    return ActionKind::kForward;
  }
  if ((state & kInputBit) != 0) {
    return (state & kWeightBit) == 0 ? std::optional(ActionKind::kWeightGradient) : std::nullopt;
  }
  return (state & kBackwardBit) == 0 ? std::optional(ActionKind::kBackward) : std::nullopt;
}

void find_missing(const Schedule& schedule, const Seen& seen, CappedFaults& faults) {
  const ScheduleSize& size = schedule.size;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    for (std::int32_t k = 0; k < size.micro_batches; ++k) {
      for (std::int32_t slice = 0; slice < size.slices; ++slice) {
        Action action{stage, ActionKind::kForward, k};
        action.copy = seen.copy[static_cast<std::size_t>(k)];
        action.copy = schedule.copies() > 1 && action.copy < 0 ? std::int8_t{0} : action.copy;
        action.slice = static_cast<std::int16_t>(size.slices > 1 ? slice : -1);
        if (const auto kind = missing_from(seen.done[cell(schedule, action)])) {
          action.kind = *kind;
          faults.add("rank " + std::to_string(schedule.owner(action)) + ": " + to_string(action) +
                         " is missing",
                     "");
        }
      }
    }
  }
}

}  // namespace

std::array<ActionInput, 2> inputs_of(const Schedule& schedule, const Action& action) {
  std::array<ActionInput, 2> inputs;
  const auto slice = [&](int step) { return static_cast<std::int16_t>(action.slice + step); };
  if (action.kind == ActionKind::kForward) {
    if (action.stage > 0) {
      inputs[0] = {action.stage - 1, false, action.slice};
    }
    if (action.slice > 0) {
      inputs[1] = {action.stage, false, slice(-1)};
    }
  } else if (action.kind != ActionKind::kWeightGradient) {
    inputs[0] = action.stage + 1 == schedule.stages()
                    ? ActionInput{action.stage, false, action.slice}
                    : ActionInput{action.stage + 1, true, action.slice};
    if (action.slice >= 0 && action.slice + 1 < schedule.size.slices) {
      inputs[1] = {action.stage, true, slice(1)};
    }
  }
  return inputs;
}

Action producer_of(const Schedule& schedule, const Action& action, const ActionInput& input) {
  Action producer = action;
  producer.overlapped = false;
  producer.stage = input.stage;
  producer.slice = input.slice;
  producer.kind = input.gradient ? ActionKind::kInputGradient : ActionKind::kForward;
  const std::vector<Action>& list =
      schedule.ranks[static_cast<std::size_t>(schedule.owner(producer))];
  if (input.gradient && std::find(list.begin(), list.end(), producer) == list.end()) {
    producer.kind = ActionKind::kBackward;
  }
  return producer;
}

std::vector<std::string> list_faults(const Schedule& schedule) {
  const ScheduleSize& size = schedule.size;
  if (size.pp < 1 || size.vpp < 1 || size.micro_batches < 1 || size.slices < 1 ||
      schedule.ranks.size() != static_cast<std::size_t>(size.pp)) {
    return {std::to_string(schedule.ranks.size()) + " lists for pp " + std::to_string(size.pp) +
            ", vpp " + std::to_string(size.vpp) + ", " + std::to_string(size.micro_batches) + " " +
            plural("micro-batch", size.micro_batches)};
  }
  CappedFaults faults;
  Seen seen{std::vector<std::uint8_t>(cell_count(schedule)),
            std::vector<std::int8_t>(static_cast<std::size_t>(size.micro_batches), -1)};
  for (std::int32_t rank = 0; rank < size.pp; ++rank) {
    const std::vector<Action>& list = schedule.ranks[static_cast<std::size_t>(rank)];
    for (std::size_t at = 0; at < list.size(); ++at) {
      for (const std::string& fault :
           {action_fault(schedule, rank, list[at], seen), unit_fault(list, at)}) {
        if (!fault.empty()) {
          faults.add("rank " + std::to_string(rank) + ": " + to_string(list[at]) + fault, "");
        }
      }
    }
  }
  find_missing(schedule, seen, faults);
  std::vector<std::string> messages;
  for (Diagnostic& fault : faults.take()) {
    messages.push_back(std::move(fault.message));
  }
  return messages;
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

std::int32_t receiver_of(const Schedule& schedule, const Action& action) {
  if (action.kind == ActionKind::kWeightGradient) {
    return -1;
  }
  Action neighbour = action;
  neighbour.stage += action.kind == ActionKind::kForward ? 1 : -1;
  if (neighbour.stage < 0 || neighbour.stage >= schedule.stages()) {
    return -1;
  }
  const std::int32_t rank = schedule.owner(neighbour);
  return rank == schedule.owner(action) ? -1 : rank;
}

std::int64_t message_count(const Schedule& schedule) {
  std::int64_t count = 0;
  for (const std::vector<Action>& list : schedule.ranks) {
    for (const Action& action : list) {
      count += receiver_of(schedule, action) >= 0 ? 1 : 0;
    }
  }
  return count;
}

}  // namespace foretrain
