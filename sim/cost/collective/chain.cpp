#include "sim/cost/collective/algorithms.h"

namespace foretrain {

/// Every link carries the whole buffer once; between nodes the members of a node take a part each.
CollectiveCost chain_cost(CollectiveKind /*kind*/, Bytes bytes, const GroupWire& wire) {
  CollectiveCost cost;
  if (wire.k > 1) {
    cost.inside = share_time(bytes, 1, 1, wire.inside);
  }
  if (wire.nodes > 1) {
    cost.across = share_time(bytes, 1, wire.lanes, wire.across);
  }
  overlap_phases(cost, 1.0);
  cost.latency = (wire.k - 1) * wire.inside_hop + (wire.nodes - 1) * wire.across_hop;
  cost.sent_bytes = bytes.value;
  return cost;
}

CollectiveCost send_cost(CollectiveKind /*kind*/, Bytes bytes, const GroupWire& wire) {
  CollectiveCost cost;
  if (wire.nodes > 1) {
    cost.across = share_time(bytes, 1, 1, wire.across);
    cost.latency = wire.across_hop;
  } else {
    cost.inside = share_time(bytes, 1, 1, wire.inside);
    cost.latency = wire.inside_hop;
  }
  cost.sent_bytes = bytes.value;
  return cost;
}

}  // namespace foretrain
