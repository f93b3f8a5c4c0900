#include "sim/cost/collective/algorithms.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

/// Fixed point for the share of a step that a rank's own pass takes.
constexpr std::int64_t kStepParts = 1024;

}  // namespace

/// Every rank passes on rounds (n - 1) chunks of S / n; a kernel also reads its own chunk first and
/// writes the last one, which a short ring feels more: A100 gives 210, 227, 235 GB/s on 2, 4, 8
/// GPUs (vTrain tables). A node's members form as many rings as they have NICs between them.
CollectiveCost ring_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire) {
  CollectiveCost cost;
  const std::int64_t rounds = rounds_of(kind);
  const std::int64_t steps = rounds * (wire.n - 1);
  const std::int64_t parts =
      steps * kStepParts + std::llround(wire.own_pass * static_cast<double>(kStepParts));
  if (wire.k > 1) {
    cost.inside = share_time(bytes, parts, wire.n * kStepParts, wire.inside);
  }
  if (wire.nodes > 1) {
    cost.across = share_time(bytes, steps, wire.n * wire.lanes, wire.across);
  }
  const std::int64_t far_hops = wire.nodes > 1 ? std::min(wire.nodes, wire.n - 1) : 0;
  cost.latency = rounds * (far_hops * wire.across_hop + (wire.n - 1 - far_hops) * wire.inside_hop);
  cost.sent_bytes = share_bytes(bytes, steps, wire.n);
  overlap_phases(cost, wire.phase_overlap);
  return cost;
}

}  // namespace foretrain
