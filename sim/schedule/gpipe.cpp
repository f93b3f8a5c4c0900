#include "sim/schedule/generators.h"

namespace foretrain {

// All forwards, then all backwards, both in micro-batch order (PyTorch's ScheduleGPipe; the paper
// draws the backwards last to first, which takes the same time).
ActionLists gpipe_lists(const ScheduleSize& size) {
  ActionLists lists(static_cast<std::size_t>(size.pp));
  for (std::int32_t rank = 0; rank < size.pp; ++rank) {
    std::vector<Action>& list = lists[static_cast<std::size_t>(rank)];
    list.reserve(2 * static_cast<std::size_t>(size.micro_batches));
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      for (std::int32_t k = 0; k < size.micro_batches; ++k) {
        list.push_back({rank, kind, k});
      }
    }
  }
  return lists;
}

}  // namespace foretrain
