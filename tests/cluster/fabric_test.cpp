#include "tests/support/tiny_cluster.h"

#include "foretrain/topology.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

using testing_support::tiny_cluster;
using Ids = std::vector<std::string>;
using Ranks = std::vector<std::int64_t>;

Topology build(const TopologySpec& spec,
               std::int64_t gpus,
               Routing routing = Routing::kDestination) {
  Expected<Topology> topology = Topology::build(spec, gpus, routing);
  EXPECT_TRUE(topology.has_value());
  return std::move(*topology);
}

Ids ids(const Topology& topology, std::int64_t from, std::int64_t to) {
  Ids all;
  for (const std::int32_t link : topology.route(from, to)) {
    all.push_back(topology.links()[static_cast<std::size_t>(link)].id);
  }
  return all;
}

TopologySpec rail_only() {
  TopologySpec spec = tiny_cluster();
  spec.fabric = FabricKind::kRailOnly;
  return spec;
}

Ranks everybody(std::int64_t gpus) {
  Ranks ranks;
  for (std::int64_t rank = 0; rank < gpus; ++rank) {
    ranks.push_back(rank);
  }
  return ranks;
}

// Rule: without a meeting of rails, bytes for another rail first cross the sender's NVLink.
TEST(RailOnly, RelaysOverNvlink) {
  const Topology topology = build(rail_only(), 16);
  EXPECT_EQ(ids(topology, 0, 5),
            (Ids{"gpu0>n0.nvs0",
                 "n0.nvs0>gpu1",
                 "gpu1>n0.nic1",
                 "n0.nic1>leaf0.1",
                 "leaf0.1>n1.nic1",
                 "n1.nic1>gpu5"}));
  EXPECT_EQ(ids(topology, 1, 9)[2], "leaf0.1>rail1.spine0");
}

// Rule: no spine sees two rails.
TEST(RailOnly, RailsNeverMeet) {
  const Topology topology = build(rail_only(), 16);
  for (const Link& link : topology.links()) {
    if (link.kind == LinkKind::kFabric && link.id.starts_with("leaf")) {
      const std::string rail = link.id.substr(link.id.find('.') + 1, 1);
      EXPECT_NE(link.id.find(">rail" + rail + ".spine"), std::string::npos) << link.id;
    }
  }
}

// Rule: of the pairs of ranks in different nodes, those on different rails are relayed: 3 of 4
// destinations with 4 rails; none where rails meet.
TEST(RailOnly, ForwardedShare) {
  EXPECT_DOUBLE_EQ(build(rail_only(), 16).group_shape(everybody(16)).forwarded_share, 0.75);
  EXPECT_EQ(build(rail_only(), 16).group_shape(Ranks{0, 4, 8}).forwarded_share, 0.0);
  EXPECT_EQ(build(tiny_cluster(), 16).group_shape(everybody(16)).forwarded_share, 0.0);
}

// Rule: a failed cable goes in both directions; the route takes what is left.
TEST(Failures, RouteAround) {
  TopologySpec spec = tiny_cluster();
  const Ids whole = ids(build(spec, 16), 1, 9);
  spec.failed_links = {whole[2]};
  const Ids around = ids(build(spec, 16), 1, 9);
  EXPECT_EQ(around.size(), whole.size());
  EXPECT_NE(around[2], whole[2]);
  const Topology cut = build(spec, 16);
  const std::string back = whole[2].substr(whole[2].find('>') + 1) + ">leaf0.1";
  for (const Link& link : cut.links()) {
    EXPECT_NE(link.id, whole[2]);
    EXPECT_NE(link.id, back);
  }
}

// Rule: a GPU without its NIC reaches its node only; with PXN the others' rails too.
TEST(Failures, CutOff) {
  TopologySpec spec = tiny_cluster();
  spec.failed_links = {"n0.nic1>leaf0.1"};
  const Topology topology = build(spec, 16);
  EXPECT_FALSE(topology.reachable(1, 5));
  EXPECT_FALSE(topology.reachable(4, 1));
  EXPECT_TRUE(topology.reachable(1, 2));
  EXPECT_TRUE(topology.reachable(0, 5));
  spec.off_rail = OffRail::kNvlink;
  EXPECT_TRUE(build(spec, 16).reachable(1, 4));
}

