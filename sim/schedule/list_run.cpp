#include "sim/schedule/list_run.h"

#include "sim/schedule/lists.h"

#include <algorithm>
#include <utility>

namespace foretrain {
namespace {

constexpr Instant kNotDone{Duration{-1}};

/// Runs every list as far as it goes, each action as soon as its rank and its input allow.
class ListRun {
 public:
  ListRun(const Schedule& schedule, const ScheduleCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        forward_end_(cell_count(schedule), kNotDone),
        gradient_end_(cell_count(schedule), kNotDone),
        queued_(schedule.ranks.size(), true) {
    out_.start.resize(schedule.ranks.size());
    out_.end.resize(schedule.ranks.size());
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      out_.start[rank].reserve(schedule.ranks[rank].size());
      out_.end[rank].reserve(schedule.ranks[rank].size());
      runnable_.push_back(rank);
    }
  }

  void run() {
    while (!runnable_.empty()) {
      const std::size_t rank = runnable_.back();
      runnable_.pop_back();
      queued_[rank] = false;
      while (step(rank)) {
      }
    }
  }

  ListOutcome take() {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      out_.blocked.push_back(blocked(rank));
    }
    return std::move(out_);
  }

 private:
  std::vector<Instant>& ends_of(bool gradient) { return gradient ? gradient_end_ : forward_end_; }

  Instant end_of(const Action& action, const ActionInput& input) {
    return ends_of(input.gradient)[cell(schedule_, action, input.stage, input.slice)];
  }

  /// The first input that the rank's next piece lacks.
  Blocked blocked(std::size_t rank) {
    const std::vector<Action>& list = schedule_.ranks[rank];
    const std::size_t at = out_.end[rank].size();
    const std::size_t end = at < list.size() ? at + piece_length(list[at], costs_) : at;
    for (std::size_t i = at; i < end; ++i) {
      for (const ActionInput& input : inputs_of(schedule_, list[i])) {
        if (input.stage >= 0 && end_of(list[i], input) == kNotDone) {
          const Action producer = producer_of(schedule_, list[i], input);
          const std::int32_t owner = schedule_.owner(producer);
          const bool own = owner == static_cast<std::int32_t>(rank);
          return {owner,
                  "waits for " + to_string(producer) +
                      (own ? ", later in its own list" : " of rank " + std::to_string(owner))};
        }
      }
    }
    return {};
  }

  /// When an action's inputs are there, and its rank; kNotDone: not yet.
  Instant ready(const Action& action, Instant rank_free) {
    Instant start = rank_free;
    for (const ActionInput& input : inputs_of(schedule_, action)) {
      if (input.stage < 0) {
        continue;
      }
      const Instant end = end_of(action, input);
      if (end == kNotDone) {
        return kNotDone;
      }
      Action producer = action;
      producer.stage = input.stage;
      const bool crosses = schedule_.owner(producer) != schedule_.owner(action);
      start = std::max(start, crosses ? end + costs_.p2p : end);
    }
    return start;
  }

  void finish(std::size_t rank, const Action& action, Instant start, Instant end) {
    out_.start[rank].push_back(start);
    out_.end[rank].push_back(end);
    if (action.kind == ActionKind::kWeightGradient) {
      return;
    }
    const bool gradient = action.kind != ActionKind::kForward;
    ends_of(gradient)[cell(schedule_, action)] = end;
    Action neighbour = action;
    neighbour.stage += gradient ? -1 : 1;
    wake(neighbour);
  }

  /// Runs the next unit of a rank, if it can.
  bool step(std::size_t rank) {
    const std::vector<Action>& list = schedule_.ranks[rank];
    const std::vector<Instant>& ends = out_.end[rank];
    if (ends.size() == list.size()) {
      return false;
    }
    const Action& action = list[ends.size()];
    const Instant free = ends.empty() ? Instant{} : ends.back();
    Instant start = ready(action, free);
    if (start == kNotDone) {
      return false;
    }
    if (piece_length(action, costs_) == 1) {
      finish(rank, action, start, start + action_duration(action, costs_));
      return true;
    }
    const Action& partner = list[ends.size() + 1];
    start = ready(partner, start);
    if (start == kNotDone) {
      return false;
    }
    const Instant end = start + unit_duration(action, partner, costs_);
    finish(rank, action, start, end);
    finish(rank, partner, start, end);
    return true;
  }

  void wake(const Action& neighbour) {
    if (neighbour.stage < 0 || neighbour.stage >= schedule_.stages()) {
      return;
    }
    const auto rank = static_cast<std::size_t>(schedule_.owner(neighbour));
    if (!queued_[rank]) {
      queued_[rank] = true;
      runnable_.push_back(rank);
    }
  }

  const Schedule& schedule_;
  const ScheduleCosts& costs_;
  std::vector<Instant> forward_end_, gradient_end_;  ///< by cell
  std::vector<bool> queued_;
  std::vector<std::size_t> runnable_;
  ListOutcome out_;
};

}  // namespace

Duration ChunkCosts::*cost_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return &ChunkCosts::forward;
    case ActionKind::kBackward:
      return &ChunkCosts::backward;
    case ActionKind::kInputGradient:
      return &ChunkCosts::input_gradient;
    case ActionKind::kWeightGradient:
      break;
  }
  return &ChunkCosts::weight_gradient;
}

Duration action_duration(const Action& action, const ScheduleCosts& costs) {
  return costs.of(action).*cost_of(action.kind);
}

/// Of an overlapped unit in one piece.
Duration unit_duration(const Action& forward, const Action& partner, const ScheduleCosts& costs) {
  const Duration sum = action_duration(forward, costs) + action_duration(partner, costs);
  return costs.of(forward).overlapped.value_or(sum);
}

bool ListOutcome::complete(const Schedule& schedule) const {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    if (end[rank].size() < schedule.ranks[rank].size()) {
      return false;
    }
  }
  return true;
}

ListOutcome run_lists(const Schedule& schedule, const ScheduleCosts& costs) {
  if (costs.mode == PointToPoint::kRendezvous) {
    return run_rendezvous(schedule, costs);
  }
  ListRun run(schedule, costs);
  run.run();
  return run.take();
}

}  // namespace foretrain
