#pragma once

#include "foretrain/topology.h"
#include "sim/cluster/layout.h"
#include "sim/cluster/router.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

/// The drawn cluster. Private to sim/cluster.
namespace foretrain {

struct Drawing {
  std::vector<Device> devices;
  std::vector<Link> links;
  std::vector<std::int32_t> port_of;  ///< by device: a NIC's port on its switch; 0 elsewhere
};

/// Devices, links of a layout, always in the same order; failed links are left out.
Drawing draw(const ClusterLayout& layout);

/// The switches and cables a subnet manager lists, with the NICs of the nodes used.
/// `hubs`: the in-node switch of each node.
class Pen;
void draw_discovered(const ClusterLayout& layout, const std::vector<std::int32_t>& hubs, Pen& pen);

/// Both directions of a cable, "a>b" and "b>a".
std::string reversed_id(const std::string& id);

/// The layout is there at once; the drawing when somebody first looks at it, since a run over
/// 16,384 GPUs in analytic mode never does.
struct Topology::Graph {
  ClusterLayout layout;
  Routing routing = Routing::kDestination;
  std::map<std::string, double> slow;  ///< links that are, by id: the factor
  const Drawing& drawing() const;
  const Router& router() const;

 private:
  mutable std::once_flag drawn_;
  mutable Drawing drawing_;
  mutable std::once_flag wired_;
  mutable std::unique_ptr<Router> router_;
};

}  // namespace foretrain
