#include "sim/schedule/deadlock.h"

#include "sim/base/format.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr std::size_t kMostRows = 64;
constexpr std::size_t kMostOfCircle = 8;

/// `... 0F0 0F1 [0B0] 0F2 ...   waits for 1B0 of rank 1`
std::string blocked_row(const Schedule& schedule,
                        const ScheduleCosts& costs,
                        const ListOutcome& run,
                        std::size_t rank) {
  constexpr std::size_t kAround = 3;
  const std::size_t at = run.end[rank].size();
  const std::vector<Action>& list = schedule.ranks[rank];
  const Blocked& blocked = run.blocked[rank];
  std::string row = "  rank " + std::to_string(rank) + ":";
  if (blocked.on < 0) {
    return row + " done";
  }
  std::vector<std::size_t> pieces;  // where they begin
  for (std::size_t i = 0; i < list.size(); i += piece_length(list[i], costs)) {
    pieces.push_back(i);
  }
  const auto marked =
      static_cast<std::size_t>(std::lower_bound(pieces.begin(), pieces.end(), at) - pieces.begin());
  const std::size_t first = marked > kAround ? marked - kAround : 0;
  const std::size_t last = std::min(pieces.size(), marked + kAround + 1);
  row += first > 0 ? " ..." : "";
  for (std::size_t i = first; i < last; ++i) {
    const Action* const piece = &list[pieces[i]];
    const std::string text =
        piece_length(*piece, costs) > 1 ? unit_text({piece, 2}) : to_string(*piece);
    row += i == marked ? " [" + text + "]" : " " + text;
  }
  row += last < pieces.size() ? " ..." : "";
  return row + "   " + blocked.what + blocked.and_further;
}

/// `circle: rank 0 sends 0F1 to rank 1, which sends 1B0 to rank 0`
std::string circle(const ListOutcome& run) {
  std::size_t rank = 0;
  while (run.blocked[rank].on < 0) {
    ++rank;
  }
  std::vector<bool> seen(run.blocked.size());
  for (; !seen[rank]; rank = static_cast<std::size_t>(run.blocked[rank].on)) {
    seen[rank] = true;
  }
  const std::size_t first = rank;
  std::string text = "\n  circle: rank " + std::to_string(first);
  std::size_t length = 0;
  do {
    if (++length <= kMostOfCircle) {
      text += (length > 1 ? ", which " : " ") + run.blocked[rank].what;
    }
    rank = static_cast<std::size_t>(run.blocked[rank].on);
  } while (rank != first);
  if (length > kMostOfCircle) {
    text += ", and so on over " + std::to_string(length) + " ranks";
  }
  return text;
}

}  // namespace

std::string blocked_grid(const Schedule& schedule,
                         const ScheduleCosts& costs,
                         const ListOutcome& run) {
  std::size_t done = 0;
  std::size_t total = 0;
  std::string rows;
  const std::size_t ranks = schedule.ranks.size();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    done += run.end[rank].size();
    total += schedule.ranks[rank].size();
    if (rank < kMostRows) {
      rows += "\n" + blocked_row(schedule, costs, run, rank);
    }
  }
  if (ranks > kMostRows) {
    const std::size_t more = ranks - kMostRows;
    rows += "\n  and " + std::to_string(more) + " more " +
            plural("rank", static_cast<std::int64_t>(more));
  }
  return "deadlock after " + std::to_string(done) + " of " + std::to_string(total) +
         " actions; [ ] marks what cannot start:" + rows + circle(run);
}

std::optional<std::string> find_deadlock(const Schedule& schedule, const ScheduleCosts& costs) {
  ScheduleCosts timeless = costs;  // who waits for whom does not depend on times
  timeless.stages = {ChunkCosts{Duration{}, Duration{}, Duration{}, Duration{}}};
  timeless.p2p = Duration{};
  const ListOutcome run = run_lists(schedule, timeless);
  if (run.complete(schedule)) {
    return std::nullopt;
  }
  return blocked_grid(schedule, costs, run);
}

}  // namespace foretrain
