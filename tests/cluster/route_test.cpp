#include "tests/support/tiny_cluster.h"

#include "foretrain/topology.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

using std::chrono::microseconds;
using testing_support::tiny_cluster;

Topology build(const TopologySpec& spec, std::int64_t gpus) {
  Expected<Topology> topology = Topology::build(spec, gpus);
  EXPECT_TRUE(topology.has_value());
  return std::move(*topology);
}

const Link& link_at(const Topology& topology, std::int32_t link) {
  return topology.links()[static_cast<std::size_t>(link)];
}

std::vector<std::string> ids(const Topology& topology, std::int64_t from, std::int64_t to) {
  std::vector<std::string> all;
  for (const std::int32_t link : topology.route(from, to)) {
    all.push_back(link_at(topology, link).id);
  }
  return all;
}

Duration latency_of(const Topology& topology, const std::vector<std::int32_t>& route) {
  Duration total{};
  for (const std::int32_t link : route) {
    total += link_at(topology, link).latency;
  }
  return total;
}

using Ids = std::vector<std::string>;

TEST(Route, ToItselfIsEmpty) {
  EXPECT_TRUE(build(tiny_cluster(), 8).route(3, 3).empty());
}

// Rule: inside a node through its switch, at NVLink latency and full NVLink rate.
TEST(Route, InsideANode) {
  const Topology topology = build(tiny_cluster(), 8);
  EXPECT_EQ(ids(topology, 4, 6), (Ids{"gpu4>n1.nvs0", "n1.nvs0>gpu6"}));
  EXPECT_EQ(latency_of(topology, topology.route(4, 6)), microseconds(2));
}

// Rule: same rail, same leaf group: PCIe, NIC, leaf and back; 2 * (1 + 3) us.
TEST(Route, UnderOneLeaf) {
  const Topology topology = build(tiny_cluster(), 16);
  EXPECT_EQ(ids(topology, 1, 5),
            (Ids{"gpu1>n0.nic1", "n0.nic1>leaf0.1", "leaf0.1>n1.nic1", "n1.nic1>gpu5"}));
  EXPECT_EQ(latency_of(topology, topology.route(1, 5)), microseconds(8));
}

// Rule: another rail or another leaf group goes over a spine; 2 * 5 us more.
TEST(Route, OverASpine) {
  const Topology topology = build(tiny_cluster(), 16);
  for (const std::int64_t to : {4, 9, 15}) {
    const std::vector<std::int32_t> route = topology.route(1, to);
    ASSERT_EQ(route.size(), 6U) << to;
    EXPECT_EQ(latency_of(topology, route), microseconds(18)) << to;
  }
}

// Rule: GPUs that share a NIC still talk over NVLink, even when PCIe has the lower latency.
TEST(Route, SharedNicIsNoShortcut) {
  TopologySpec spec = tiny_cluster();
  spec.nics_per_node = 2;
  spec.nvlink_latency = microseconds(100);
  const Topology topology = build(spec, 8);
  EXPECT_EQ(ids(topology, 0, 1), (Ids{"gpu0>n0.nvs0", "n0.nvs0>gpu1"}));
}

// Rule: a route is a chain of links from source to destination.
TEST(Route, IsAChain) {
  for (const FabricKind fabric :
       {FabricKind::kRailOptimized, FabricKind::kFatTree, FabricKind::kClos}) {
    for (const char* interconnect : {"nvswitch", "pcie"}) {
      TopologySpec spec = tiny_cluster();
      spec.fabric = fabric;
      spec.gpus_per_pod = 8;
      spec.node_interconnect = interconnect;
      const Topology topology = build(spec, 22);
      for (std::int64_t from = 0; from < 22; ++from) {
        for (std::int64_t to = 0; to < 22; ++to) {
          std::int32_t at = static_cast<std::int32_t>(from);
          for (const std::int32_t link : topology.route(from, to)) {
            ASSERT_EQ(link_at(topology, link).from, at);
            at = link_at(topology, link).to;
          }
          ASSERT_EQ(at, to);
        }
      }
    }
  }
}

/// Latency of the shortest way by Bellman-Ford over the links, GPUs and foreign NICs not passed.
std::vector<std::int64_t> brute_force(const Topology& topology, std::int64_t from) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 2;
  std::vector<std::int64_t> best(topology.devices().size(), kFar);
  best[static_cast<std::size_t>(from)] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const Link& link : topology.links()) {
      const auto source = static_cast<std::size_t>(link.from);
      const auto target = static_cast<std::size_t>(link.to);
      const bool passes_gpu = link.from < topology.gpus() && link.from != from;
      if (!passes_gpu && best[source] + link.latency.count() < best[target]) {
        best[target] = best[source] + link.latency.count();
        changed = true;
      }
    }
  }
  return best;
}

// Rule: no way is shorter (oracle: Bellman-Ford over all links, no GPU forwarding).
TEST(Route, IsShortest) {
  for (const FabricKind fabric :
       {FabricKind::kRailOptimized, FabricKind::kFatTree, FabricKind::kClos}) {
    TopologySpec spec = tiny_cluster();
    spec.fabric = fabric;
    spec.gpus_per_pod = 16;
    const Topology topology = build(spec, 40);
    for (const std::int64_t from : {0, 13, 39}) {
      const std::vector<std::int64_t> best = brute_force(topology, from);
      for (std::int64_t to = 0; to < 40; ++to) {
        ASSERT_EQ(latency_of(topology, topology.route(from, to)).count(),
                  best[static_cast<std::size_t>(to)])
            << from << " to " << to;
      }
    }
  }
}

// Rule: destinations under one leaf are reached over different spines: with as many uplinks as
// ports and one flow per GPU from one leaf group to another, no link carries two flows.
TEST(Route, SpreadsByDestination) {
  for (const FabricKind fabric : {FabricKind::kRailOptimized, FabricKind::kFatTree}) {
    TopologySpec spec = tiny_cluster();
    spec.fabric = fabric;
    spec.nodes_per_leaf_group = 4;
    const Topology topology = build(spec, 32);
    std::map<std::int32_t, int> flows;
    for (std::int64_t rank = 0; rank < 16; ++rank) {
      for (const std::int32_t link : topology.route(rank, rank + 16)) {
        ++flows[link];
      }
    }
    for (const auto& [link, count] : flows) {
      EXPECT_EQ(count, 1) << link_at(topology, link).id;
    }
  }
}

}  // namespace
}  // namespace foretrain
