#pragma once

#include "tests/support/tiny_cluster.h"

#include "foretrain/topology.h"

#include <array>
#include <cstdint>
#include <random>
#include <string>

/// Small fabrics of all kinds, whole or with cables out of use.
namespace foretrain::testing_support {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  template <typename T, std::size_t N>
  T one_of(const std::array<T, N>& values) {
    return values[engine_() % N];
  }
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end));
  }

 private:
  std::mt19937_64 engine_;
};

/// At most 32 GPUs: two to eight nodes, the last partly used, leaves of one to three nodes; a
/// switch hop costs as much as a NIC's, less, or next to nothing, so that ways of several lengths
/// tie.
inline TopologySpec random_spec(Draw& draw, std::int64_t& gpus) {
  TopologySpec spec = tiny_cluster();
  spec.fabric = draw.one_of(std::array{
      FabricKind::kRailOptimized, FabricKind::kRailOnly, FabricKind::kFatTree, FabricKind::kClos});
  spec.node_interconnect = draw.below(3) == 0 ? "pcie" : "nvswitch";
  spec.gpus_per_node = draw.one_of(std::array{1, 2, 4});
  spec.nics_per_node = draw.one_of(std::array{1, 2, 4});
  spec.nodes_per_leaf_group = static_cast<int>(1 + draw.below(3));
  spec.oversubscription = draw.one_of(std::array{1.0, 2.0, 3.0});
  spec.switch_latency = draw.one_of(std::array{Duration{0}, Duration{1}, Duration{3'000'000}});
  if (spec.fabric == FabricKind::kClos) {
    spec.gpus_per_pod = static_cast<int>(spec.gpus_per_node * (2 + draw.below(3)));
  }
  const bool rails =
      spec.fabric == FabricKind::kRailOptimized || spec.fabric == FabricKind::kRailOnly;
  if (rails && spec.node_interconnect != "pcie" && draw.below(2) == 0) {
    spec.off_rail = OffRail::kNvlink;
  }
  gpus = spec.gpus_per_node * (2 + draw.below(7)) - draw.below(spec.gpus_per_node);
  return spec;
}

/// Up to a sixth of the cables, and now and then a node.
inline void fail_some(Draw& draw, std::int64_t gpus, TopologySpec& spec) {
  if (draw.below(3) == 0) {
    spec.failed_nodes = {draw.below(gpus / spec.gpus_per_node)};
  }
  const Topology whole = *Topology::build(spec, gpus);
  const auto links = static_cast<std::int64_t>(whole.links().size());
  const std::int64_t failing = draw.below(links / 12 + 2);
  for (std::int64_t at = 0; at < failing; ++at) {
    spec.failed_links.push_back(whole.links()[static_cast<std::size_t>(draw.below(links))].id);
  }
}

inline std::string described(const TopologySpec& spec, std::int64_t gpus) {
  std::string text =
      std::to_string(gpus) + " GPUs, fabric " + std::to_string(static_cast<int>(spec.fabric)) +
      ", " + spec.node_interconnect + ", " + std::to_string(spec.gpus_per_node) + "/" +
      std::to_string(spec.nics_per_node) + "/" + std::to_string(spec.nodes_per_leaf_group) +
      ", off rail " + std::to_string(static_cast<int>(spec.off_rail)) + ", failed";
  for (const std::string& id : spec.failed_links) {
    text += " " + id;
  }
  return text;
}

}  // namespace foretrain::testing_support