// Rule: ranks sit on the nodes that work, which keep their numbers.
TEST(Failures, NodesArePassedOver) {
  TopologySpec spec = tiny_cluster();
  spec.failed_nodes = {1};
  const Topology topology = build(spec, 12);
  EXPECT_EQ(topology.nodes(), 3);
  EXPECT_EQ(ids(topology, 4, 5), (Ids{"gpu4>n2.nvs0", "n2.nvs0>gpu5"}));
  EXPECT_EQ(ids(topology, 4, 8),
            (Ids{"gpu4>n2.nic0", "n2.nic0>leaf1.0", "leaf1.0>n3.nic0", "n3.nic0>gpu8"}));
}

// Rule: what does not exist cannot fail; the nearest name is told.
TEST(Failures, UnknownIds) {
  TopologySpec spec = tiny_cluster();
  spec.failed_links = {"n0.nic1>leaf0.l"};
  const Expected<Topology> link = Topology::build(spec, 16);
  ASSERT_FALSE(link.has_value());
  EXPECT_EQ(link.error().list.front().pointer, "/failed_links/0");
  EXPECT_NE(link.error().list.front().hint.find("n0.nic1>leaf0.1"), std::string::npos);
  spec.failed_links.clear();
  spec.failed_nodes = {9};
  const Expected<Topology> node = Topology::build(spec, 16);
  ASSERT_FALSE(node.has_value());
  EXPECT_EQ(node.error().list.front().pointer, "/failed_nodes/0");
}

// Rule: every name at once; links are looked up on what the right ones leave.
TEST(Failures, EveryNameAtOnce) {
  TopologySpec spec = tiny_cluster();
  spec.max_gpus = 16;
  spec.failed_links = {"zz", "n0.nic1>leaf0.1", "n1.nic1>leaf0.1"};
  spec.failed_nodes = {1, 77, 78};
  const Expected<Topology> topology =
      Topology::build(spec, 16, Routing::kDestination, {{"yy", 2.0}, {"n3.nic0>leaf1.0", 2.0}});
  ASSERT_FALSE(topology.has_value());
  Ids pointers;
  for (const Diagnostic& fault : topology.error().list) {
    pointers.push_back(fault.pointer);
  }
  EXPECT_EQ(pointers,
            (Ids{"/failed_nodes/1",
                 "/failed_nodes/2",
                 "/cluster/gpus",
                 "/failed_links/0",
                 "/failed_links/2",
                 "/slow_links/0"}));
  EXPECT_EQ(topology.error().list[2].message, "16 GPUs take 4 nodes, but 3 of 4 are left");
}

std::int64_t most_flows(Routing routing) {
  TopologySpec spec = tiny_cluster();
  spec.fabric = FabricKind::kFatTree;
  spec.nodes_per_leaf_group = 8;
  const Topology topology = build(spec, 64, routing);
  std::map<std::int32_t, std::int64_t> flows;
  for (std::int64_t rank = 0; rank < 32; ++rank) {
    for (const std::int32_t link : topology.route(rank, rank + 32)) {
      ++flows[link];
    }
  }
  std::int64_t most = 0;
  for (const auto& [link, count] : flows) {
    most = std::max(most, count);
  }
  return most;
}

// Rule: at full bisection hashed flows collide, those by destination do not, single ones all do.
TEST(Routings, Collisions) {
  EXPECT_EQ(most_flows(Routing::kDestination), 1);
  EXPECT_GE(most_flows(Routing::kHashed), 3);
  EXPECT_EQ(most_flows(Routing::kSingle), 32);
}

// Rule: shapes by arithmetic and by loads over routes are the same where routes spread evenly
// (oracle: the widest link load of the ring's pattern, alone on the machine).
TEST(Shapes, ArithmeticIsLoadsOverRoutes) {
  for (const FabricKind fabric :
       {FabricKind::kRailOptimized, FabricKind::kFatTree, FabricKind::kRailOnly}) {
    TopologySpec spec = tiny_cluster();
    spec.fabric = fabric;
    const Topology topology = build(spec, 32);
    const Ranks ranks = everybody(32);
    double most = 0.0;
    for (const LinkUse& use : topology.pattern_loads(ranks, TrafficPattern::kRing)) {
      const Link& link = topology.links()[static_cast<std::size_t>(use.link)];
      if (link.kind == LinkKind::kNicLink || link.kind == LinkKind::kFabric) {
        most = std::max(most, use.weight * 4 / static_cast<double>(link.capacity.bytes_per_second));
      }
    }
    EXPECT_NEAR(
        static_cast<double>(topology.group_shape(ranks).across.bytes_per_second), 1.0 / most, 2.0);
  }
}

}  // namespace
}  // namespace foretrain
