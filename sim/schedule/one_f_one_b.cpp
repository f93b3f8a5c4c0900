#include "sim/schedule/generators.h"

#include <algorithm>

namespace foretrain {

// PipeDream-flush: rank r runs min(m, p-1-r) forwards ahead, then one forward and one backward in
// turn, then the backwards left over. m < p is legal: the warm-up is capped.
ActionLists one_f_one_b_lists(const ScheduleSize& size) {
  ActionLists lists(static_cast<std::size_t>(size.pp));
  for (std::int32_t rank = 0; rank < size.pp; ++rank) {
    std::vector<Action>& list = lists[static_cast<std::size_t>(rank)];
    list.reserve(2 * static_cast<std::size_t>(size.micro_batches));
    const std::int32_t warm_up = std::min(size.micro_batches, size.pp - 1 - rank);
    for (std::int32_t k = 0; k < size.micro_batches + warm_up; ++k) {
      if (k < size.micro_batches) {
        list.push_back({rank, ActionKind::kForward, k});
      }
      if (k >= warm_up) {
        list.push_back({rank, ActionKind::kBackward, k - warm_up});
      }
    }
  }
  return lists;
}

}  // namespace foretrain
