#include "sim/base/check.h"
#include "sim/cluster/shared_resources.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

/// How groups sit on the machine and what they leave each other of it (MODEL 4.2).
namespace foretrain {
namespace {

struct GroupLoads {
  std::vector<NodeMembers> nodes;
  std::vector<ResourceLoad> lanes;  ///< of a byte on each lane
  std::vector<ResourceLoad> pairs;  ///< of a byte that each rank sends to other nodes
};

/// The rate at which everything that loads a group's resources can go, and the narrowest of them.
struct Share {
  double rate = std::numeric_limits<double>::infinity();
  std::int32_t narrowest = -1;
};

Share share_of(const std::vector<ResourceLoad>& own,
               const std::vector<double>& total,
               const SharedResources& resources) {
  Share share;
  for (const ResourceLoad& load : own) {
    const double rate =
        resources.capacity(load.resource) / total[static_cast<std::size_t>(load.resource)];
    if (rate < share.rate * (1.0 - 1e-12)) {
      share = {rate, load.resource};
    }
  }
  return share;
}

Bandwidth rounded(double rate) {
  return {std::max<std::int64_t>(std::llround(rate), 1)};
}

/// Members, and what is the same whoever else communicates.
GroupShape alone(const ClusterLayout& layout, const std::vector<NodeMembers>& nodes) {
  GroupShape shape;
  shape.size = 0;
  shape.nodes = static_cast<std::int64_t>(nodes.size());
  const NodeMembers* fullest = &nodes.front();
  const NodeMembers* emptiest = fullest;
  for (const NodeMembers& node : nodes) {
    shape.size += static_cast<std::int64_t>(node.ranks.size());
    fullest = node.ranks.size() > fullest->ranks.size() ? &node : fullest;
    emptiest = node.ranks.size() < emptiest->ranks.size() ? &node : emptiest;
  }
  shape.ranks_per_node = static_cast<std::int64_t>(fullest->ranks.size());
  shape.fewest_per_node = static_cast<std::int64_t>(emptiest->ranks.size());
  shape.even = shape.ranks_per_node == shape.fewest_per_node;
  shape.inside = layout.inside_bandwidth();
  shape.inside_latency = layout.inside_latency();
  if (shape.ranks_per_node > 1) {
    shape.slowest_link_inside =
        layout.gpu_name(fullest->ranks.front()) + ">" + layout.hub_name(fullest->node);
  }
  if (layout.spec.fabric != FabricKind::kNone) {
    shape.across = shape.across_all_pairs = layout.nic_share();
  }
  return shape;
}

/// Share of the pairs between nodes whose sender first crosses its NVLink.
double forwarded_share(const ClusterLayout& layout, const std::vector<NodeMembers>& nodes) {
  if (!layout.forwards()) {
    return 0.0;
  }
  std::map<std::int64_t, std::int64_t> on_rail;
  std::int64_t size = 0, in_node = 0, in_node_and_rail = 0;
  for (const NodeMembers& node : nodes) {
    std::map<std::int64_t, std::int64_t> here;
    for (const std::int64_t rank : node.ranks) {
      ++here[layout.nic_of(rank)];
    }
    for (const auto& [nic, members] : here) {
      on_rail[nic] += members;
      in_node_and_rail += members * members;
    }
    const auto members = static_cast<std::int64_t>(node.ranks.size());
    size += members;
    in_node += members * members;
  }
  std::int64_t same_rail = -in_node_and_rail;
  for (const auto& [nic, members] : on_rail) {
    same_rail += members * members;
  }
  const std::int64_t between = size * size - in_node;
  return between > 0 ? 1.0 - static_cast<double>(same_rail) / static_cast<double>(between) : 0.0;
}

/// A group's loads, and in the shape its longest hop between nodes.
GroupLoads loads_of(const ClusterLayout& layout,
                    const std::vector<std::int64_t>& ranks,
                    const SharedResources& resources,
                    GroupShape& shape) {
  GroupLoads loads;
  loads.nodes = members_by_node(layout, ranks);
  shape = alone(layout, loads.nodes);
  if (shape.nodes == 1) {
    return loads;
  }
  for (const RankFlow& flow : ring_traffic(loads.nodes).lanes) {
    shape.across_latency =
        std::max(shape.across_latency, resources.lane(flow.from, flow.to, loads.lanes));
  }
  resources.all_pairs(loads.nodes, loads.pairs);
  const double partners = static_cast<double>(shape.size - shape.fewest_per_node);
  for (ResourceLoad& load : loads.pairs) {
    load.amount /= partners;
  }
  shape.forwarded_share = forwarded_share(layout, loads.nodes);
  return loads;
}

void add_to(std::vector<double>& total, const std::vector<ResourceLoad>& loads) {
  for (const ResourceLoad& load : loads) {
    total[static_cast<std::size_t>(load.resource)] += load.amount;
  }
}

/// Whether routes spread as evenly as the domains' arithmetic takes for granted.
bool spreads_evenly(const ClusterLayout& layout, Routing routing) {
  return routing == Routing::kDestination && layout.spec.failed_links.empty() &&
         layout.spec.fabric != FabricKind::kDiscovered;
}

}  // namespace

std::vector<GroupShape> Topology::group_shapes(
    const std::vector<std::vector<std::int64_t>>& groups) const {
  const ClusterLayout& layout = graph_->layout;
  std::unique_ptr<SharedResources> resources;
  if (spreads_evenly(layout, graph_->routing)) {
    resources = std::make_unique<DomainResources>(layout);
  } else {
    resources = std::make_unique<LinkResources>(*this, graph_->router(), graph_->routing);
  }
  std::vector<GroupShape> shapes(groups.size());
  std::vector<GroupLoads> loads;
  std::vector<double> lanes(static_cast<std::size_t>(resources->count()), 0.0);
  std::vector<double> pairs = lanes;
  for (std::size_t at = 0; at < groups.size(); ++at) {
    FORETRAIN_CHECK(!groups[at].empty(), "a group has members");
    for (const std::int64_t rank : groups[at]) {
      FORETRAIN_CHECK(rank >= 0 && rank < layout.gpus, "rank %lld", static_cast<long long>(rank));
    }
    loads.push_back(loads_of(layout, groups[at], *resources, shapes[at]));
    add_to(lanes, loads.back().lanes);
    add_to(pairs, loads.back().pairs);
  }
  for (std::size_t at = 0; at < groups.size(); ++at) {
    if (loads[at].lanes.empty()) {
      continue;
    }
    const Share lane = share_of(loads[at].lanes, lanes, *resources);
    shapes[at].across = rounded(lane.rate);
    shapes[at].slowest_link_across = resources->link_id(lane.narrowest);
    const Share pair = share_of(loads[at].pairs, pairs, *resources);
    if (pair.narrowest >= 0) {
      shapes[at].across_all_pairs = rounded(pair.rate);
      shapes[at].slowest_link_all_pairs = resources->link_id(pair.narrowest);
    }
  }
  if (!graph_->slow.empty()) {
    std::vector<std::vector<NodeMembers>> members;
    for (std::size_t at = 0; at < groups.size(); ++at) {
      members.push_back(std::move(loads[at].nodes));
      slow_down_inside(*this, members.back(), graph_->slow, shapes[at]);
    }
    if (spreads_evenly(layout, graph_->routing)) {
      const LinkResources links(*this, graph_->router(), graph_->routing);
      slow_down_across(*this, links, members, graph_->slow, shapes);
    }
  }
  return shapes;
}

GroupShape Topology::group_shape(std::span<const std::int64_t> ranks) const {
  return group_shapes({{ranks.begin(), ranks.end()}}).front();
}

}  // namespace foretrain
