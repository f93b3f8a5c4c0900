#include "tests/support/tiny_cluster.h"

#include "foretrain/topology.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

using std::chrono::microseconds;
using testing_support::tiny_cluster;

constexpr std::int64_t kGiga = 1'000'000'000;

Topology build(const TopologySpec& spec, std::int64_t gpus) {
  Expected<Topology> topology = Topology::build(spec, gpus);
  EXPECT_TRUE(topology.has_value());
  return std::move(*topology);
}

std::vector<std::int64_t> strided(std::int64_t count, std::int64_t stride, std::int64_t first = 0) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t at = 0; at < count; ++at) {
    ranks.push_back(first + at * stride);
  }
  return ranks;
}

/// Shape of the first of all groups of this kind: one from every rank that no other holds.
GroupShape among_sisters(const Topology& topology, std::int64_t count, std::int64_t stride) {
  std::vector<std::vector<std::int64_t>> groups;
  for (std::int64_t block = 0; block < topology.gpus(); block += count * stride) {
    for (std::int64_t first = block; first < block + stride; ++first) {
      groups.push_back(strided(count, stride, first));
    }
  }
  return topology.group_shapes(groups).front();
}

TEST(GroupShape, InsideANode) {
  const GroupShape shape = build(tiny_cluster(), 16).group_shape(strided(2, 2, 4));
  EXPECT_EQ(shape.size, 2);
  EXPECT_EQ(shape.nodes, 1);
  EXPECT_EQ(shape.ranks_per_node, 2);
  EXPECT_TRUE(shape.even);
  EXPECT_EQ(shape.inside.bytes_per_second, 100 * kGiga);
  EXPECT_EQ(shape.inside_latency, microseconds(2));
  EXPECT_EQ(shape.slowest_link_inside, "gpu4>n1.nvs0");
  EXPECT_EQ(shape.slowest_link_across, "");
}

// Rule: one rank per node talks over its own NIC; the slowest hop's latency counts. Stride 4 over
// two leaf groups: 18 us over a spine.
TEST(GroupShape, OneRankPerNode) {
  const GroupShape shape = build(tiny_cluster(), 16).group_shape(strided(4, 4, 1));
  EXPECT_EQ(shape.nodes, 4);
  EXPECT_EQ(shape.ranks_per_node, 1);
  EXPECT_EQ(shape.across.bytes_per_second, 10 * kGiga);
  EXPECT_EQ(shape.across_latency, microseconds(18));
  EXPECT_EQ(shape.slowest_link_across, "n0.nic1>leaf0.1");
}

// Rule: ranks need not be evenly spread; the flag says so. Nodes hold 4, 4 and 1 of 0..8.
TEST(GroupShape, Uneven) {
  const GroupShape shape = build(tiny_cluster(), 16).group_shape(strided(9, 1));
  EXPECT_EQ(shape.nodes, 3);
  EXPECT_EQ(shape.ranks_per_node, 4);
  EXPECT_FALSE(shape.even);
  EXPECT_TRUE(build(tiny_cluster(), 16).group_shape(strided(8, 1)).even);
}

// Rule: a group that comes back to a node counts it once.
TEST(GroupShape, InterleavedNodes) {
  const std::vector<std::int64_t> ranks = {0, 4, 1, 5};
  const GroupShape shape = build(tiny_cluster(), 8).group_shape(ranks);
  EXPECT_EQ(shape.nodes, 2);
  EXPECT_EQ(shape.ranks_per_node, 2);
  EXPECT_TRUE(shape.even);
}

// Rule: sister groups share their node's NICs fairly: two NICs of 10 GB/s for four GPUs, 5 GB/s
// each; a group alone has them for itself; PCIe caps what one GPU gets.
TEST(GroupShape, NicsAreShared) {
  TopologySpec spec = tiny_cluster();
  spec.nics_per_node = 2;
  const Topology shared = build(spec, 8);
  EXPECT_EQ(among_sisters(shared, 2, 4).across.bytes_per_second, 5 * kGiga);
  EXPECT_EQ(shared.group_shape(strided(2, 4)).across.bytes_per_second, 10 * kGiga);
  EXPECT_EQ(shared.group_shape(strided(4, 2)).across.bytes_per_second, 10 * kGiga)
      << "one ring over two of four GPUs, each beside a NIC of its own";
  EXPECT_EQ(shared.group_shape(strided(8, 1)).across.bytes_per_second, 5 * kGiga);
  spec.nics_per_node = 4;
  spec.pcie_bandwidth = {4 * kGiga};
  const GroupShape capped = build(spec, 8).group_shape(strided(2, 4));
  EXPECT_EQ(capped.across.bytes_per_second, 4 * kGiga);
  EXPECT_EQ(capped.slowest_link_across, "gpu0>n0.nic0");
}

/// 8 leaf groups of 2 nodes, leaf to spine 1:4.
TopologySpec oversubscribed() {
  TopologySpec spec = tiny_cluster();
  spec.oversubscription = 4.0;
  return spec;
}

