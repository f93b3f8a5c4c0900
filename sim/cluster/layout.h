#pragma once

#include "foretrain/topology.h"

#include <cstdint>
#include <string>
#include <vector>

/// Where everything sits, by arithmetic alone: the graph is drawn from it, and group shapes are
/// read off it without a graph.
namespace foretrain {

struct ClusterLayout {
  TopologySpec spec;
  std::int64_t gpus = 0;
  std::int64_t nodes = 0;
  std::int64_t nodes_per_pod = 0;
  std::int64_t pods = 1;
  std::int64_t groups_per_pod = 1;    ///< leaf groups
  std::int64_t leaves_per_group = 1;  ///< rails, or one switch
  std::int64_t planes = 1;            ///< sets of spines that see one rail each, or 1
  std::int64_t spines_per_pod = 0;    ///< also the number of cores when there are several pods
  Bandwidth leaf_uplink;              ///< of one link from a leaf to a spine
  Bandwidth spine_uplink;             ///< of one link from a spine to a core
  double uplinks_per_leaf = 0.0;      ///< of a NIC's rate each
  std::vector<std::int64_t> working;  ///< numbers of the nodes used; empty: all from 0

  bool has_fabric() const { return nodes > 1; }
  std::int64_t leaves() const { return pods * groups_per_pod * leaves_per_group; }
  std::int64_t gpus_in_node(std::int64_t node) const;
  std::int64_t node_of(std::int64_t rank) const { return rank / spec.gpus_per_node; }
  /// A node's number in the machine room: failed ones are passed over.
  std::int64_t number_of(std::int64_t node) const {
    return working.empty() ? node : working[static_cast<std::size_t>(node)];
  }
  std::int64_t pod_of(std::int64_t node) const { return number_of(node) / nodes_per_pod; }
  std::int64_t group_of(std::int64_t node) const;        ///< leaf group, counted over all pods
  std::int64_t place_in_group(std::int64_t node) const;  ///< of a node among its leaf group's
  std::int64_t nic_of(std::int64_t rank) const;          ///< first NIC of a GPU in its node
  std::int64_t leaf_of(std::int64_t node, std::int64_t nic) const;

  bool has_rails() const { return leaves_per_group > 1; }
  bool behind_pcie() const { return spec.node_interconnect == "pcie"; }
  /// Whether traffic between rails first crosses the sender's NVLink.
  bool forwards() const;
  /// First GPU of the node beside a NIC, as its place in the node; -1: that GPU is not used.
  std::int64_t gpu_beside(std::int64_t node, std::int64_t nic) const;

  /// Fair share of the node's NICs, at most what PCIe carries.
  Bandwidth nic_share() const;
  Bandwidth inside_bandwidth() const;
  Duration inside_latency() const;

  std::string gpu_name(std::int64_t rank) const { return "gpu" + std::to_string(rank); }
  std::string nic_name(std::int64_t node, std::int64_t nic) const;
  std::string hub_name(std::int64_t node) const;  ///< the NVSwitch or PCIe switch of a node
  std::string leaf_name(std::int64_t leaf) const;
  std::string spine_name(std::int64_t pod, std::int64_t spine) const;
  std::int64_t plane_of(std::int64_t spine) const { return spine / (spines_per_pod / planes); }
  std::string core_name(std::int64_t core) const { return "core" + std::to_string(core); }
};

/// Whether a GPU of a node sits beside this NIC; every GPU has at least one, every NIC too.
constexpr bool is_beside(std::int64_t local,
                         std::int64_t gpus,
                         std::int64_t nic,
                         std::int64_t nics) {
  return nics <= gpus ? local * nics / gpus == nic : nic * gpus / nics == local;
}

/// A link's latency is at least a picosecond, so that walks along shortest paths end.
Duration link_latency(Duration stated);

/// What keeps a cluster of so many GPUs from being laid out.
std::vector<Diagnostic> layout_faults(const TopologySpec& spec, std::int64_t gpus);

/// Failed nodes that are none of the cluster's, which are taken out; too few that work, and then
/// `gpus` becomes what they hold. What is left can be laid out, unless that is 0.
std::vector<Diagnostic> node_faults(TopologySpec& spec, std::int64_t& gpus);

/// Of a specification without faults.
ClusterLayout lay_out(const TopologySpec& spec, std::int64_t gpus);

/// Rank to rank between nodes along the shortest route.
Duration across_latency(const ClusterLayout& layout, std::int64_t from, std::int64_t to);

/// Between nodes, whether the sender's NVLink is crossed on the way to the destination's rail.
bool crosses_nvlink(const ClusterLayout& layout, std::int64_t from, std::int64_t to);

}  // namespace foretrain
