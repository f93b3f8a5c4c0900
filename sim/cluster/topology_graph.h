#pragma once

#include "foretrain/topology.h"
#include "sim/cluster/layout.h"

#include <mutex>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

/// The drawn cluster. Private to sim/cluster: no Boost type leaves this folder.
namespace foretrain {

/// What an edge carries of its Link.
struct Edge {
  std::int32_t link = 0;     ///< index of the Link
  std::int64_t latency = 0;  ///< ps, the weight of shortest paths
};
using DeviceGraph = boost::
    adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, boost::no_property, Edge>;

struct Drawing {
  std::vector<Device> devices;
  std::vector<Link> links;
  DeviceGraph graph;  ///< vertices are device indices
};

/// Devices, links and graph of a layout, always in the same order.
Drawing draw(const ClusterLayout& layout);

/// The layout is there at once; the drawing when somebody first looks at it, since a run over
/// 16,384 GPUs in analytic mode never does.
struct Topology::Graph {
  ClusterLayout layout;
  const Drawing& drawing() const;

 private:
  mutable std::once_flag drawn_;
  mutable Drawing drawing_;
};

}  // namespace foretrain
