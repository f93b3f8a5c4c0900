#include "tests/support/tiny_cluster.h"

#include "foretrain/topology.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

using testing_support::tiny_cluster;
using Ranks = std::vector<std::int64_t>;

Topology build(const TopologySpec& spec, std::int64_t gpus) {
  Expected<Topology> topology = Topology::build(spec, gpus);
  EXPECT_TRUE(topology.has_value());
  return std::move(*topology);
}

std::map<std::string, double> loads(const Topology& topology,
                                    const Ranks& ranks,
                                    TrafficPattern pattern) {
  std::map<std::string, double> by_id;
  for (const LinkUse& use : topology.pattern_loads(ranks, pattern)) {
    by_id[topology.links()[static_cast<std::size_t>(use.link)].id] += use.weight;
  }
  return by_id;
}

// Rule: in one node a ring takes each member's link up and down once.
TEST(PatternLoads, RingInsideANode) {
  const std::map<std::string, double> expected = {
      {"gpu4>n1.nvs0", 1.0}, {"gpu6>n1.nvs0", 1.0}, {"n1.nvs0>gpu4", 1.0}, {"n1.nvs0>gpu6", 1.0}};
  EXPECT_EQ(loads(build(tiny_cluster(), 8), {4, 6}, TrafficPattern::kRing), expected);
}

// Rule: two members in each of two nodes: half of what a rank sends stays in the node, half goes
// over its own rail.
TEST(PatternLoads, RingOverRails) {
  const auto by_id = loads(build(tiny_cluster(), 8), {0, 1, 4, 5}, TrafficPattern::kRing);
  for (const char* id : {"gpu0>n0.nvs0",
                         "n0.nvs0>gpu1",
                         "gpu0>n0.nic0",
                         "n0.nic0>leaf0.0",
                         "leaf0.0>n1.nic0",
                         "n1.nic0>gpu4",
                         "n1.nic1>leaf0.1"}) {
    EXPECT_DOUBLE_EQ(by_id.at(id), 0.5) << id;
  }
  EXPECT_EQ(by_id.size(), 8U + 4U * 4U);
}

// Rule: every rank sends one byte and receives one; what enters a switch or a NIC leaves it. Holds
// for groups that fill nodes unevenly, come back to a node or have one member in each.
TEST(PatternLoads, Conserved) {
  const std::vector<Ranks> groups = {{0, 1, 2, 3},
                                     {0, 1, 2, 3, 4},
                                     {0, 4, 8, 12, 16},
                                     {0, 5, 1, 4},
                                     {3, 4, 5, 6, 9, 17, 18},
                                     {2, 3, 4, 6, 7, 8, 9, 10, 11}};
  for (const FabricKind fabric :
       {FabricKind::kRailOptimized, FabricKind::kFatTree, FabricKind::kClos}) {
    TopologySpec spec = tiny_cluster();
    spec.fabric = fabric;
    spec.gpus_per_pod = 8;
    const Topology topology = build(spec, 20);
    for (const Ranks& ranks : groups) {
      for (const TrafficPattern pattern : {TrafficPattern::kRing, TrafficPattern::kAllPairs}) {
        std::vector<double> in(topology.devices().size(), 0.0);
        std::vector<double> out = in;
        for (const LinkUse& use : topology.pattern_loads(ranks, pattern)) {
          const Link& link = topology.links()[static_cast<std::size_t>(use.link)];
          out[static_cast<std::size_t>(link.from)] += use.weight;
          in[static_cast<std::size_t>(link.to)] += use.weight;
        }
        std::vector<double> expected(out.size(), 0.0);
        for (const std::int64_t rank : ranks) {
          expected[static_cast<std::size_t>(rank)] = 1.0;
        }
        for (std::size_t at = 0; at < out.size(); ++at) {
          const double sent =
              topology.devices()[at].kind == DeviceKind::kGpu ? expected[at] : in[at];
          ASSERT_NEAR(out[at], sent, 1e-12) << topology.devices()[at].name;
          ASSERT_NEAR(in[at], out[at], 1e-12) << topology.devices()[at].name;
        }
      }
    }
  }
}

// Four ranks of two nodes, each sending a third to each other: what is for the far node crosses on
// the sender's own rail, two thirds, and half of that goes on over NVLink there.
TEST(PatternLoads, ForwardedCrossesOnItsOwnRail) {
  const Topology topology = build(tiny_cluster(), 8);
  const auto by_id = loads(topology, {0, 1, 4, 5}, TrafficPattern::kForwarded);
  for (const char* gpu : {"0", "1", "4", "5"}) {
    const std::string node = gpu < std::string("4") ? "0" : "1";
    EXPECT_NEAR(by_id.at("gpu" + std::string(gpu) + ">n" + node + ".nvs0"), 2.0 / 3, 1e-12) << gpu;
  }
  double nics = 0;
  for (const auto& [id, weight] : by_id) {
    EXPECT_EQ(id.find("spine"), std::string::npos) << id;
    nics +=
        id.find(".nic") != std::string::npos && id.find(">leaf") != std::string::npos ? weight : 0;
  }
  EXPECT_NEAR(nics, 4 * 2.0 / 3, 1e-12);
}

// Rule: nobody to talk to, nothing sent.
TEST(PatternLoads, Alone) {
  EXPECT_TRUE(build(tiny_cluster(), 8).pattern_loads(Ranks{3}, TrafficPattern::kRing).empty());
  EXPECT_TRUE(build(tiny_cluster(), 8).pattern_loads(Ranks{3}, TrafficPattern::kAllPairs).empty());
}

}  // namespace
}  // namespace foretrain
