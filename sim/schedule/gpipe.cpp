#include "sim/schedule/orders.h"

namespace foretrain {

// All forwards, then all backwards, both in micro-batch order (PyTorch's ScheduleGPipe; the paper
// draws the backwards last to first, which takes the same time).
ActionLists gpipe_lists(const ScheduleSize& size) {
  const std::int32_t m = size.micro_batches;
  return each_rank(size, [&](std::int32_t rank) {
    return in_turn(
        in_order(rank, ActionKind::kForward, m), in_order(rank, ActionKind::kBackward, m), m);
  });
}

// All forwards of a chunk before those of the next; the backwards in exactly the opposite order, as
// PyTorch's ScheduleLoopedBFS.
ActionLists looped_bfs_lists(const ScheduleSize& size) {
  return each_rank(size, [&](std::int32_t rank) {
    const std::vector<Action> forwards =
        in_groups(size, rank, ActionKind::kForward, size.micro_batches);
    std::vector<Action> backwards(forwards.rbegin(), forwards.rend());
    for (Action& action : backwards) {
      action.kind = ActionKind::kBackward;
    }
    return in_turn(forwards, backwards, static_cast<std::int64_t>(forwards.size()));
  });
}

}  // namespace foretrain
