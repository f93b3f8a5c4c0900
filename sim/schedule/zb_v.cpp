#include "sim/schedule/two_chunks.h"

#include <algorithm>

namespace foretrain {
namespace {

using Pass = TwoChunkList::Pass;

// Chunk a is the rank's stage on the way down the V, chunk b the one on the way up.
constexpr Pass kFa{ActionKind::kForward, 0}, kFb{ActionKind::kForward, 1};
constexpr Pass kIa{ActionKind::kInputGradient, 0}, kIb{ActionKind::kInputGradient, 1};
constexpr Pass kWa{ActionKind::kWeightGradient, 0}, kWb{ActionKind::kWeightGradient, 1};

}  // namespace

// Qi et al., 2024, as the fixed list of PyTorch's ScheduleZBVZeroBubble. It is built for at least
// 2p-1 micro-batches; what belongs to those beyond m is left out.
ActionLists zb_v_lists(const ScheduleSize& size) {
  const std::int32_t p = size.pp;
  const std::int32_t m = std::max(size.micro_batches, 2 * p - 1);
  return each_rank(size, [&](std::int32_t r) {
    TwoChunkList list({r, 0, size.micro_batches}, {2 * p - 1 - r, 0, size.micro_batches});
    list.repeat(2 * (p - r) - 1, {kFa});
    list.repeat(r, {kFb, kFa});
    list.repeat(p - r, {kFb, kIb, kWb});
    while (list.done(kFb) < m) {
      list.repeat(list.done(kFa) < m ? 1 : 0, {kFa});
      list.repeat(1, {kIa, kWa, kFb, kIb, kWb});
    }
    list.repeat(r, {kIa, kIb});
    list.repeat(p - r, {kIa, kWa});
    list.repeat(m - list.done(kWb), {kWb});
    list.repeat(m - list.done(kWa), {kWa});
    return list.list();
  });
}

}  // namespace foretrain
