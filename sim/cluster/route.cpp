#include "sim/base/check.h"
#include "sim/cluster/topology_graph.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/reverse_graph.hpp>

/// Routes: shortest by latency, spread over the equal ones by destination (MODEL 4.1).
namespace foretrain {
namespace {

constexpr std::int64_t kUnreached = std::numeric_limits<std::int64_t>::max();

/// GPUs and NICs forward nothing for others: a route sees the two ends, their nodes and the fabric;
/// inside a node only the node's switch.
struct OnTheWay {
  const std::vector<Device>* devices = nullptr;
  std::int32_t from = 0, to = 0;
  std::int32_t from_node = 0, to_node = 0;

  bool operator()(DeviceGraph::vertex_descriptor vertex) const {
    const auto at = static_cast<std::int32_t>(vertex);
    const Device& device = (*devices)[vertex];
    if (device.kind == DeviceKind::kGpu) {
      return at == from || at == to;
    }
    if (from_node == to_node) {
      return device.node == from_node && device.kind != DeviceKind::kNic;
    }
    return device.node < 0 || device.node == from_node || device.node == to_node;
  }
};

using View = boost::filtered_graph<DeviceGraph, boost::keep_all, OnTheWay>;

std::vector<std::int64_t> distances_to(const Drawing& drawing, const View& view, std::size_t to) {
  std::vector<std::int64_t> distance(drawing.devices.size(), kUnreached);
  const auto reversed = boost::make_reverse_graph(view);
  boost::dijkstra_shortest_paths(reversed,
                                 to,
                                 boost::weight_map(get(&Edge::latency, reversed))
                                     .distance_map(boost::make_iterator_property_map(
                                         distance.begin(), get(boost::vertex_index, drawing.graph)))
                                     .distance_inf(kUnreached));
  return distance;
}

/// The port of the destination's NIC on its leaf: neighbours on a leaf take different spines.
std::int64_t spread_key(const ClusterLayout& layout, std::int64_t rank) {
  const std::int64_t node = layout.node_of(rank);
  const std::int64_t place = layout.place_in_group(node);
  const std::int64_t ports = layout.spec.nics_per_node / layout.leaves_per_group;
  return place * std::max<std::int64_t>(ports, 1) + layout.nic_of(rank) / layout.leaves_per_group;
}

}  // namespace

std::vector<std::int32_t> Topology::route(std::int64_t from, std::int64_t to) const {
  const ClusterLayout& layout = graph_->layout;
  FORETRAIN_CHECK(from >= 0 && from < layout.gpus && to >= 0 && to < layout.gpus, "known ranks");
  std::vector<std::int32_t> links;
  if (from == to) {
    return links;
  }
  const Drawing& drawing = graph_->drawing();
  const OnTheWay filter{&drawing.devices,
                        static_cast<std::int32_t>(from),
                        static_cast<std::int32_t>(to),
                        static_cast<std::int32_t>(layout.node_of(from)),
                        static_cast<std::int32_t>(layout.node_of(to))};
  const View view(drawing.graph, boost::keep_all{}, filter);
  const std::vector<std::int64_t> distance =
      distances_to(drawing, view, static_cast<std::size_t>(to));
  const std::int64_t key = spread_key(layout, to);
  std::vector<std::int32_t> tight;
  for (auto at = static_cast<std::size_t>(from); at != static_cast<std::size_t>(to);) {
    FORETRAIN_CHECK(distance[at] != kUnreached, "no route to gpu%lld", static_cast<long long>(to));
    tight.clear();
    for (const auto edge : boost::make_iterator_range(out_edges(at, view))) {
      const Edge& carried = drawing.graph[edge];
      const std::int64_t beyond = distance[target(edge, view)];
      if (beyond != kUnreached && distance[at] == carried.latency + beyond) {
        tight.push_back(carried.link);
      }
    }
    links.push_back(tight[static_cast<std::size_t>(key) % tight.size()]);
    at = static_cast<std::size_t>(drawing.links[static_cast<std::size_t>(links.back())].to);
  }
  return links;
}

bool Topology::reachable(std::int64_t from, std::int64_t to) const {
  return from == to || !route(from, to).empty();
}

}  // namespace foretrain
