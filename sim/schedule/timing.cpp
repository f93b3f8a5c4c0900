#include "sim/schedule/lists.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr Instant kNotDone{Duration{-1}};

/// Runs every list as far as it goes, each action as soon as its rank and its input allow.
class ListRun {
 public:
  ListRun(const Schedule& schedule, const ChunkCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        forward_end_(cell_count(schedule), kNotDone),
        backward_end_(cell_count(schedule), kNotDone),
        queued_(schedule.ranks.size(), true) {
    timing_.start.resize(schedule.ranks.size());
    timing_.end.resize(schedule.ranks.size());
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      timing_.start[rank].reserve(schedule.ranks[rank].size());
      timing_.end[rank].reserve(schedule.ranks[rank].size());
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

  /// How many actions of a rank's list were done.
  std::size_t done(std::size_t rank) const { return timing_.end[rank].size(); }
  bool complete() const {
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      if (done(rank) < schedule_.ranks[rank].size()) {
        return false;
      }
    }
    return true;
  }

  ScheduleTiming take() { return std::move(timing_); }

 private:
  Instant& end_of(const Action& action) {
    std::vector<Instant>& ends = action.kind == ActionKind::kForward ? forward_end_ : backward_end_;
    return ends[cell(schedule_, action)];
  }

  bool step(std::size_t rank) {
    const std::vector<Action>& list = schedule_.ranks[rank];
    std::vector<Instant>& ends = timing_.end[rank];
    if (ends.size() == list.size()) {
      return false;
    }
    const Action& action = list[ends.size()];
    Instant start = ends.empty() ? Instant{} : ends.back();
    if (const std::optional<Action> input = dependency(schedule_, action)) {
      const Instant ready = end_of(*input);
      if (ready == kNotDone) {
        return false;
      }
      const bool crosses = schedule_.owner(input->stage) != schedule_.owner(action.stage);
      start = std::max(start, crosses ? ready + costs_.p2p : ready);
    }
    const bool forward = action.kind == ActionKind::kForward;
    const Instant end = start + (forward ? costs_.forward : costs_.backward);
    timing_.start[rank].push_back(start);
    ends.push_back(end);
    end_of(action) = end;
    wake(action.stage + (forward ? 1 : -1));
    return true;
  }

  void wake(std::int32_t stage) {
    if (stage < 0 || stage >= schedule_.stages()) {
      return;
    }
    const auto rank = static_cast<std::size_t>(schedule_.owner(stage));
    if (!queued_[rank]) {
      queued_[rank] = true;
      runnable_.push_back(rank);
    }
  }

  const Schedule& schedule_;
  ChunkCosts costs_;
  std::vector<Instant> forward_end_, backward_end_;  ///< by cell
  std::vector<bool> queued_;
  std::vector<std::size_t> runnable_;
  ScheduleTiming timing_;
};

/// `... 0F0 0F1 [0B0] 0F2 ...  waits for 1B0 of rank 1`
std::string blocked_row(const Schedule& schedule, std::size_t rank, std::size_t at) {
  constexpr std::size_t kAround = 3;
  const std::vector<Action>& list = schedule.ranks[rank];
  std::string row = "  rank " + std::to_string(rank) + ":";
  if (at == list.size()) {
    return row + " done";
  }
  const std::size_t first = at > kAround ? at - kAround : 0;
  const std::size_t last = std::min(list.size(), at + kAround + 1);
  row += first > 0 ? " ..." : "";
  for (std::size_t i = first; i < last; ++i) {
    const std::string text = to_string(list[i]);
    row += i == at ? " [" + text + "]" : " " + text;
  }
  row += last < list.size() ? " ..." : "";
  if (const std::optional<Action> input = dependency(schedule, list[at])) {
    row += "   waits for " + to_string(*input) + " of rank " +
           std::to_string(schedule.owner(input->stage));
  }
  return row;
}

std::string blocked_grid(const Schedule& schedule, const ListRun& run) {
  std::size_t done = 0;
  std::size_t total = 0;
  std::string rows;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    done += run.done(rank);
    total += schedule.ranks[rank].size();
    rows += "\n" + blocked_row(schedule, rank, run.done(rank));
  }
  return "deadlock after " + std::to_string(done) + " of " + std::to_string(total) +
         " actions; [ ] marks what cannot start:" + rows;
}

/// Whether the latest thinkable end, all actions and messages one after another, fits in Duration.
bool fits(const Schedule& schedule, const ChunkCosts& costs) {
  Int128 actions = 0;
  for (const std::vector<Action>& list : schedule.ranks) {
    actions += static_cast<Int128>(list.size());
  }
  const Int128 longest =
      Int128{std::max(costs.forward, costs.backward).count()} + Int128{costs.p2p.count()};
  return actions * longest <= Int128{Duration::max().count()};
}

void add_bubbles(const Schedule& schedule, const ChunkCosts& costs, ScheduleTiming& timing) {
  for (const std::vector<Instant>& ends : timing.end) {
    if (!ends.empty()) {
      timing.makespan = std::max(timing.makespan, ends.back().time_since_epoch());
    }
  }
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    Duration busy{};
    for (const Action& action : schedule.ranks[rank]) {
      busy += action.kind == ActionKind::kForward ? costs.forward : costs.backward;
    }
    const bool empty = timing.end[rank].empty();
    const Duration span = empty ? Duration{} : timing.end[rank].back() - timing.start[rank].front();
    timing.busy.push_back(busy);
    timing.bubble.push_back(timing.makespan - busy);
    timing.span_bubble.push_back(span - busy);
  }
}

}  // namespace

std::optional<std::string> find_deadlock(const Schedule& schedule) {
  ListRun run(schedule, ChunkCosts{});
  run.run();
  if (run.complete()) {
    return std::nullopt;
  }
  return blocked_grid(schedule, run);
}

Expected<ScheduleTiming> time_schedule(const Schedule& schedule, const ChunkCosts& costs) {
  std::vector<Diagnostic> faults;
  for (std::string& fault : list_faults(schedule)) {
    faults.push_back({"/schedule", std::move(fault), ""});
  }
  if (std::min({costs.forward, costs.backward, costs.p2p}) < Duration{}) {
    faults.push_back({"/schedule", "a cost is negative", ""});
  } else if (!fits(schedule, costs)) {
    faults.push_back({"/schedule",
                      "the costs are too large: the sum over all actions overflows",
                      "costs of fewer digits, or fewer actions"});
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  ListRun run(schedule, costs);
  run.run();
  if (!run.complete()) {
    return refuse({"/schedule", blocked_grid(schedule, run), "reorder the marked actions"});
  }
  ScheduleTiming timing = run.take();
  add_bubbles(schedule, costs, timing);
  return timing;
}

}  // namespace foretrain
