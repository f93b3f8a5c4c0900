#include "sim/schedule/orders.h"

#include <algorithm>

namespace foretrain {

std::vector<Action> in_order(std::int32_t stage, ActionKind kind, std::int32_t micro_batches) {
  std::vector<Action> passes;
  passes.reserve(static_cast<std::size_t>(micro_batches));
  for (std::int32_t k = 0; k < micro_batches; ++k) {
    passes.push_back({stage, kind, k});
  }
  return passes;
}

std::vector<Action> in_groups(const ScheduleSize& size,
                              std::int32_t rank,
                              ActionKind kind,
                              std::int32_t group) {
  std::vector<Action> passes;
  passes.reserve(static_cast<std::size_t>(size.micro_batches) * static_cast<std::size_t>(size.vpp));
  std::int32_t count = 0;
  for (std::int32_t first = 0; first < size.micro_batches; first += count) {
    count = std::min(group, size.micro_batches - first);
    for (std::int32_t turn = 0; turn < size.vpp; ++turn) {
      const std::int32_t chunk = kind == ActionKind::kForward ? turn : size.vpp - 1 - turn;
      for (std::int32_t k = first; k < first + count; ++k) {
        passes.push_back({chunk * size.pp + rank, kind, k});
      }
    }
  }
  return passes;
}

std::vector<Action> in_turn(const std::vector<Action>& forwards,
                            const std::vector<Action>& backwards,
                            std::int64_t ahead,
                            Pairs pairs) {
  const std::size_t warm_up = std::min(forwards.size(), static_cast<std::size_t>(ahead));
  std::vector<Action> list;
  list.reserve(2 * forwards.size());
  for (std::size_t i = 0; i < forwards.size() + warm_up; ++i) {
    if (i < forwards.size()) {
      list.push_back(forwards[i]);
      list.back().overlapped = pairs == Pairs::kOverlapped && i >= warm_up;
    }
    if (i >= warm_up) {
      list.push_back(backwards[i - warm_up]);
    }
  }
  return list;
}

std::vector<Action> split_in_turn(const std::vector<Action>& forwards,
                                  const std::vector<Action>& input_gradients,
                                  std::int64_t ahead,
                                  std::int64_t lag) {
  const auto waits = static_cast<std::size_t>(lag);
  std::vector<Action> list;
  list.reserve(3 * forwards.size());
  std::size_t backward = 0;
  const auto add_weight_gradient = [&](std::size_t of) {
    list.push_back(input_gradients[of]);
    list.back().kind = ActionKind::kWeightGradient;
  };
  for (const Action& action : in_turn(forwards, input_gradients, ahead)) {
    list.push_back(action);
    if (action.kind == ActionKind::kInputGradient && backward++ >= waits) {
      add_weight_gradient(backward - 1 - waits);
    }
  }
  for (std::size_t left = backward - std::min(backward, waits); left < backward; ++left) {
    add_weight_gradient(left);
  }
  return list;
}

}  // namespace foretrain
