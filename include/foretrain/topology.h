#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/flow.h"
#include "foretrain/topology_spec.h"
#include "foretrain/units.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A cluster as a graph of devices and directed links.
namespace foretrain {

enum class DeviceKind { kGpu, kNic, kNvSwitch, kPcieSwitch, kLeaf, kSpine, kCore };
struct Device {
  DeviceKind kind = DeviceKind::kGpu;
  std::int32_t node = -1;  ///< -1: outside the nodes
  std::int32_t index = 0;  ///< a GPU's rank, a NIC's index in its node, ...
  std::string name;        ///< "gpu17", "n2.nic1", "leaf0.3", "spine4"
};

enum class LinkKind { kNvlink, kPcie, kNicLink, kFabric };
struct Link {
  std::int32_t from = 0, to = 0;  ///< device indices
  Bandwidth capacity;             ///< one direction
  Duration latency{};             ///< at least 1 ps
  LinkKind kind = LinkKind::kNvlink;
  std::string id;  ///< "gpu0>n0.nvs0", unique, stable
};

/// How a group of ranks sits on the machine; all a collective's closed form needs.
struct GroupShape {
  std::int64_t size = 1;
  std::int64_t nodes = 1;
  std::int64_t ranks_per_node = 1;   ///< largest number of members in one node
  std::int64_t fewest_per_node = 1;  ///< smallest
  bool even = true;                  ///< every node holds the same number
  Bandwidth inside;                  ///< per rank, slowest link between members of one node
  Duration inside_latency{};
  Bandwidth across;  ///< per rank, slowest link between nodes, NICs shared fairly, neighbours only
  Bandwidth across_all_pairs;  ///< the same when every member talks to every other; 0: as across
  Duration across_latency{};
  /// Of the traffic of all pairs between nodes, what crosses the sender's NVLink first.
  double forwarded_share = 0.0;
  std::string slowest_link_inside;  ///< link ids, for reports
  std::string slowest_link_across;
  std::string slowest_link_all_pairs;  ///< between nodes, when every member talks to every other
  bool operator==(const GroupShape&) const = default;
};

/// How a route chooses among the shortest ones.
enum class Routing {
  kDestination,  ///< by the destination's port (d-mod-k)
  kHashed,       ///< by a hash of both ends: flows may collide
  kSingle,       ///< always the first
};

/// Who sends to whom in a group.
enum class TrafficPattern {
  kRing,      ///< each member to the next; between nodes the members of a node side by side
  kAllPairs,  ///< each member to every other, equally
  /// As all pairs, but to the member of the same place in the other's node, which passes it on.
  kForwarded,
};

/// A link that carries 1 / factor of what it should, in the direction its id says.
struct SlowLink {
  std::string id;
  double factor = 1.0;
};

/// Immutable. GPUs are devices 0 .. gpus-1 and equal their ranks.
class Topology {
 public:
  /// Builds `gpus` GPUs of `spec` (the last node may be partly used).
  static Expected<Topology> build(const TopologySpec& spec,
                                  std::int64_t gpus,
                                  Routing routing = Routing::kDestination,
                                  const std::vector<SlowLink>& slow = {});
  Topology(Topology&&) noexcept;
  Topology& operator=(Topology&&) noexcept;
  ~Topology();

  const TopologySpec& spec() const;
  std::int64_t gpus() const;
  std::int64_t nodes() const;
  std::span<const Device> devices() const;
  std::span<const Link> links() const;
  std::int64_t node_of(std::int64_t rank) const;
  /// The number in its name of each node, "n5" of a cluster whose lower nodes have failed.
  std::vector<std::int64_t> node_numbers() const;

  /// Links of the route from one GPU to another, in order; empty when they are the same. Shortest
  /// by latency; among equals a choice by destination (MODEL 4).
  std::vector<std::int32_t> route(std::int64_t from, std::int64_t to) const;

  /// Whether a route exists: failed links may cut a rank off.
  bool reachable(std::int64_t from, std::int64_t to) const;

  /// The first two that talk to each other in a group's pattern and have no route; nothing when all
  /// have. All pairs of more than 1,024 ranks are looked at as a ring.
  std::optional<std::pair<std::int64_t, std::int64_t>> unreachable_pair(
      std::span<const std::int64_t> ranks, TrafficPattern pattern) const;

  /// Why ranks may have no route: "failed links (...) take every way between them".
  std::string why_unreachable() const;

  /// Max-flow between the two halves of the nodes (ranks in order), bytes per second one direction;
  /// inside one node: between the two halves of its GPUs.
  Bandwidth bisection_bandwidth() const;

  /// The shape of a group given by its ranks in order, alone on the machine.
  GroupShape group_shape(std::span<const std::int64_t> ranks) const;

  /// Shapes of groups of one kind that communicate at the same time and share what they share.
  std::vector<GroupShape> group_shapes(const std::vector<std::vector<std::int64_t>>& groups) const;

  /// Bytes on each link per byte that one rank of the group sends; by link.
  std::vector<LinkUse> pattern_loads(std::span<const std::int64_t> ranks,
                                     TrafficPattern pattern) const;

  /// Graphviz text.
  std::string dot() const;

 private:
  struct Graph;
  explicit Topology(std::unique_ptr<Graph> graph);
  std::unique_ptr<Graph> graph_;
};

std::string_view to_string(DeviceKind kind);
std::string_view to_string(LinkKind kind);

/// Names of the presets in topologies/.
std::vector<std::string> topology_presets();

}  // namespace foretrain
