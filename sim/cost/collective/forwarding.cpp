#include "foretrain/collective.h"
#include "sim/base/check.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

Duration time_at(double bytes, Bandwidth line, double efficiency) {
  const double rate = static_cast<double>(line.bytes_per_second) * efficiency;
  return Duration{static_cast<std::int64_t>(std::ceil(bytes / rate * 1e12))};
}

}  // namespace

CollectiveCost forwarding_all_to_all(Bytes bytes,
                                     std::int64_t copies,
                                     double nodes_per_token,
                                     const GroupShape& group,
                                     const LinkModel& links) {
  FORETRAIN_CHECK(group.nodes > 1 && copies >= 1, "a group that spans nodes");
  const auto nodes = static_cast<double>(group.nodes);
  const auto per_node = static_cast<double>(group.ranks_per_node);
  const double once = static_cast<double>(bytes.value) / static_cast<double>(copies);
  const double far = once * nodes_per_token * (nodes - 1.0) / nodes;
  // Every copy ends at one GPU of its node; all but the one it arrives at hear it over NVLink.
  const double near = static_cast<double>(bytes.value) * (per_node - 1.0) / per_node;
  const Bandwidth across =
      group.across_all_pairs.bytes_per_second > 0 ? group.across_all_pairs : group.across;
  const double efficiency =
      links.all_pairs_efficiency > 0 ? links.all_pairs_efficiency : links.across_efficiency;
  CollectiveCost cost;
  cost.algorithm = "forwarding";
  cost.protocol = "bulk";
  cost.across = time_at(far, across, efficiency);
  if (group.ranks_per_node > 1) {
    cost.inside = time_at(near, group.inside, links.inside_efficiency);
  }
  cost.across_limits = cost.across > cost.inside;
  // The two legs run side by side: only the longer counts.
  (cost.across_limits ? cost.inside : cost.across) = Duration{};
  cost.sent_bytes = static_cast<std::int64_t>(std::ceil(far + near));
  // One-sided messages between pairs: no ring to set up.
  const bool quick = links.low_latency_inside > 0;
  cost.latency = (quick ? links.low_latency_fixed : links.fixed) + links.inside_hop +
                 (quick ? std::min(links.low_latency_hop, links.across_hop) : links.across_hop);
  if (links.topology_latency) {
    cost.latency += group.across_latency + group.inside_latency;
  }
  if (links.free) {
    cost.inside = cost.across = cost.latency = Duration{};
  }
  return cost;
}

}  // namespace foretrain
