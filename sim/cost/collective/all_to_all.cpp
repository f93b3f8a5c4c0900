#include "sim/cost/collective/algorithms.h"

namespace foretrain {
namespace {

/// What a fabric without a spine sends over the sender's NVLink before its NIC: added, since the
/// forwarding GPU's link is busy with its own parts too (Wang et al. 2023, arXiv 2307.12169).
Duration forwarded_time(Bytes bytes, std::int64_t far, const GroupWire& wire) {
  constexpr double kParts = 1024.0;
  const auto parts = static_cast<std::int64_t>(wire.forwarded_share * kParts);
  return share_time(bytes, far * parts, wire.n * static_cast<std::int64_t>(kParts), wire.inside);
}

}  // namespace

/// 1/n of the buffer to each other rank; NVLink and NIC work side by side.
CollectiveCost pairwise_cost(CollectiveKind /*kind*/, Bytes bytes, const GroupWire& wire) {
  CollectiveCost cost;
  const std::int64_t near = wire.k - 1;
  // With uneven nodes the worst rank may be alone in its node.
  const std::int64_t far = wire.n - wire.lanes;
  cost.inside = share_time(bytes, near, wire.n, wire.inside);
  cost.across = share_time(bytes, far, wire.n, wire.across_all_pairs);
  overlap_phases(cost, 1.0);
  if (wire.forwarded_share > 0) {
    cost.inside += forwarded_time(bytes, far, wire);
  }
  cost.latency = near * wire.inside_hop + (wire.nodes - 1) * wire.across_hop;
  cost.sent_bytes = share_bytes(bytes, wire.n - 1, wire.n);
  return cost;
}

/// First over NVLink what goes to the same place in any node, (k-1)/k of the buffer, then N - 1
/// large messages over the NIC instead of n - k small ones.
CollectiveCost gathered_pairwise_cost(CollectiveKind /*kind*/, Bytes bytes, const GroupWire& wire) {
  CollectiveCost cost;
  cost.inside = share_time(bytes, wire.k - 1, wire.k, wire.inside);
  cost.across = share_time(bytes, wire.nodes - 1, wire.nodes, wire.across);
  overlap_phases(cost, wire.phase_overlap);
  cost.latency = (wire.k - 1) * wire.inside_hop + (wire.nodes - 1) * wire.across_hop;
  cost.sent_bytes = share_bytes(bytes, wire.n - 1, wire.n);
  return cost;
}

}  // namespace foretrain
