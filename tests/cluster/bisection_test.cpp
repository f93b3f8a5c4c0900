#include "tests/support/tiny_cluster.h"

#include "foretrain/topology.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

using testing_support::tiny_cluster;

constexpr std::int64_t kGiga = 1'000'000'000;

std::int64_t bisection(const TopologySpec& spec, std::int64_t gpus) {
  const Expected<Topology> topology = Topology::build(spec, gpus);
  EXPECT_TRUE(topology.has_value());
  return topology->bisection_bandwidth().bytes_per_second;
}

// Rule: full bisection gives every NIC of the smaller half its full rate. n nodes of 4 NICs of
// 10 GB/s: n / 2 * 40 GB/s.
TEST(Bisection, FullFabrics) {
  for (const FabricKind fabric : {FabricKind::kRailOptimized, FabricKind::kFatTree}) {
    TopologySpec spec = tiny_cluster();
    spec.fabric = fabric;
    EXPECT_EQ(bisection(spec, 8), 40 * kGiga);
    EXPECT_EQ(bisection(spec, 16), 80 * kGiga);
    EXPECT_EQ(bisection(spec, 20), 80 * kGiga) << "5 nodes: 2 against 3";
    EXPECT_EQ(bisection(spec, 64), 320 * kGiga);
  }
}

// Rule: leaf groups on either side: the cut is the smaller side's uplinks, 1 / oversubscription of
// its NICs. 8 nodes, halves of 4: 160 GB/s / 2.
TEST(Bisection, Oversubscribed) {
  TopologySpec spec = tiny_cluster();
  spec.oversubscription = 2.0;
  EXPECT_EQ(bisection(spec, 32), 80 * kGiga);
  EXPECT_EQ(bisection(spec, 8), 40 * kGiga) << "one leaf group: no uplink in the way";
}

// Rule: pods on either side: 1 / pod_oversubscription of the NICs. Pods of 16 GPUs, 2 against 2:
// 320 GB/s / 8.
TEST(Bisection, Pods) {
  TopologySpec spec = tiny_cluster();
  spec.fabric = FabricKind::kClos;
  spec.gpus_per_pod = 16;
  spec.pod_oversubscription = 8.0;
  EXPECT_EQ(bisection(spec, 64), 40 * kGiga);
}

// Rule: in one node the halves of its GPUs; one GPU has no halves.
TEST(Bisection, OneNode) {
  TopologySpec spec = tiny_cluster();
  EXPECT_EQ(bisection(spec, 4), 200 * kGiga);
  EXPECT_EQ(bisection(spec, 3), 100 * kGiga);
  EXPECT_EQ(bisection(spec, 1), 0);
}

// Rule: a slow PCIe link in front of the NIC is the cut.
TEST(Bisection, PcieLimits) {
  TopologySpec spec = tiny_cluster();
  spec.pcie_bandwidth = {4 * kGiga};
  EXPECT_EQ(bisection(spec, 8), 16 * kGiga);
}

}  // namespace
}  // namespace foretrain
