#include "sim/base/format.h"
#include "sim/cluster/topology_graph.h"

#include <ostream>
#include <sstream>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphviz.hpp>

namespace foretrain {
namespace {

using DeviceGraph = boost::adjacency_list<boost::vecS,
                                          boost::vecS,
                                          boost::bidirectionalS,
                                          boost::no_property,
                                          std::int32_t>;  ///< an edge holds the index of its Link

const char* shape_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kGpu:
      return "box";
    case DeviceKind::kNic:
      return "house";
    case DeviceKind::kNvSwitch:
    case DeviceKind::kPcieSwitch:
      return "octagon";
    case DeviceKind::kLeaf:
    case DeviceKind::kSpine:
    case DeviceKind::kCore:
      return "ellipse";
  }
  return "box";
}

}  // namespace

std::string Topology::dot() const {
  const Drawing& drawing = graph_->drawing();
  DeviceGraph drawn(drawing.devices.size());
  for (std::size_t at = 0; at < drawing.links.size(); ++at) {
    boost::add_edge(static_cast<std::size_t>(drawing.links[at].from),
                    static_cast<std::size_t>(drawing.links[at].to),
                    static_cast<std::int32_t>(at),
                    drawn);
  }
  std::ostringstream text;
  const auto device = [&](std::ostream& out, std::size_t vertex) {
    const Device& at = drawing.devices[vertex];
    out << "[label=\"" << at.name << "\", shape=" << shape_of(at.kind) << "]";
  };
  const auto link = [&](std::ostream& out, const DeviceGraph::edge_descriptor& edge) {
    const Link& at = drawing.links[static_cast<std::size_t>(drawn[edge])];
    out << "[label=\"" << human_rate(static_cast<double>(at.capacity.bytes_per_second))
        << "\", tooltip=\"" << at.id << "\"]";
  };
  const auto graph = [](std::ostream& out) { out << "rankdir=BT;\nnode [fontname=\"sans\"];\n"; };
  boost::write_graphviz(text, drawn, device, link, graph);
  return text.str();
}

}  // namespace foretrain
