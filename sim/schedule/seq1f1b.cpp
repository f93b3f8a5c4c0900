#include "sim/schedule/orders.h"

#include <limits>

namespace foretrain {
namespace {

std::vector<Action> in_slices(const ScheduleSize& size, std::int32_t stage, ActionKind kind) {
  std::vector<Action> passes;
  passes.reserve(static_cast<std::size_t>(size.micro_batches) *
                 static_cast<std::size_t>(size.slices));
  for (std::int32_t k = 0; k < size.micro_batches; ++k) {
    for (std::int32_t turn = 0; turn < size.slices; ++turn) {
      const std::int32_t slice = kind == ActionKind::kForward ? turn : size.slices - 1 - turn;
      Action pass{stage, kind, k};
      pass.slice = static_cast<std::int16_t>(size.slices > 1 ? slice : -1);
      passes.push_back(pass);
    }
  }
  return passes;
}

}  // namespace

std::optional<Diagnostic> seq1f1b_illegal(const ScheduleSize& size) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int16_t>::max();
  if (size.slices <= kMost) {
    return std::nullopt;
  }
  return Diagnostic{"/schedule",
                    "seq1f1b cuts a micro-batch into at most " + std::to_string(kMost) +
                        " slices, slices is " + std::to_string(size.slices),
                    "lower slices"};
}

// Sun et al., 2024: 1F1B over slices. Attention looks back, so the backwards take the slices of a
// micro-batch last to first; the last rank must have all k of the first before it can begin.
ActionLists seq1f1b_lists(const ScheduleSize& size) {
  return each_rank(size, [&](std::int32_t rank) {
    return in_turn(in_slices(size, rank, ActionKind::kForward),
                   in_slices(size, rank, ActionKind::kBackward),
                   std::int64_t{size.pp} - 2 - rank + size.slices);
  });
}

}  // namespace foretrain
