#include "sim/cluster/topology_graph.h"

namespace foretrain {
namespace {

/// Adds devices and pairs of links in a fixed order.
class Pen {
 public:
  explicit Pen(Drawing& drawing) : drawing_(drawing) {}

  std::int32_t device(DeviceKind kind, std::int64_t node, std::int64_t index, std::string name) {
    drawing_.devices.push_back(
        {kind, static_cast<std::int32_t>(node), static_cast<std::int32_t>(index), std::move(name)});
    return static_cast<std::int32_t>(drawing_.devices.size()) - 1;
  }

  /// Both directions, `up` first.
  void cable(
      std::int32_t a, std::int32_t b, Bandwidth rate, Duration up, Duration down, LinkKind kind) {
    link(a, b, rate, up, kind);
    link(b, a, rate, down, kind);
  }

 private:
  void link(std::int32_t from, std::int32_t to, Bandwidth rate, Duration latency, LinkKind kind) {
    const auto name = [&](std::int32_t device) -> const std::string& {
      return drawing_.devices[static_cast<std::size_t>(device)].name;
    };
    drawing_.links.push_back(
        {from, to, rate, link_latency(latency), kind, name(from) + ">" + name(to)});
  }

  Drawing& drawing_;
};

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

/// Whether a GPU of the node sits beside this NIC; every GPU has at least one, every NIC too.
bool beside(const ClusterLayout& layout, std::int64_t local, std::int64_t nic) {
  const std::int64_t gpus = layout.spec.gpus_per_node;
  const std::int64_t nics = layout.spec.nics_per_node;
  return nics <= gpus ? local * nics / gpus == nic : nic * gpus / nics == local;
}

/// NICs of one node, their PCIe links and their cables to the leaves.
void draw_nics(const ClusterLayout& layout,
               std::int64_t node,
               std::int32_t hub,
               const std::vector<std::int32_t>& leaves,
               Pen& pen) {
  const TopologySpec& spec = layout.spec;
  for (std::int64_t nic = 0; nic < spec.nics_per_node; ++nic) {
    const std::int32_t device = pen.device(DeviceKind::kNic, node, nic, layout.nic_name(node, nic));
    if (spec.node_interconnect == "pcie") {
      pen.cable(
          hub, device, spec.pcie_bandwidth, spec.pcie_latency, spec.pcie_latency, LinkKind::kPcie);
    }
    for (std::int64_t local = 0; local < layout.gpus_in_node(node); ++local) {
      if (spec.node_interconnect != "pcie" && beside(layout, local, nic)) {
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

}  // namespace

Drawing draw(const ClusterLayout& layout) {
  Drawing drawing;
  Pen pen(drawing);
  for (std::int64_t gpu = 0; gpu < layout.gpus; ++gpu) {
    pen.device(DeviceKind::kGpu, layout.node_of(gpu), gpu, layout.gpu_name(gpu));
  }
  const std::vector<std::int32_t> hubs = draw_hubs(layout, pen);
  const std::vector<std::int32_t> leaves = draw_fabric(layout, pen);
  for (std::int64_t node = 0; node < layout.nodes; ++node) {
    draw_nics(layout, node, hubs[static_cast<std::size_t>(node)], leaves, pen);
  }
  drawing.graph = DeviceGraph(drawing.devices.size());
  for (std::size_t at = 0; at < drawing.links.size(); ++at) {
    const Link& link = drawing.links[at];
    boost::add_edge(static_cast<std::size_t>(link.from),
                    static_cast<std::size_t>(link.to),
                    Edge{static_cast<std::int32_t>(at), link.latency.count()},
                    drawing.graph);
  }
  return drawing;
}

}  // namespace foretrain
