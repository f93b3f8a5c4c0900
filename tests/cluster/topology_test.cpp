#include "foretrain/topology.h"

#include "tests/support/tiny_cluster.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

using testing_support::tiny_cluster;

Topology build(const TopologySpec& spec, std::int64_t gpus) {
  Expected<Topology> topology = Topology::build(spec, gpus);
  EXPECT_TRUE(topology.has_value());
  return std::move(*topology);
}

std::map<DeviceKind, std::int64_t> count_kinds(const Topology& topology) {
  std::map<DeviceKind, std::int64_t> counts;
  for (const Device& device : topology.devices()) {
    ++counts[device.kind];
  }
  return counts;
}

const Link* find_link(const Topology& topology, const std::string& id) {
  const auto links = topology.links();
  const auto found =
      std::find_if(links.begin(), links.end(), [&](const Link& link) { return link.id == id; });
  return found == links.end() ? nullptr : &*found;
}

// Rule: GPUs come first and equal their ranks; every link has a twin the other way, its id is
// unique and made of its ends' names, and its latency is at least a picosecond.
TEST(Topology, WellFormed) {
  for (const std::int64_t gpus : {1, 3, 4, 8, 15, 16, 33}) {
    const Topology topology = build(tiny_cluster(), gpus);
    for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
      const Device& device = topology.devices()[static_cast<std::size_t>(gpu)];
      ASSERT_EQ(device.kind, DeviceKind::kGpu);
      ASSERT_EQ(device.index, gpu);
      ASSERT_EQ(device.node, gpu / 4);
      ASSERT_EQ(device.name, "gpu" + std::to_string(gpu));
    }
    std::set<std::string> ids;
    for (const Link& link : topology.links()) {
      const std::string& from = topology.devices()[static_cast<std::size_t>(link.from)].name;
      const std::string& to = topology.devices()[static_cast<std::size_t>(link.to)].name;
      ASSERT_EQ(link.id, from + ">" + to);
      ASSERT_TRUE(ids.insert(link.id).second) << link.id;
      ASSERT_GE(link.latency.count(), 1);
      ASSERT_GT(link.capacity.bytes_per_second, 0);
    }
    for (const Link& link : topology.links()) {
      const std::size_t cut = link.id.find('>');
      ASSERT_EQ(ids.count(link.id.substr(cut + 1) + ">" + link.id.substr(0, cut)), 1U);
    }
  }
}

// Rule: rail-optimised: NIC i of every node of a leaf group hangs on the group's leaf i. 5 nodes,
// two to a group: 3 groups of 4 leaves; two uplinks for two ports.
TEST(Topology, RailOptimized) {
  const Topology topology = build(tiny_cluster(), 20);
  EXPECT_EQ(topology.nodes(), 5);
  const auto counts = count_kinds(topology);
  EXPECT_EQ(counts.at(DeviceKind::kNvSwitch), 5);
  EXPECT_EQ(counts.at(DeviceKind::kNic), 20);
  EXPECT_EQ(counts.at(DeviceKind::kLeaf), 12);
  EXPECT_EQ(counts.at(DeviceKind::kSpine), 2);
  EXPECT_NE(find_link(topology, "gpu17>n4.nvs0"), nullptr);
  EXPECT_NE(find_link(topology, "gpu17>n4.nic1"), nullptr);
  EXPECT_NE(find_link(topology, "n3.nic2>leaf1.2"), nullptr);
  EXPECT_EQ(find_link(topology, "n3.nic2>leaf1.3"), nullptr);
  EXPECT_NE(find_link(topology, "leaf2.3>spine1"), nullptr);
}

