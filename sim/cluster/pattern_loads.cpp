#include "sim/base/check.h"
#include "sim/cluster/group_traffic.h"
#include "sim/cluster/topology_graph.h"

#include <algorithm>

/// What a group's traffic puts on each link.
namespace foretrain {
namespace {

/// What each member of a node sends to each of another by way of the member of its own place there.
void forward(const NodeMembers& from,
             const NodeMembers& to,
             double part,
             std::vector<RankFlow>& flows) {
  for (std::size_t place = 0; place < from.ranks.size(); ++place) {
    const std::int64_t relay = to.ranks[place % to.ranks.size()];
    flows.push_back({from.ranks[place], relay, part * static_cast<double>(to.ranks.size())});
    for (const std::int64_t rank : to.ranks) {
      if (rank != relay) {
        flows.push_back({relay, rank, part});
      }
    }
  }
}

std::vector<RankFlow> forwarded_flows(const std::vector<NodeMembers>& nodes, double part) {
  std::vector<RankFlow> flows;
  for (const NodeMembers& from : nodes) {
    for (const std::int64_t sender : from.ranks) {
      for (const std::int64_t rank : from.ranks) {
        if (rank != sender) {
          flows.push_back({sender, rank, part});
        }
      }
    }
    for (const NodeMembers& to : nodes) {
      if (&to != &from) {
        forward(from, to, part, flows);
      }
    }
  }
  return flows;
}

std::vector<RankFlow> flows_of(const ClusterLayout& layout,
                               std::span<const std::int64_t> ranks,
                               TrafficPattern pattern) {
  std::vector<RankFlow> flows;
  if (ranks.size() < 2) {
    return flows;
  }
  if (pattern == TrafficPattern::kRing) {
    RingTraffic ring = ring_traffic(members_by_node(layout, ranks));
    flows = std::move(ring.inside);
    flows.insert(flows.end(), ring.lanes.begin(), ring.lanes.end());
    return flows;
  }
  const double part = 1.0 / static_cast<double>(ranks.size() - 1);
  if (pattern == TrafficPattern::kForwarded) {
    return forwarded_flows(members_by_node(layout, ranks), part);
  }
  for (const std::int64_t from : ranks) {
    for (const std::int64_t to : ranks) {
      if (from != to) {
        flows.push_back({from, to, part});
      }
    }
  }
  return flows;
}

}  // namespace

std::vector<LinkUse> Topology::pattern_loads(std::span<const std::int64_t> ranks,
                                             TrafficPattern pattern) const {
  std::vector<LinkUse> hops;
  for (const RankFlow& flow : flows_of(graph_->layout, ranks, pattern)) {
    for (const std::int32_t link : route(flow.from, flow.to)) {
      hops.push_back({link, flow.bytes});
    }
  }
  std::stable_sort(
      hops.begin(), hops.end(), [](const LinkUse& a, const LinkUse& b) { return a.link < b.link; });
  std::vector<LinkUse> loads;
  for (const LinkUse& hop : hops) {
    if (!loads.empty() && loads.back().link == hop.link) {
      loads.back().weight += hop.weight;
    } else {
      loads.push_back(hop);
    }
  }
  return loads;
}

std::optional<std::pair<std::int64_t, std::int64_t>> Topology::unreachable_pair(
    std::span<const std::int64_t> ranks, TrafficPattern pattern) const {
  if (graph_->layout.spec.failed_links.empty() &&
      graph_->layout.spec.fabric != FabricKind::kDiscovered) {
    return std::nullopt;
  }
  const bool few = ranks.size() * ranks.size() <= kMostPairs;
  for (const RankFlow& flow :
       flows_of(graph_->layout, ranks, few ? pattern : TrafficPattern::kRing)) {
    if (!reachable(flow.from, flow.to)) {
      return std::pair(flow.from, flow.to);
    }
  }
  return std::nullopt;
}

}  // namespace foretrain
