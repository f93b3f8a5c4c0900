#pragma once

#include "sim/cluster/router.h"
#include "sim/cluster/topology_graph.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include <boost/graph/compressed_sparse_row_graph.hpp>

/// What routes are found from. Private to the router: no Boost type leaves this folder.
namespace foretrain {

inline std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

constexpr std::int64_t kUnreached = std::numeric_limits<std::int64_t>::max();

/// A cable between switches, as the switch graph's edges carry it.
struct SwitchCable {
  std::int32_t link = 0;
  std::int64_t latency = 0;  ///< ps
};
using SwitchGraph =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, SwitchCable>;

/// A cable's two links; -1: failed.
struct CablePair {
  std::int32_t up = -1, down = -1;
  bool works() const { return up >= 0 && down >= 0; }
};

/// A NIC that a GPU sends from or is reached at, with the links between the GPU and its switch.
struct Doorway {
  std::int32_t nic = 0;
  std::size_t at = 0;                 ///< vertex of the switch
  std::array<std::int32_t, 3> links;  ///< away from the GPU, or towards it; -1: none
};

/// What is connected to what, and distances between switches as they are asked for.
struct Router::Wiring {
  Wiring(const ClusterLayout& of, const Drawing& drawn, Routing chosen);

  /// To a switch from every other; the cables' directions are alike.
  const std::vector<std::int64_t>& distances(std::size_t to) const;

  /// Every working way between a GPU and a switch.
  std::vector<Doorway> doorways(std::int64_t gpu, bool out) const;

  /// The NIC a GPU counts as its own, on its switch: neighbours on a leaf take different spines.
  std::int64_t port(std::int64_t gpu) const;

  const ClusterLayout& layout;
  const Drawing& drawing;
  Routing routing;
  SwitchGraph graph;
  std::vector<std::int64_t> vertex_of;             ///< by device; -1: no switch of the fabric
  std::vector<CablePair> to_hub;                   ///< by GPU, `up` away from it
  std::vector<CablePair> uplink;                   ///< by device, of NICs
  std::vector<std::size_t> switch_of;              ///< by device, of NICs: a vertex
  std::vector<std::vector<std::int32_t>> nics_of;  ///< by node, whether they work or not
  struct Slot {
    std::int32_t nic = 0;
    CablePair pcie;  ///< `up` towards the NIC
  };
  std::vector<std::vector<Slot>> slots;  ///< by GPU; behind PCIe by node

 private:
  void wire_node(const Link& link, std::int32_t index);

  mutable std::vector<std::once_flag> measured_;
  mutable std::vector<std::vector<std::int64_t>> distance_;
};

}  // namespace foretrain
