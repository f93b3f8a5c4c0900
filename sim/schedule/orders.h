#pragma once

#include "sim/schedule/generators.h"

/// What most lists are made of: an order of the forwards, one of the backwards, and how far the
/// first runs ahead of the second.
namespace foretrain {

/// The lists of all ranks, one after another.
template <typename ListOfRank>
ActionLists each_rank(const ScheduleSize& size, ListOfRank list_of_rank) {
  ActionLists lists;
  lists.reserve(static_cast<std::size_t>(size.pp));
  for (std::int32_t rank = 0; rank < size.pp; ++rank) {
    lists.push_back(list_of_rank(rank));
  }
  return lists;
}

/// Passes of a stage over micro-batches 0, 1, ..., m-1.
std::vector<Action> in_order(std::int32_t stage, ActionKind kind, std::int32_t micro_batches);

/// Passes of a rank over its chunks, stages in a loop: micro-batches in groups (the last may be
/// short), inside a group chunk by chunk. Forwards take chunks 0 to v-1, backwards v-1 to 0.
std::vector<Action> in_groups(const ScheduleSize& size,
                              std::int32_t rank,
                              ActionKind kind,
                              std::int32_t group);

enum class Pairs { kApart, kOverlapped };

/// `ahead` forwards, at most all; then a forward and a backward in turn; then the backwards left.
std::vector<Action> in_turn(const std::vector<Action>& forwards,
                            const std::vector<Action>& backwards,
                            std::int64_t ahead,
                            Pairs pairs = Pairs::kApart);

/// The same with split backwards: each weight gradient stands `lag` input gradients after its own,
/// those left at the end.
std::vector<Action> split_in_turn(const std::vector<Action>& forwards,
                                  const std::vector<Action>& input_gradients,
                                  std::int64_t ahead,
                                  std::int64_t lag);

}  // namespace foretrain
