#include "sim/schedule/orders.h"
#include "sim/schedule/slot_plan.h"

#include <array>
#include <queue>

// Qi et al., 2024, "Pipeline Parallelism with Controllable Memory": every micro-batch takes the
// same slots of each rank, one period after the micro-batch before.
namespace foretrain {
namespace {

/// The slot of each pass of micro-batch 0 on a rank, in the order of VPass.
using Offsets = std::array<std::int32_t, kWeights>;
using OffsetsOfRank = Offsets (*)(std::int32_t pp, std::int32_t rank);

Offsets half_offsets(std::int32_t p, std::int32_t i) {
  const std::int32_t gap = p % 2 == 0 ? 3 : 0;
  return {2 * i, 3 * p - 2 - i, 3 * p + gap + 2 * i - 1, 6 * p + gap - i - 2};
}

Offsets min_offsets(std::int32_t p, std::int32_t i) {
  const std::int32_t gap = p % 3 == 0 ? 2 : 0;
  return {i, 2 * p - 1 - i, 2 * p + gap + i, 4 * p + gap - 1 - i};
}

/// Two of the six slots of a period stay free for weight gradients.
SlotPlan repeated(const ScheduleSize& size, OffsetsOfRank offsets) {
  constexpr std::int32_t kPeriod = 6;
  SlotPlan plan(size.pp);
  for (std::int32_t rank = 0; rank < size.pp; ++rank) {
    const Offsets first = offsets(size.pp, rank);
    for (std::int32_t k = 0; k < size.micro_batches; ++k) {
      for (const VPass pass : {kForwardDown, kForwardUp, kGradientDown, kGradientUp}) {
        plan.put(rank, first[pass] + kPeriod * k, {pass, k});
      }
    }
  }
  return plan;
}

/// The pattern with its ends drawn together under the memory it has in its middle.
SlotPlan drawn_together(const ScheduleSize& size, OffsetsOfRank offsets) {
  SlotPlan plan = repeated(size, offsets);
  fill_weights(plan);
  const std::int32_t most_held = peak_held(plan);
  plan = compacted(squeezed(plan, most_held, WeightSlots::kAsPut));
  plan = squeezed(plan, most_held, WeightSlots::kIdleOnes);
  fill_weights(plan);
  return plan;
}

std::vector<Action> list_of(const SlotPlan& plan, std::int32_t rank) {
  const std::int32_t down = rank;
  const std::int32_t up = 2 * plan.pp() - 1 - rank;
  std::vector<Action> list;
  std::queue<Action> owed;
  const std::int32_t length = plan.length();
  for (std::int32_t slot = 0; slot < length; ++slot) {
    const Slot content = plan.at(rank, slot);
    switch (content.pass) {
      case kForwardDown:
        list.push_back({down, ActionKind::kForward, content.k});
        break;
      case kForwardUp:
        list.push_back({up, ActionKind::kForward, content.k});
        break;
      case kGradientDown:  // gradients go down from the loss, which lies where the V ends
        list.push_back({up, ActionKind::kInputGradient, content.k});
        owed.push({up, ActionKind::kWeightGradient, content.k});
        break;
      case kGradientUp:
        list.push_back({down, ActionKind::kInputGradient, content.k});
        owed.push({down, ActionKind::kWeightGradient, content.k});
        break;
      case kWeights:
        list.push_back(owed.front());
        owed.pop();
        break;
      case kIdle:
        break;
    }
  }
  return list;
}

ActionLists pattern_lists(const ScheduleSize& size, OffsetsOfRank offsets) {
  const SlotPlan plan = drawn_together(size, offsets);
  return each_rank(size, [&](std::int32_t rank) { return list_of(plan, rank); });
}

}  // namespace

ActionLists v_half_lists(const ScheduleSize& size) {
  return pattern_lists(size, &half_offsets);
}

ActionLists v_min_lists(const ScheduleSize& size) {
  return pattern_lists(size, &min_offsets);
}

}  // namespace foretrain
