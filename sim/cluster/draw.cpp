#include "sim/cluster/pen.h"

#include <algorithm>
#include <set>

namespace foretrain {
namespace {

/// The in-node switch of every node and the GPUs' links to it.
std::vector<std::int32_t> draw_hubs(const ClusterLayout& layout, Pen& pen) {
  const bool pcie = layout.spec.node_interconnect == "pcie";
  std::vector<std::int32_t> hubs;
  for (std::int64_t node = 0; node < layout.nodes; ++node) {
    const std::int32_t hub = pen.device(
        pcie ? DeviceKind::kPcieSwitch : DeviceKind::kNvSwitch, node, 0, layout.hub_name(node));
    hubs.push_back(hub);
    const Duration up = layout.inside_latency() / 2;
    for (std::int64_t local = 0; local < layout.gpus_in_node(node); ++local) {
      const std::int64_t gpu = node * layout.spec.gpus_per_node + local;
      pen.cable(static_cast<std::int32_t>(gpu),
                hub,
                layout.inside_bandwidth(),
                up,
                layout.inside_latency() - up,
                pcie ? LinkKind::kPcie : LinkKind::kNvlink);
    }
  }
  return hubs;
}

/// NICs of one node, their PCIe links and their cables to the leaves.
void draw_nics(const ClusterLayout& layout,
               std::int64_t node,
               std::int32_t hub,
               const std::vector<std::int32_t>& leaves,
               Pen& pen) {
  const TopologySpec& spec = layout.spec;
  for (std::int64_t nic = 0; nic < spec.nics_per_node; ++nic) {
    const std::int64_t ports =
        std::max<std::int64_t>(spec.nics_per_node / layout.leaves_per_group, 1);
    const std::int64_t port = layout.place_in_group(node) * ports + nic / layout.leaves_per_group;
    const std::int32_t device = pen.device(
        DeviceKind::kNic, node, nic, layout.nic_name(node, nic), static_cast<std::int32_t>(port));
    if (spec.node_interconnect == "pcie") {
      pen.cable(
          hub, device, spec.pcie_bandwidth, spec.pcie_latency, spec.pcie_latency, LinkKind::kPcie);
    }
    for (std::int64_t local = 0; local < layout.gpus_in_node(node); ++local) {
      if (spec.node_interconnect != "pcie" &&
          is_beside(local, spec.gpus_per_node, nic, spec.nics_per_node)) {
        pen.cable(static_cast<std::int32_t>(node * spec.gpus_per_node + local),
                  device,
                  spec.pcie_bandwidth,
                  spec.pcie_latency,
                  spec.pcie_latency,
                  LinkKind::kPcie);
      }
    }
    if (layout.has_fabric()) {
      pen.cable(device,
                leaves[static_cast<std::size_t>(layout.leaf_of(node, nic))],
                spec.nic_bandwidth,
                spec.nic_latency,
                spec.nic_latency,
                LinkKind::kNicLink);
    }
  }
}

/// Leaves, spines, cores and the cables between them; the leaves' device indices.
std::vector<std::int32_t> draw_fabric(const ClusterLayout& layout, Pen& pen) {
  std::vector<std::int32_t> leaves;
  if (!layout.has_fabric()) {
    return leaves;
  }
  const Duration hop = layout.spec.switch_latency;
  for (std::int64_t leaf = 0; leaf < layout.leaves(); ++leaf) {
    leaves.push_back(pen.device(DeviceKind::kLeaf, -1, leaf, layout.leaf_name(leaf)));
  }
  const std::int64_t per_pod = layout.groups_per_pod * layout.leaves_per_group;
  std::vector<std::int32_t> cores;
  for (std::int64_t core = 0; layout.pods > 1 && core < layout.spines_per_pod; ++core) {
    cores.push_back(pen.device(DeviceKind::kCore, -1, core, layout.core_name(core)));
  }
  for (std::int64_t pod = 0; pod < layout.pods; ++pod) {
    for (std::int64_t at = 0; at < layout.spines_per_pod; ++at) {
      const std::int32_t spine = pen.device(DeviceKind::kSpine, -1, at, layout.spine_name(pod, at));
      for (std::int64_t leaf = pod * per_pod; leaf < (pod + 1) * per_pod; ++leaf) {
        if (layout.planes > 1 && leaf % layout.leaves_per_group != layout.plane_of(at)) {
          continue;
        }
        pen.cable(leaves[static_cast<std::size_t>(leaf)],
                  spine,
                  layout.leaf_uplink,
                  hop,
                  hop,
                  LinkKind::kFabric);
      }
      if (layout.pods > 1) {
        pen.cable(spine,
                  cores[static_cast<std::size_t>(at)],
                  layout.spine_uplink,
                  hop,
                  hop,
                  LinkKind::kFabric);
      }
    }
  }
  return leaves;
}

/// Takes out both directions of every failed cable.
void cut(const std::vector<std::string>& failed, std::vector<Link>& links) {
  std::set<std::string> gone;
  for (const std::string& id : failed) {
    gone.insert(id);
    gone.insert(reversed_id(id));
  }
  const auto is_gone = [&](const Link& link) { return gone.count(link.id) > 0; };
  links.erase(std::remove_if(links.begin(), links.end(), is_gone), links.end());
}

}  // namespace

std::string reversed_id(const std::string& id) {
  const std::size_t arrow = id.find('>');
  if (arrow == std::string::npos) {
    return id;
  }
  const std::size_t copy = std::min(id.find('#', arrow), id.size());
  return id.substr(arrow + 1, copy - arrow - 1) + ">" + id.substr(0, arrow) + id.substr(copy);
}

Drawing draw(const ClusterLayout& layout) {
  Drawing drawing;
  Pen pen(drawing);
  for (std::int64_t gpu = 0; gpu < layout.gpus; ++gpu) {
    pen.device(DeviceKind::kGpu, layout.node_of(gpu), gpu, layout.gpu_name(gpu));
  }
  const std::vector<std::int32_t> hubs = draw_hubs(layout, pen);
  if (layout.spec.fabric == FabricKind::kDiscovered) {
    draw_discovered(layout, hubs, pen);
  } else {
    const std::vector<std::int32_t> leaves = draw_fabric(layout, pen);
    for (std::int64_t node = 0; node < layout.nodes; ++node) {
      draw_nics(layout, node, hubs[static_cast<std::size_t>(node)], leaves, pen);
    }
  }
  if (!layout.spec.failed_links.empty()) {
    cut(layout.spec.failed_links, drawing.links);
  }
  return drawing;
}

}  // namespace foretrain