// Rule: a ring and its sisters load the uplinks of a leaf group only with the edges that leave it.
// Two nodes of a group's ring in each leaf group: one of two edges leaves, 4 / 2 = 2 times too
// much: 5 GB/s.
TEST(GroupShape, OversubscribedRing) {
  const Topology topology = build(oversubscribed(), 64);
  EXPECT_EQ(among_sisters(topology, 16, 4).across.bytes_per_second, 5 * kGiga);
  // One node in each leaf group: every edge leaves.
  EXPECT_EQ(among_sisters(topology, 8, 8).across.bytes_per_second, 10 * kGiga / 4);
  // Half of that when no sister runs on the other node of the leaf groups.
  EXPECT_EQ(topology.group_shape(strided(8, 8)).across.bytes_per_second, 10 * kGiga / 2);
  // Inside one leaf group nothing leaves.
  EXPECT_EQ(among_sisters(topology, 2, 4).across.bytes_per_second, 10 * kGiga);
  EXPECT_EQ(topology.group_shape(strided(8, 8)).slowest_link_across, "leaf0.0>spine0");
}

// Rule: all-to-all leaves a rail's leaf with all but the partners on it: of 60 in other nodes one,
// on the same rail of the leaf group's other node: 10 / (4 * 59/60).
TEST(GroupShape, OversubscribedAllPairs) {
  const GroupShape shape = build(oversubscribed(), 64).group_shape(strided(64, 1));
  EXPECT_NEAR(static_cast<double>(shape.across_all_pairs.bytes_per_second),
              10e9 / (4.0 * 59.0 / 60.0),
              2.0);
  EXPECT_LE(shape.across_all_pairs, shape.across);
}

// Rule: data-parallel rings that cross a pod's border once in many hops are not slowed by 1:7. Pods
// of 16 nodes, ring of one node in two: 8 members to a pod, sisters fill the pod, 2 nodes' worth
// of edges leave of 16: load 1/8 * 7 < 1. A pair a whole pod apart gets 1/7.
TEST(GroupShape, PodBorder) {
  TopologySpec spec = tiny_cluster();
  spec.fabric = FabricKind::kClos;
  spec.gpus_per_pod = 64;
  spec.pod_oversubscription = 7.0;
  const Topology topology = build(spec, 256);
  EXPECT_EQ(among_sisters(topology, 32, 8).across.bytes_per_second, 10 * kGiga);
  EXPECT_EQ(topology.group_shape(strided(2, 64)).across.bytes_per_second, 10 * kGiga);
  const GroupShape pair = among_sisters(topology, 2, 64);
  EXPECT_NEAR(static_cast<double>(pair.across.bytes_per_second), 10e9 / 7.0, 1.0);
  EXPECT_EQ(pair.slowest_link_across, "pod0.spine0>core0");
  EXPECT_EQ(pair.across_latency, microseconds(2 * (1 + 3) + 4 * 5));
}

// Rule: a pair's latency is the route's, whatever the fabric (oracle: the drawn graph).
TEST(GroupShape, LatencyIsTheRoutes) {
  for (const FabricKind fabric :
       {FabricKind::kRailOptimized, FabricKind::kFatTree, FabricKind::kClos}) {
    for (const char* interconnect : {"nvswitch", "pcie"}) {
      TopologySpec spec = tiny_cluster();
      spec.fabric = fabric;
      spec.gpus_per_pod = 16;
      spec.node_interconnect = interconnect;
      const Topology topology = build(spec, 30);
      for (std::int64_t from = 0; from < 30; from += 3) {
        for (std::int64_t to = 0; to < 30; ++to) {
          if (from == to) {
            continue;
          }
          const std::vector<std::int64_t> pair = {from, to};
          const GroupShape shape = topology.group_shape(pair);
          Duration latency{};
          for (const std::int32_t link : topology.route(from, to)) {
            latency += topology.links()[static_cast<std::size_t>(link)].latency;
          }
          ASSERT_EQ(shape.nodes > 1 ? shape.across_latency : shape.inside_latency, latency)
              << from << " to " << to;
        }
      }
    }
  }
}

// Rule: link ids it names exist in the drawing.
TEST(GroupShape, NamesRealLinks) {
  TopologySpec spec = tiny_cluster();
  spec.fabric = FabricKind::kClos;
  spec.gpus_per_pod = 16;
  spec.pod_oversubscription = 3.0;
  spec.oversubscription = 2.0;
  const Topology topology = build(spec, 64);
  const auto drawn = [&](const std::string& id) {
    const auto links = topology.links();
    return std::any_of(links.begin(), links.end(), [&](const Link& link) { return link.id == id; });
  };
  for (const auto& [count, stride] : {std::pair{2, 1}, {2, 4}, {4, 8}, {4, 16}, {16, 4}, {64, 1}}) {
    const GroupShape shape = topology.group_shape(strided(count, stride));
    EXPECT_EQ(shape.ranks_per_node > 1, drawn(shape.slowest_link_inside)) << count << " " << stride;
    EXPECT_EQ(shape.nodes > 1, drawn(shape.slowest_link_across)) << shape.slowest_link_across;
  }
}

}  // namespace
}  // namespace foretrain
