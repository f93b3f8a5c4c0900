#include "sim/schedule/deadlock.h"
#include "sim/schedule/list_run.h"
#include "sim/schedule/lists.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Whether the latest thinkable end, all actions and messages one after another, fits in Duration.
bool fits(const Schedule& schedule, const ScheduleCosts& costs) {
  Int128 latest = 0;
  for (const std::vector<Action>& list : schedule.ranks) {
    for (const Action& action : list) {
      const Duration overlapped = costs.of(action).overlapped.value_or(Duration{});
      latest += std::max(action_duration(action, costs), overlapped).count();
      latest += costs.p2p.count();
    }
  }
  return latest <= Int128{Duration::max().count()};
}

std::optional<Diagnostic> cost_fault(const Schedule& schedule, const ScheduleCosts& costs) {
  const auto stages = static_cast<std::size_t>(schedule.stages());
  if (costs.stages.size() != 1 && costs.stages.size() != stages) {
    return Diagnostic{
        "/schedule",
        "costs of " + std::to_string(costs.stages.size()) + " stages for " + std::to_string(stages),
        "one cost for all, or one per stage"};
  }
  Duration least = costs.p2p;
  for (const ChunkCosts& chunk : costs.stages) {
    least = std::min({least,
                      chunk.forward,
                      chunk.backward,
                      chunk.input_gradient,
                      chunk.weight_gradient,
                      chunk.overlapped.value_or(Duration{})});
  }
  if (least < Duration{}) {
    return Diagnostic{"/schedule", "a cost is negative", ""};
  }
  if (!fits(schedule, costs)) {
    return Diagnostic{"/schedule",
                      "the costs are too large: the sum over all actions overflows",
                      "costs of fewer digits, or fewer actions"};
  }
  return std::nullopt;
}

/// Time a rank works: an overlapped unit in one piece counts once.
Duration busy_time(const std::vector<Action>& list, const ScheduleCosts& costs) {
  Duration busy{};
  for (std::size_t at = 0; at < list.size(); at += piece_length(list[at], costs)) {
    busy += piece_length(list[at], costs) > 1 ? unit_duration(list[at], list[at + 1], costs)
                                              : action_duration(list[at], costs);
  }
  return busy;
}

void add_bubbles(const Schedule& schedule, const ScheduleCosts& costs, ScheduleTiming& timing) {
  for (const std::vector<Instant>& ends : timing.end) {
    if (!ends.empty()) {
      timing.makespan = std::max(timing.makespan, ends.back().time_since_epoch());
    }
  }
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const Duration busy = busy_time(schedule.ranks[rank], costs);
    const bool empty = timing.end[rank].empty();
    const Duration span = empty ? Duration{} : timing.end[rank].back() - timing.start[rank].front();
    timing.busy.push_back(busy);
    timing.bubble.push_back(timing.makespan - busy);
    timing.span_bubble.push_back(span - busy);
  }
}

}  // namespace

Expected<ScheduleTiming> time_schedule(const Schedule& schedule, const ScheduleCosts& costs) {
  std::vector<Diagnostic> faults;
  for (std::string& fault : list_faults(schedule)) {
    faults.push_back({"/schedule", std::move(fault), ""});
  }
  if (faults.empty()) {
    if (std::optional<Diagnostic> fault = cost_fault(schedule, costs)) {
      faults.push_back(*std::move(fault));
    }
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  ListOutcome run = run_lists(schedule, costs);
  if (!run.complete(schedule)) {
    return refuse({"/schedule", blocked_grid(schedule, costs, run), "reorder the marked actions"});
  }
  ScheduleTiming timing;
  timing.start = std::move(run.start);
  timing.end = std::move(run.end);
  add_bubbles(schedule, costs, timing);
  return timing;
}

}  // namespace foretrain
