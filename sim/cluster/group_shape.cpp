#include "sim/base/check.h"
#include "sim/cluster/topology_graph.h"

#include <algorithm>
#include <cmath>

/// How a group sits on the machine, by arithmetic on the layout (MODEL 4.2).
namespace foretrain {
namespace {

struct NodeRun {
  std::int64_t node = 0;
  std::int64_t members = 0;
  std::int64_t first_rank = 0;
};

/// The group's nodes in the order the group first meets them.
std::vector<NodeRun> node_runs(const ClusterLayout& layout, std::span<const std::int64_t> ranks) {
  std::vector<NodeRun> runs;
  for (const std::int64_t rank : ranks) {
    const std::int64_t node = layout.node_of(rank);
    if (!runs.empty() && runs.back().node == node) {
      ++runs.back().members;
    } else {
      runs.push_back({node, 1, rank});
    }
  }
  // A group that comes back to a node has its runs of that node merged.
  std::vector<NodeRun> sorted = runs;
  const auto by_node = [](const NodeRun& a, const NodeRun& b) { return a.node < b.node; };
  std::stable_sort(sorted.begin(), sorted.end(), by_node);
  std::vector<NodeRun> merged;
  for (const NodeRun& run : sorted) {
    if (!merged.empty() && merged.back().node == run.node) {
      merged.back().members += run.members;
    } else {
      merged.push_back(run);
    }
  }
  return merged.size() == runs.size() ? runs : merged;
}

/// Distance in nodes between the nearest neighbours of the node ring: so many groups like this one
/// lie between them and cross every border together.
std::int64_t node_stride(const std::vector<NodeRun>& runs) {
  std::int64_t stride = std::abs(runs[1].node - runs[0].node);
  for (std::size_t at = 2; at < runs.size(); ++at) {
    stride = std::min(stride, std::abs(runs[at].node - runs[at - 1].node));
  }
  return stride;
}

/// Load on a domain's uplinks (a leaf group's, a pod's) when the group and its sisters beside it
/// all send at full NIC rate, as a share of what the domain's NICs could send.
struct DomainLoad {
  double neighbours = 0.0;  ///< every member sends to the next in the ring
  double all_pairs = 0.0;   ///< every member sends to every other
};

template <typename DomainOf>
DomainLoad domain_load(const std::vector<NodeRun>& runs,
                       std::int64_t domain_nodes,
                       DomainOf domain_of) {
  std::vector<std::pair<std::int64_t, std::int64_t>>
      counts;  // (domain, leaving edges), then sorted
  counts.reserve(runs.size());
  for (std::size_t at = 0; at < runs.size(); ++at) {
    const std::int64_t here = domain_of(runs[at].node);
    const std::int64_t next = domain_of(runs[(at + 1) % runs.size()].node);
    counts.emplace_back(here, here == next ? 0 : 1);
  }
  std::sort(counts.begin(), counts.end());
  const double nodes = static_cast<double>(runs.size());
  const double covered = static_cast<double>(node_stride(runs)) / static_cast<double>(domain_nodes);
  DomainLoad worst;
  for (std::size_t begin = 0; begin < counts.size();) {
    std::size_t end = begin;
    std::int64_t leaving = 0;
    for (; end < counts.size() && counts[end].first == counts[begin].first; ++end) {
      leaving += counts[end].second;
    }
    const double inside = static_cast<double>(end - begin);
    worst.neighbours = std::max(worst.neighbours, static_cast<double>(leaving) * covered);
    const double far = (nodes - inside) / (nodes - 1.0);
    worst.all_pairs = std::max(worst.all_pairs, std::min(1.0, inside * covered) * far);
    begin = end;
  }
  worst.neighbours = std::min(1.0, worst.neighbours);
  return worst;
}

/// Fair share of the NICs, less where the fabric above is oversubscribed.
Bandwidth thinned(Bandwidth share, double oversubscription, double load) {
  const double factor = std::max(1.0, oversubscription * load);
  const auto rate = std::llround(static_cast<double>(share.bytes_per_second) / factor);
  return {std::max<std::int64_t>(rate, 1)};
}

/// The group's two bandwidths between nodes and the link that sets the first.
void set_across(const ClusterLayout& layout, const std::vector<NodeRun>& runs, GroupShape& shape) {
  const TopologySpec& spec = layout.spec;
  const DomainLoad leaf =
      domain_load(runs,
                  std::min<std::int64_t>(spec.nodes_per_leaf_group, layout.nodes_per_pod),
                  [&](std::int64_t node) { return layout.group_of(node); });
  const DomainLoad pod = domain_load(
      runs, layout.nodes_per_pod, [&](std::int64_t node) { return layout.pod_of(node); });
  const Bandwidth share = layout.nic_share();
  const double above = spec.oversubscription * spec.pod_oversubscription;
  const Bandwidth by_leaf = thinned(share, spec.oversubscription, leaf.neighbours);
  const Bandwidth by_pod = thinned(share, above, pod.neighbours);
  shape.across = std::min(by_leaf, by_pod);
  shape.across_all_pairs = std::min(thinned(share, spec.oversubscription, leaf.all_pairs),
                                    thinned(share, above, pod.all_pairs));
  const std::int64_t first = runs.front().first_rank;
  const std::int64_t node = runs.front().node;
  const std::int64_t nic = layout.nic_of(first);
  const std::string leaf_name = layout.leaf_name(layout.leaf_of(node, nic));
  const std::string spine = layout.spine_name(layout.pod_of(node), 0);
  if (by_pod < by_leaf) {
    shape.slowest_link_across = spine + ">" + layout.core_name(0);
  } else if (by_leaf < share) {
    shape.slowest_link_across = leaf_name + ">" + spine;
  } else if (share == spec.pcie_bandwidth && share < spec.nic_bandwidth) {
    shape.slowest_link_across = layout.gpu_name(first) + ">" + layout.nic_name(node, nic);
  } else {
    shape.slowest_link_across = layout.nic_name(node, nic) + ">" + leaf_name;
  }
}

/// The longest hop between neighbours on the node ring. With several members in a node each talks
/// to the member beside the same NIC.
Duration longest_hop(const ClusterLayout& layout,
                     const std::vector<NodeRun>& runs,
                     bool same_rail) {
  Duration longest{};
  for (std::size_t at = 0; at < runs.size(); ++at) {
    const NodeRun& next = runs[(at + 1) % runs.size()];
    longest =
        std::max(longest, across_latency(layout, runs[at].first_rank, next.first_rank, same_rail));
  }
  return longest;
}

}  // namespace

GroupShape Topology::group_shape(std::span<const std::int64_t> ranks) const {
  const ClusterLayout& layout = graph_->layout;
  FORETRAIN_CHECK(!ranks.empty(), "a group has members");
  for (const std::int64_t rank : ranks) {
    FORETRAIN_CHECK(rank >= 0 && rank < layout.gpus, "rank %lld", static_cast<long long>(rank));
  }
  const std::vector<NodeRun> runs = node_runs(layout, ranks);
  GroupShape shape;
  shape.size = static_cast<std::int64_t>(ranks.size());
  shape.nodes = static_cast<std::int64_t>(runs.size());
  shape.ranks_per_node = 0;
  const NodeRun* fullest = &runs.front();
  shape.fewest_per_node = runs.front().members;
  for (const NodeRun& run : runs) {
    shape.fewest_per_node = std::min(shape.fewest_per_node, run.members);
    fullest = run.members > fullest->members ? &run : fullest;
    shape.even = shape.even && run.members == runs.front().members;
  }
  shape.ranks_per_node = fullest->members;
  shape.inside = layout.inside_bandwidth();
  shape.inside_latency = layout.inside_latency();
  if (shape.ranks_per_node > 1) {
    shape.slowest_link_inside =
        layout.gpu_name(fullest->first_rank) + ">" + layout.hub_name(fullest->node);
  }
  if (layout.spec.fabric != FabricKind::kNone) {
    shape.across = shape.across_all_pairs = layout.nic_share();
  }
  if (shape.nodes > 1) {
    set_across(layout, runs, shape);
    shape.across_latency = longest_hop(layout, runs, shape.ranks_per_node > 1);
  }
  return shape;
}

std::vector<GroupShape> Topology::group_shapes(
    const std::vector<std::vector<std::int64_t>>& groups) const {
  std::vector<GroupShape> shapes;
  for (const std::vector<std::int64_t>& ranks : groups) {
    shapes.push_back(group_shape(ranks));
  }
  return shapes;
}

}  // namespace foretrain
