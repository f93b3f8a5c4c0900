#include "foretrain/topology.h"

#include "sim/base/data_directory.h"
#include "sim/cluster/topology_graph.h"

namespace foretrain {

const Drawing& Topology::Graph::drawing() const {
  std::call_once(drawn_, [this] { drawing_ = draw(layout); });
  return drawing_;
}

Topology::Topology(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(Topology&&) noexcept = default;
Topology::~Topology() = default;

Expected<Topology> Topology::build(const TopologySpec& spec,
                                   std::int64_t gpus,
                                   Routing /*routing*/) {
  Expected<ClusterLayout> layout = lay_out(spec, gpus);
  if (!layout) {
    return tl::unexpected<Faults>(std::move(layout.error()));
  }
  auto graph = std::make_unique<Graph>();
  graph->layout = std::move(*layout);
  return Topology(std::move(graph));
}

const TopologySpec& Topology::spec() const {
  return graph_->layout.spec;
}

std::int64_t Topology::gpus() const {
  return graph_->layout.gpus;
}

std::int64_t Topology::nodes() const {
  return graph_->layout.nodes;
}

std::span<const Device> Topology::devices() const {
  return graph_->drawing().devices;
}

std::span<const Link> Topology::links() const {
  return graph_->drawing().links;
}

std::int64_t Topology::node_of(std::int64_t rank) const {
  return graph_->layout.node_of(rank);
}

std::string_view to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kGpu:
      return "gpu";
    case DeviceKind::kNic:
      return "nic";
    case DeviceKind::kNvSwitch:
      return "nvswitch";
    case DeviceKind::kPcieSwitch:
      return "pcie switch";
    case DeviceKind::kLeaf:
      return "leaf";
    case DeviceKind::kSpine:
      return "spine";
    case DeviceKind::kCore:
      return "core";
  }
  return "";
}

std::string_view to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::kNvlink:
      return "nvlink";
    case LinkKind::kPcie:
      return "pcie";
    case LinkKind::kNicLink:
      return "nic";
    case LinkKind::kFabric:
      return "fabric";
  }
  return "";
}

std::vector<std::string> topology_presets() {
  return preset_names("topologies");
}

}  // namespace foretrain
