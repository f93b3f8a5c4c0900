#include "sim/cluster/topology_graph.h"

#include <map>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

/// Bisection bandwidth as a maximum flow between the two halves.
namespace foretrain {
namespace {

using FlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS,
    boost::vecS,
    boost::directedS,
    boost::no_property,
    boost::property<
        boost::edge_capacity_t,
        std::int64_t,
        boost::property<boost::edge_residual_capacity_t,
                        std::int64_t,
                        boost::property<boost::edge_reverse_t, FlowTraits::edge_descriptor>>>>;

constexpr std::size_t kSource = 0;
constexpr std::size_t kSink = 1;

/// The graph with each half's GPUs drawn together into one vertex (exact: they are joined by links
/// without limit anyway) and parallel links added up.
class Condensed {
 public:
  explicit Condensed(const Drawing& drawing, const ClusterLayout& layout) {
    const std::int64_t half =
        layout.nodes > 1 ? layout.nodes / 2 * layout.spec.gpus_per_node : layout.gpus / 2;
    vertex_.reserve(drawing.devices.size());
    for (const Device& device : drawing.devices) {
      if (device.kind == DeviceKind::kGpu) {
        vertex_.push_back(device.index < half ? kSource : kSink);
      } else {
        vertex_.push_back(vertices_++);
      }
    }
    fold_nics(drawing);
    for (const Link& link : drawing.links) {
      add(vertex_[static_cast<std::size_t>(link.from)],
          vertex_[static_cast<std::size_t>(link.to)],
          link.capacity.bytes_per_second);
    }
  }

  std::int64_t max_flow() const;

 private:
  /// A NIC that one half's GPUs alone feed, no slower than it sends, is as good as those GPUs.
  void fold_nics(const Drawing& drawing);
  void add(std::size_t from, std::size_t to, std::int64_t capacity) {
    if (from != to && to != kSource && from != kSink) {
      capacity_[{from, to}] += capacity;
    }
  }

  std::vector<std::size_t> vertex_;
  std::size_t vertices_ = 2;
  std::map<std::pair<std::size_t, std::size_t>, std::int64_t> capacity_;
};

void Condensed::fold_nics(const Drawing& drawing) {
  struct Ends {
    std::size_t half = kSource;
    bool mixed = false;
    std::int64_t inside = 0, outside = 0;
  };
  std::vector<Ends> ends(drawing.devices.size());
  for (const Link& link : drawing.links) {
    const auto from = static_cast<std::size_t>(link.from);
    const auto to = static_cast<std::size_t>(link.to);
    if (drawing.devices[to].kind != DeviceKind::kNic) {
      continue;
    }
    Ends& nic = ends[to];
    if (drawing.devices[from].kind == DeviceKind::kGpu) {
      nic.mixed = nic.mixed || (nic.inside > 0 && nic.half != vertex_[from]);
      nic.half = vertex_[from];
      nic.inside += link.capacity.bytes_per_second;
    } else {
      nic.mixed = nic.mixed || drawing.devices[from].node >= 0;
      nic.outside += link.capacity.bytes_per_second;
    }
  }
  for (std::size_t at = 0; at < ends.size(); ++at) {
    const Ends& nic = ends[at];
    if (drawing.devices[at].kind == DeviceKind::kNic && !nic.mixed && nic.inside > 0 &&
        nic.inside >= nic.outside) {
      vertex_[at] = nic.half;
    }
  }
}

std::int64_t Condensed::max_flow() const {
  FlowGraph graph(vertices_);
  auto capacity = get(boost::edge_capacity, graph);
  auto reverse = get(boost::edge_reverse, graph);
  for (const auto& [ends, rate] : capacity_) {
    const auto there = add_edge(ends.first, ends.second, graph).first;
    const auto back = add_edge(ends.second, ends.first, graph).first;
    capacity[there] = rate;
    capacity[back] = 0;
    reverse[there] = back;
    reverse[back] = there;
  }
  return boost::push_relabel_max_flow(graph, kSource, kSink);
}

}  // namespace

Bandwidth Topology::bisection_bandwidth() const {
  if (gpus() < 2) {
    return {};
  }
  return {Condensed(graph_->drawing(), graph_->layout).max_flow()};
}

}  // namespace foretrain