// Rule: a GPU reaches its node's switch at its full NVLink rate, a NIC its leaf at the NIC's rate,
// a leaf's uplinks together carry its ports over the oversubscription.
TEST(Topology, Capacities) {
  TopologySpec spec = tiny_cluster();
  spec.oversubscription = 2.0;
  const Topology topology = build(spec, 16);
  EXPECT_EQ(find_link(topology, "gpu0>n0.nvs0")->capacity.bytes_per_second, 100'000'000'000);
  EXPECT_EQ(find_link(topology, "gpu0>n0.nic0")->capacity.bytes_per_second, 50'000'000'000);
  EXPECT_EQ(find_link(topology, "n0.nic0>leaf0.0")->capacity.bytes_per_second, 10'000'000'000);
  std::int64_t uplinks = 0;
  for (const Link& link : topology.links()) {
    uplinks += link.id.starts_with("leaf0.0>spine") ? link.capacity.bytes_per_second : 0;
  }
  EXPECT_EQ(uplinks, 2 * 10'000'000'000 / 2);
}

// Rule: a Clos has a switch per leaf group, spines per pod, one core per spine above the pods; a
// pod's uplinks carry its NICs over both oversubscriptions. 8 nodes of 4, pods of 16 GPUs, two
// nodes to a leaf: 2 pods, 4 leaves of 8 ports, 8 spines a pod, 8 cores, 1:4 above.
TEST(Topology, Clos) {
  TopologySpec spec = tiny_cluster();
  spec.fabric = FabricKind::kClos;
  spec.gpus_per_pod = 16;
  spec.pod_oversubscription = 4.0;
  const Topology topology = build(spec, 32);
  const auto counts = count_kinds(topology);
  EXPECT_EQ(counts.at(DeviceKind::kLeaf), 4);
  EXPECT_EQ(counts.at(DeviceKind::kSpine), 16);
  EXPECT_EQ(counts.at(DeviceKind::kCore), 8);
  std::int64_t above = 0;
  for (const Link& link : topology.links()) {
    const bool up = link.id.starts_with("pod1.spine") && link.id.find(">core") != std::string::npos;
    above += up ? link.capacity.bytes_per_second : 0;
  }
  EXPECT_EQ(above, 16 * 10'000'000'000 / 4);
}

// Rule: one node needs no fabric; one leaf needs no spine.
TEST(Topology, NothingNeedless) {
  const auto one_node = count_kinds(build(tiny_cluster(), 4));
  EXPECT_EQ(one_node.count(DeviceKind::kLeaf), 0U);
  TopologySpec spec = tiny_cluster();
  spec.fabric = FabricKind::kFatTree;
  const auto one_leaf = count_kinds(build(spec, 8));
  EXPECT_EQ(one_leaf.at(DeviceKind::kLeaf), 1);
  EXPECT_EQ(one_leaf.count(DeviceKind::kSpine), 0U);
}

// Rule: sizes that cannot be are refused with /cluster/gpus.
TEST(Topology, SizeFaults) {
  TopologySpec spec = tiny_cluster();
  spec.max_gpus = 16;
  const auto refused_at = [&](std::int64_t gpus) {
    const Expected<Topology> topology = Topology::build(spec, gpus);
    return topology ? std::string() : topology.error().list.front().pointer;
  };
  EXPECT_EQ(refused_at(16), "");
  EXPECT_EQ(refused_at(17), "/cluster/gpus");
  EXPECT_EQ(refused_at(0), "/cluster/gpus");
  EXPECT_EQ(refused_at(-8), "/cluster/gpus");
  spec.max_gpus = 0;
  EXPECT_EQ(refused_at(std::int64_t{1} << 53), "/cluster/gpus");
  spec.fabric = FabricKind::kNone;
  EXPECT_EQ(refused_at(4), "");
  EXPECT_EQ(refused_at(5), "/cluster/gpus");
}

// Rule: a file's impossible values are refused by their own names.
TEST(Topology, SpecFaults) {
  const auto refused = [](auto change) {
    TopologySpec spec = tiny_cluster();
    change(spec);
    const Expected<Topology> topology = Topology::build(spec, 8);
    return topology ? std::string() : topology.error().list.front().pointer;
  };
  EXPECT_EQ(refused([](TopologySpec& spec) { spec.gpus_per_node = 0; }), "/gpus_per_node");
  EXPECT_EQ(refused([](TopologySpec& spec) { spec.nvlink_bandwidth = {}; }), "/nvlink_bandwidth");
  EXPECT_EQ(refused([](TopologySpec& spec) { spec.nic_bandwidth = {}; }), "/nic_bandwidth");
  EXPECT_EQ(refused([](TopologySpec& spec) { spec.oversubscription = 0.5; }), "/oversubscription");
  EXPECT_EQ(refused([](TopologySpec& spec) {
              spec.fabric = FabricKind::kClos;
              spec.gpus_per_pod = 6;
            }),
            "/gpus_per_pod");
}

// Rule: the Graphviz text names every device and has an arrow per link.
TEST(Topology, Dot) {
  const Topology topology = build(tiny_cluster(), 8);
  const std::string dot = topology.dot();
  EXPECT_TRUE(dot.starts_with("digraph"));
  for (const Device& device : topology.devices()) {
    EXPECT_NE(dot.find("\"" + device.name + "\""), std::string::npos) << device.name;
  }
  std::size_t arrows = 0;
  for (std::size_t at = dot.find("->"); at != std::string::npos; at = dot.find("->", at + 1)) {
    ++arrows;
  }
  EXPECT_EQ(arrows, topology.links().size());
}

}  // namespace
}  // namespace foretrain
