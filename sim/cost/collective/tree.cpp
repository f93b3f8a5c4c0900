#include "sim/cost/collective/algorithms.h"

#include <algorithm>

namespace foretrain {
namespace {

/// What a node sends over its lanes, in payloads: of two nodes each sends its sum once and the
/// other's result comes back the same way; of more, in one of the two trees it is inside (1.5 of
/// half a payload each up and down), in the other a leaf (0.5), which makes 2 (NCCL 2.4).
std::int64_t payloads_sent(const GroupWire& wire) {
  return wire.nodes == 2 || wire.network_reduction ? 1 : 2;
}

CollectiveCost broadcast_tree(Bytes bytes, const GroupWire& wire) {
  CollectiveCost cost = chain_cost(CollectiveKind::kBroadcast, bytes, wire);
  cost.latency -= (wire.nodes - 1 - tree_depth(wire.nodes)) * wire.across_hop;
  return cost;
}

}  // namespace

Duration tree_exit_time(Bytes bytes, const GroupWire& wire) {
  return share_time(bytes, payloads_sent(wire), wire.lanes, wire.across);
}

/// log2 N hops up and down instead of N - 1 around, for the whole payload instead of (n-1)/n of it.
CollectiveCost tree_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire) {
  if (kind == CollectiveKind::kBroadcast) {
    return broadcast_tree(bytes, wire);
  }
  CollectiveCost cost;
  cost.inside = share_time(bytes, 2 * (wire.k - 1), wire.k, wire.inside);
  cost.across = tree_exit_time(bytes, wire);
  cost.latency = 2 * ((wire.k - 1) * wire.inside_hop + tree_depth(wire.nodes) * wire.across_hop);
  cost.sent_bytes = share_bytes(bytes, 2 * (wire.n - 1), wire.n);
  overlap_phases(cost, wire.phase_overlap);
  return cost;
}

}  // namespace foretrain
