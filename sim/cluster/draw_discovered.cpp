#include "sim/cluster/pen.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace foretrain {
namespace {

/// Hops from each switch to the nearest with an adapter of any host: 0 a leaf, 1 a spine, more a
/// core.
std::vector<std::int32_t> levels(const DiscoveredFabric& fabric) {
  constexpr std::int32_t kUnknown = std::numeric_limits<std::int32_t>::max();
  std::vector<std::int32_t> level(fabric.switches.size(), kUnknown);
  std::vector<std::vector<std::int32_t>> beside(fabric.switches.size());
  for (const DiscoveredFabric::Cable& cable : fabric.cables) {
    beside[static_cast<std::size_t>(cable.a)].push_back(cable.b);
    beside[static_cast<std::size_t>(cable.b)].push_back(cable.a);
  }
  std::vector<std::int32_t> queue;
  std::vector<DiscoveredFabric::Host> all = fabric.hosts;
  all.insert(all.end(), fabric.others.begin(), fabric.others.end());
  for (const DiscoveredFabric::Host& host : all) {
    for (const DiscoveredFabric::Adapter& adapter : host.adapters) {
      if (level[static_cast<std::size_t>(adapter.at)] == kUnknown) {
        level[static_cast<std::size_t>(adapter.at)] = 0;
        queue.push_back(adapter.at);
      }
    }
  }
  for (std::size_t at = 0; at < queue.size(); ++at) {
    const std::int32_t here = level[static_cast<std::size_t>(queue[at])];
    for (const std::int32_t next : beside[static_cast<std::size_t>(queue[at])]) {
      if (level[static_cast<std::size_t>(next)] == kUnknown) {
        level[static_cast<std::size_t>(next)] = here + 1;
        queue.push_back(next);
      }
    }
  }
  return level;
}

void draw_host(const ClusterLayout& layout,
               std::int64_t node,
               std::int32_t hub,
               const std::vector<std::int32_t>& switches,
               Pen& pen) {
  const TopologySpec& spec = layout.spec;
  const DiscoveredFabric::Host& host =
      spec.discovered->hosts[static_cast<std::size_t>(layout.number_of(node))];
  const auto nics = static_cast<std::int64_t>(host.adapters.size());
  for (std::int64_t nic = 0; nic < nics; ++nic) {
    const DiscoveredFabric::Adapter& adapter = host.adapters[static_cast<std::size_t>(nic)];
    const std::int32_t device =
        pen.device(DeviceKind::kNic, node, nic, layout.nic_name(node, nic), adapter.port);
    const auto pcie = [&](std::int32_t above) {
      pen.cable(above,
                device,
                spec.pcie_bandwidth,
                spec.pcie_latency,
                spec.pcie_latency,
                LinkKind::kPcie);
    };
    if (layout.behind_pcie()) {
      pcie(hub);
    }
    for (std::int64_t local = 0; local < layout.gpus_in_node(node); ++local) {
      if (!layout.behind_pcie() && is_beside(local, spec.gpus_per_node, nic, nics)) {
        pcie(static_cast<std::int32_t>(node * spec.gpus_per_node + local));
      }
    }
    pen.cable(device,
              switches[static_cast<std::size_t>(adapter.at)],
              adapter.rate,
              spec.nic_latency,
              spec.nic_latency,
              LinkKind::kNicLink);
  }
}

}  // namespace

void draw_discovered(const ClusterLayout& layout, const std::vector<std::int32_t>& hubs, Pen& pen) {
  const DiscoveredFabric& fabric = *layout.spec.discovered;
  const std::vector<std::int32_t> level = levels(fabric);
  std::vector<std::int32_t> switches;
  for (std::size_t at = 0; at < fabric.switches.size(); ++at) {
    const DeviceKind kind = level[at] == 0   ? DeviceKind::kLeaf
                            : level[at] == 1 ? DeviceKind::kSpine
                                             : DeviceKind::kCore;
    switches.push_back(pen.device(kind, -1, static_cast<std::int64_t>(at), fabric.switches[at]));
  }
  const Duration hop = layout.spec.switch_latency;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> copies;
  for (const DiscoveredFabric::Cable& cable : fabric.cables) {
    pen.cable(switches[static_cast<std::size_t>(cable.a)],
              switches[static_cast<std::size_t>(cable.b)],
              cable.rate,
              hop,
              hop,
              LinkKind::kFabric,
              ++copies[std::minmax(cable.a, cable.b)]);
  }
  for (std::int64_t node = 0; node < layout.nodes; ++node) {
    draw_host(layout, node, hubs[static_cast<std::size_t>(node)], switches, pen);
  }
}

}  // namespace foretrain
