#include "foretrain/topology.h"

#include "sim/base/data_directory.h"
#include "sim/base/edit_distance.h"
#include "sim/cluster/topology_graph.h"

#include <algorithm>
#include <cmath>

namespace foretrain {

const Drawing& Topology::Graph::drawing() const {
  std::call_once(drawn_, [this] {
    drawing_ = draw(layout);
    for (Link& link : drawing_.links) {
      if (const auto found = slow.find(link.id); found != slow.end()) {
        const double rate = static_cast<double>(link.capacity.bytes_per_second) / found->second;
        link.capacity = {std::max<std::int64_t>(std::llround(rate), 1)};
      }
    }
  });
  return drawing_;
}

const Router& Topology::Graph::router() const {
  std::call_once(wired_,
                 [this] { router_ = std::make_unique<Router>(layout, drawing(), routing); });
  return *router_;
}

namespace {

/// Failed and slow links must be links of the cluster drawn whole.
std::vector<Diagnostic> named_link_faults(const ClusterLayout& layout,
                                          const std::vector<SlowLink>& slow) {
  std::vector<Diagnostic> faults;
  if (layout.spec.failed_links.empty() && slow.empty()) {
    return faults;
  }
  ClusterLayout whole = layout;
  whole.spec.failed_links.clear();
  std::vector<std::string> ids;
  for (const Link& link : draw(whole).links) {
    ids.push_back(link.id);
  }
  const auto check = [&](const std::string& pointer, const std::string& id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) {
      const std::string hint = did_you_mean(id, ids);
      const std::string form = "ids are as `foretrain topology` prints them";
      faults.push_back({pointer,
                        "no link is called \"" + id + "\"",
                        !hint.empty() ? hint
                        : ids.empty() ? form
                                      : form + ", e.g. \"" + ids.front() + "\""});
    }
  };
  for (std::size_t at = 0; at < layout.spec.failed_links.size(); ++at) {
    check("/failed_links/" + std::to_string(at), layout.spec.failed_links[at]);
  }
  for (std::size_t at = 0; at < slow.size(); ++at) {
    check("/slow_links/" + std::to_string(at), slow[at].id);
  }
  return faults;
}

}  // namespace

Topology::Topology(std::unique_ptr<Graph> graph) : graph_(std::move(graph)) {}
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(Topology&&) noexcept = default;
Topology::~Topology() = default;

Expected<Topology> Topology::build(const TopologySpec& spec,
                                   std::int64_t gpus,
                                   Routing routing,
                                   const std::vector<SlowLink>& slow) {
  std::vector<Diagnostic> faults = layout_faults(spec, gpus);
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  TopologySpec sound = spec;
  faults = node_faults(sound, gpus);
  if (gpus > 0) {
    for (Diagnostic& fault : named_link_faults(lay_out(sound, gpus), slow)) {
      faults.push_back(std::move(fault));
    }
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  auto graph = std::make_unique<Graph>();
  graph->layout = lay_out(sound, gpus);
  graph->routing = routing;
  for (const SlowLink& link : slow) {
    if (link.factor != 1.0) {
      graph->slow.emplace(link.id, 1.0).first->second *= link.factor;
    }
  }
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

std::vector<std::int64_t> Topology::node_numbers() const {
  std::vector<std::int64_t> numbers;
  for (std::int64_t node = 0; node < nodes(); ++node) {
    numbers.push_back(graph_->layout.number_of(node));
  }
  return numbers;
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
