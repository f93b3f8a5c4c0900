#include "sim/schedule/orders.h"

// Names differ between sources: here, as in PyTorch, I is the input half and B the whole backward;
// the zero-bubble papers call the input half B and the whole one BW.
namespace foretrain {
namespace {

std::int64_t hops_to_last(const ScheduleSize& size, std::int32_t rank) {
  return std::int64_t{size.pp} - 1 - rank;
}

/// One chunk a rank; forwards ahead and lag of the weight gradients grow with `window`.
ActionLists one_chunk(const ScheduleSize& size, std::int64_t window) {
  const std::int32_t m = size.micro_batches;
  return each_rank(size, [&](std::int32_t rank) {
    return split_in_turn(in_order(rank, ActionKind::kForward, m),
                         in_order(rank, ActionKind::kInputGradient, m),
                         window * hops_to_last(size, rank),
                         window * rank);
  });
}

}  // namespace

// Qi et al., 2023: the window of 1F1B. The weight gradients lag r backwards behind, so that every
// rank holds p micro-batches and the drain is filled with them.
ActionLists zb_h1_lists(const ScheduleSize& size) {
  return one_chunk(size, 1);
}

// Twice the window: 2 (p-r) - 1 forwards before the first backward, 2p - 1 in flight on every rank.
ActionLists zb_h2_lists(const ScheduleSize& size) {
  return one_chunk(size, 2);
}

// PyTorch's ScheduleInterleavedZeroBubble, its "ZB1P": the order of interleaved, but one forward
// ahead for each hop, not two.
ActionLists zb_interleaved_lists(const ScheduleSize& size) {
  const std::int32_t group = pytorch_group(size);
  return each_rank(size, [&](std::int32_t rank) {
    return split_in_turn(in_groups(size, rank, ActionKind::kForward, group),
                         in_groups(size, rank, ActionKind::kInputGradient, group),
                         (std::int64_t{size.vpp} - 1) * group + hops_to_last(size, rank),
                         rank);
  });
}

}  // namespace foretrain
