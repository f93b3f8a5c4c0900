#include "sim/cost/collective/algorithms.h"

namespace foretrain {

/// The bytes a rank sends are those of the flat ring: (k-1)/k S + (N-1)/N S/k = (n-1)/n S.
CollectiveCost hierarchical_cost(CollectiveKind kind, Bytes bytes, const GroupWire& wire) {
  CollectiveCost cost;
  const std::int64_t rounds = rounds_of(kind);
  cost.inside = share_time(bytes, rounds * (wire.k - 1), wire.k, wire.inside);
  cost.across = share_time(bytes, rounds * (wire.nodes - 1), wire.nodes * wire.k, wire.across);
  cost.latency = rounds * ((wire.k - 1) * wire.inside_hop + (wire.nodes - 1) * wire.across_hop);
  cost.sent_bytes = share_bytes(bytes, rounds * (wire.n - 1), wire.n);
  overlap_phases(cost, wire.phase_overlap);
  return cost;
}

}  // namespace foretrain
