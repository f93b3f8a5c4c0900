#include "sim/base/real.h"
#include "sim/cluster/shared_resources.h"

#include <algorithm>
#include <map>

namespace foretrain {
namespace {

std::int64_t size_of(const NodeMembers& node) {
  return static_cast<std::int64_t>(node.ranks.size());
}

/// Adds to a resource what is not nothing.
void add(std::int32_t resource, std::int64_t pairs, std::vector<ResourceLoad>& loads) {
  if (pairs > 0) {
    loads.push_back({resource, real(pairs)});
  }
}

}  // namespace

DomainResources::DomainResources(const ClusterLayout& layout) : layout_(layout) {
  const std::int64_t doors =
      layout.nodes * std::max(layout.spec.nics_per_node, layout.spec.gpus_per_node);
  const std::int64_t counts[kKinds] = {doors,
                                       doors,
                                       layout.leaves(),
                                       layout.leaves(),
                                       layout.pods,
                                       layout.pods,
                                       layout.nodes * layout.spec.gpus_per_node};
  first_.push_back(0);
  for (const std::int64_t of_kind : counts) {
    first_.push_back(first_.back() + static_cast<std::int32_t>(of_kind));
  }
}

DomainResources::Kind DomainResources::kind_of(std::int32_t resource) const {
  int kind = 0;
  while (first_[static_cast<std::size_t>(kind) + 1] <= resource) {
    ++kind;
  }
  return static_cast<Kind>(kind);
}

std::int64_t DomainResources::door(std::int64_t node, std::int64_t nic) const {
  const TopologySpec& spec = layout_.spec;
  const std::int64_t most = std::max(spec.nics_per_node, spec.gpus_per_node);
  if (layout_.behind_pcie()) {
    return node * most;  // every NIC is as near
  }
  const std::int64_t own =
      spec.nics_per_node > spec.gpus_per_node ? nic * spec.gpus_per_node / spec.nics_per_node : nic;
  return node * most + own;
}

double DomainResources::door_capacity(std::int64_t door) const {
  const TopologySpec& spec = layout_.spec;
  const double nic = real(spec.nic_bandwidth.bytes_per_second);
  const double pcie = real(spec.pcie_bandwidth.bytes_per_second);
  if (layout_.behind_pcie()) {
    return std::min(nic, pcie) * spec.nics_per_node;
  }
  if (spec.nics_per_node <= spec.gpus_per_node) {
    return nic;
  }
  const std::int64_t local = door % spec.nics_per_node;
  std::int64_t beside = 0;
  for (std::int64_t at = 0; at < spec.nics_per_node; ++at) {
    beside += is_beside(local, spec.gpus_per_node, at, spec.nics_per_node) ? 1 : 0;
  }
  return nic * real(beside);
}

double DomainResources::capacity(std::int32_t resource) const {
  const TopologySpec& spec = layout_.spec;
  const Kind kind = kind_of(resource);
  const double leaf = real(spec.nic_bandwidth.bytes_per_second) * layout_.uplinks_per_leaf;
  switch (kind) {
    case kOut:
    case kIn:
      return door_capacity(resource - first_[kind]);
    case kLeafUp:
    case kLeafDown:
      return leaf;
    case kPodUp:
    case kPodDown:
      return leaf * real(layout_.groups_per_pod * layout_.leaves_per_group) /
             spec.pod_oversubscription;
    case kPcie:
    case kKinds:
      break;
  }
  return real(spec.pcie_bandwidth.bytes_per_second);
}

std::string DomainResources::door_id(std::int64_t door, bool out) const {
  const TopologySpec& spec = layout_.spec;
  const std::int64_t most = std::max(spec.nics_per_node, spec.gpus_per_node);
  const std::int64_t node = door / most;
  std::int64_t nic = door % most;
  if (!layout_.behind_pcie() && spec.nics_per_node > spec.gpus_per_node) {
    nic = nic * spec.nics_per_node / spec.gpus_per_node;
  }
  const std::string leaf = layout_.leaf_name(layout_.leaf_of(node, nic));
  const std::string name = layout_.nic_name(node, nic);
  return out ? name + ">" + leaf : leaf + ">" + name;
}

std::string DomainResources::link_id(std::int32_t resource) const {
  const Kind kind = kind_of(resource);
  const std::int64_t index = resource - first_[kind];
  const std::int64_t per_pod = layout_.groups_per_pod * layout_.leaves_per_group;
  const auto joined = [](const std::string& low, const std::string& high, bool up) {
    return up ? low + ">" + high : high + ">" + low;
  };
  switch (kind) {
    case kOut:
    case kIn:
      return door_id(index, kind == kOut);
    case kLeafUp:
    case kLeafDown: {
      const std::int64_t plane = layout_.planes > 1 ? index % layout_.leaves_per_group : 0;
      const std::int64_t spine = plane * (layout_.spines_per_pod / layout_.planes);
      return joined(
          layout_.leaf_name(index), layout_.spine_name(index / per_pod, spine), kind == kLeafUp);
    }
    case kPodUp:
    case kPodDown:
      return joined(layout_.spine_name(index, 0), layout_.core_name(0), kind == kPodUp);
    case kPcie:
    case kKinds:
      break;
  }
  const std::int64_t node = layout_.node_of(index);
  return layout_.gpu_name(index) + ">" +
         (layout_.behind_pcie() ? layout_.hub_name(node)
                                : layout_.nic_name(node, layout_.nic_of(index)));
}

Duration DomainResources::lane(std::int64_t from,
                               std::int64_t to,
                               std::vector<ResourceLoad>& loads) const {
  const std::int64_t here = layout_.node_of(from);
  const std::int64_t there = layout_.node_of(to);
  const bool takes_rail = layout_.forwards() || (layout_.behind_pcie() && layout_.has_rails());
  const std::int64_t nic_in = layout_.nic_of(to);
  const std::int64_t nic_out = takes_rail ? nic_in : layout_.nic_of(from);
  loads.push_back({at(kOut, door(here, nic_out)), 1.0});
  const std::int64_t leaf_out = layout_.leaf_of(here, nic_out);
  const std::int64_t leaf_in = layout_.leaf_of(there, nic_in);
  if (leaf_out != leaf_in) {
    loads.push_back({at(kLeafUp, leaf_out), 1.0});
  }
  if (layout_.pod_of(here) != layout_.pod_of(there)) {
    loads.push_back({at(kPodUp, layout_.pod_of(here)), 1.0});
    loads.push_back({at(kPodDown, layout_.pod_of(there)), 1.0});
  }
  if (leaf_out != leaf_in) {
    loads.push_back({at(kLeafDown, leaf_in), 1.0});
  }
  loads.push_back({at(kIn, door(there, nic_in)), 1.0});
  if (!crosses_nvlink(layout_, from, to)) {
    loads.push_back({at(kPcie, from), 1.0});
  }
  return across_latency(layout_, from, to);
}

void DomainResources::all_pairs(const std::vector<NodeMembers>& nodes,
                                std::vector<ResourceLoad>& loads) const {
  std::int64_t size = 0;
  std::map<std::int64_t, std::int64_t> in_pod;
  for (const NodeMembers& node : nodes) {
    size += size_of(node);
    in_pod[layout_.pod_of(node.node)] += size_of(node);
  }
  if (layout_.forwards() || (layout_.behind_pcie() && layout_.has_rails())) {
    pairs_over_rails(nodes, size, loads);
  } else {
    pairs_over_own_nics(nodes, size, loads);
  }
  for (const auto& [pod, members] : in_pod) {
    add(at(kPodUp, pod), members * (size - members), loads);
    add(at(kPodDown, pod), members * (size - members), loads);
  }
}

void DomainResources::pairs_over_own_nics(const std::vector<NodeMembers>& nodes,
                                          std::int64_t size,
                                          std::vector<ResourceLoad>& loads) const {
  struct Leaf {
    std::int64_t members = 0, sent = 0, own_node = 0;
  };
  std::map<std::int64_t, Leaf> leaves;
  for (const NodeMembers& node : nodes) {
    const std::int64_t outside = size - size_of(node);
    std::map<std::int64_t, std::int64_t> on_leaf;
    for (const std::int64_t rank : node.ranks) {
      const std::int64_t nic = layout_.nic_of(rank);
      add(at(kOut, door(node.node, nic)), outside, loads);
      add(at(kIn, door(node.node, nic)), outside, loads);
      add(at(kPcie, rank), outside, loads);
      ++on_leaf[layout_.leaf_of(node.node, nic)];
    }
    for (const auto& [leaf, members] : on_leaf) {
      leaves[leaf].members += members;
      leaves[leaf].sent += members * outside;
      leaves[leaf].own_node += members * members;
    }
  }
  for (const auto& [leaf, of] : leaves) {
    const std::int64_t stays = of.members * of.members - of.own_node;
    add(at(kLeafUp, leaf), of.sent - stays, loads);
    add(at(kLeafDown, leaf), of.sent - stays, loads);
  }
}

/// Bytes for a rank leave the sender's node on that rank's rail.
void DomainResources::pairs_over_rails(const std::vector<NodeMembers>& nodes,
                                       std::int64_t size,
                                       std::vector<ResourceLoad>& loads) const {
  std::map<std::int64_t, std::int64_t> on_rail;            // NIC of a node -> members
  std::map<std::int64_t, std::int64_t> in_group, on_leaf;  // leaf group, leaf -> members
  for (const NodeMembers& node : nodes) {
    for (const std::int64_t rank : node.ranks) {
      ++on_rail[layout_.nic_of(rank)];
      ++on_leaf[layout_.leaf_of(node.node, layout_.nic_of(rank))];
    }
    in_group[layout_.group_of(node.node)] += size_of(node);
  }
  for (const NodeMembers& node : nodes) {
    std::map<std::int64_t, std::int64_t> here;
    for (const std::int64_t rank : node.ranks) {
      ++here[layout_.nic_of(rank)];
    }
    for (const auto& [nic, members] : on_rail) {
      add(at(kOut, door(node.node, nic)), size_of(node) * (members - here[nic]), loads);
      add(at(kIn, door(node.node, nic)), here[nic] * (size - size_of(node)), loads);
    }
  }
  for (const auto& [group, members] : in_group) {
    for (const auto& [nic, all] : on_rail) {
      const std::int64_t leaf = group * layout_.leaves_per_group + nic % layout_.leaves_per_group;
      const auto found = on_leaf.find(leaf);
      const std::int64_t own = found == on_leaf.end() ? 0 : found->second;
      add(at(kLeafUp, leaf), members * (all - own), loads);
      add(at(kLeafDown, leaf), own * (size - members), loads);
    }
  }
}

}  // namespace foretrain
