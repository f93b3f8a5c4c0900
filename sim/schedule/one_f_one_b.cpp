#include "sim/schedule/orders.h"

namespace foretrain {
namespace {

/// One forward and one backward in turn; `ahead(hops)` forwards come first on a rank with that many
/// ranks behind it. m < p is legal: the warm-up is capped.
template <typename Ahead>
ActionLists turns(const ScheduleSize& size, Ahead ahead, Pairs pairs) {
  const std::int32_t m = size.micro_batches;
  return each_rank(size, [&](std::int32_t rank) {
    return in_turn(in_order(rank, ActionKind::kForward, m),
                   in_order(rank, ActionKind::kBackward, m),
                   ahead(std::int64_t{size.pp} - 1 - rank),
                   pairs);
  });
}

}  // namespace

// PipeDream-flush: a forward ahead for each hop to the last rank.
ActionLists one_f_one_b_lists(const ScheduleSize& size) {
  return turns(
      size, [](std::int64_t hops) { return hops; }, Pairs::kApart);
}

// Twice the window, so that the latency of a round trip is hidden.
ActionLists eager_one_f_one_b_lists(const ScheduleSize& size) {
  return turns(
      size, [](std::int64_t hops) { return 2 * hops; }, Pairs::kApart);
}

// One more, so that a unit's forward and backward belong to different micro-batches on the last
// rank too.
ActionLists overlapped_one_f_one_b_lists(const ScheduleSize& size) {
  return turns(
      size, [](std::int64_t hops) { return 2 * hops + 1; }, Pairs::kOverlapped);
}

}  // namespace foretrain
