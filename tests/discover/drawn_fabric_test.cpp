#include "tests/support/fabric_text.h"
#include "tests/support/tiny_cluster.h"

#include "foretrain/discover.h"
#include "foretrain/topology.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rule: a discovered fabric is drawn cable by cable as its subnet manager lists it, at each
/// cable's own rate; routes follow from it, and there are none where cables do not join. Expected
/// by hand.
namespace foretrain {
namespace {

using std::chrono::microseconds;
using test::FabricText;
using testing_support::tiny_cluster;
using Ids = std::vector<std::string>;
using Cables = std::map<std::string, std::int64_t>;

constexpr std::int64_t kHdr = 25'000'000'000;
constexpr std::int64_t kNdr = 50'000'000'000;

TopologySpec spec_of(const FabricText& text, int gpus_per_node, int nics_per_node) {
  const Expected<FabricDiscovery> read = parse_ibnetdiscover(text.text());
  EXPECT_TRUE(read.has_value());
  TopologySpec spec = tiny_cluster();
  spec.gpus_per_node = gpus_per_node;
  spec.nics_per_node = nics_per_node;
  spec.fabric = FabricKind::kDiscovered;
  spec.discovered = std::make_shared<DiscoveredFabric>(read->fabric);
  return spec;
}

Topology build(const TopologySpec& spec, std::int64_t gpus) {
  Expected<Topology> topology = Topology::build(spec, gpus);
  EXPECT_TRUE(topology.has_value()) << (topology ? "" : topology.error().list.front().message);
  return std::move(*topology);
}

/// What is drawn outside the nodes: id and rate.
Cables drawn(const Topology& topology) {
  Cables cables;
  for (const Link& link : topology.links()) {
    if (link.kind == LinkKind::kFabric || link.kind == LinkKind::kNicLink) {
      cables[link.id] = link.capacity.bytes_per_second;
      EXPECT_EQ(link.latency, microseconds(link.kind == LinkKind::kFabric ? 5 : 3)) << link.id;
    }
  }
  return cables;
}

/// Both directions of cables "a-b", each at the same rate.
void add(const std::vector<std::pair<const char*, const char*>>& ends,
         std::int64_t rate,
         Cables& cables) {
  for (const auto& [a, b] : ends) {
    cables[std::string(a) + ">" + b] = rate;
    cables[std::string(b) + ">" + a] = rate;
  }
}

std::map<std::string, DeviceKind> switches(const Topology& topology) {
  std::map<std::string, DeviceKind> kinds;
  for (const Device& device : topology.devices()) {
    if (device.node < 0) {
      kinds[device.name] = device.kind;
    }
  }
  return kinds;
}

/// The links between the NICs of a route.
Ids way(const Topology& topology, std::int64_t from, std::int64_t to) {
  Ids ids;
  for (const std::int32_t at : topology.route(from, to)) {
    const Link& link = topology.links()[static_cast<std::size_t>(at)];
    if (link.kind != LinkKind::kPcie && link.kind != LinkKind::kNvlink) {
      ids.push_back(link.id);
    }
  }
  return ids;
}

// Two spines of 50 GB/s a cable over two leaves with two hosts of 25 GB/s each. Leaves' ports: 1
// and 2 up, 3 and 4 the hosts; a destination on port 3 is reached over spine 3 mod 2, one on 4 over
// 0.
TEST(DrawnFabric, ATreeOfTwoLevels) {
  FabricText text;
  const int spines[] = {text.add("Switch", "spine0"), text.add("Switch", "spine1")};
  for (int leaf = 0; leaf < 2; ++leaf) {
    const int at = text.add("Switch", "leaf" + std::to_string(leaf));
    text.connect(at, spines[0]);
    text.connect(at, spines[1]);
    for (int host = 0; host < 2; ++host) {
      text.hang("h" + std::to_string(2 * leaf + host) + " mlx5_0", at, "4xHDR");
    }
  }
  const Topology topology = build(spec_of(text, 1, 1), 4);
  Cables expected;
  add({{"leaf0", "spine0"}, {"leaf0", "spine1"}, {"leaf1", "spine0"}, {"leaf1", "spine1"}},
      kNdr,
      expected);
  add({{"n0.nic0", "leaf0"}, {"n1.nic0", "leaf0"}, {"n2.nic0", "leaf1"}, {"n3.nic0", "leaf1"}},
      kHdr,
      expected);
  EXPECT_EQ(drawn(topology), expected);
  EXPECT_EQ(switches(topology),
            (std::map<std::string, DeviceKind>{{"leaf0", DeviceKind::kLeaf},
                                               {"leaf1", DeviceKind::kLeaf},
                                               {"spine0", DeviceKind::kSpine},
                                               {"spine1", DeviceKind::kSpine}}));
  EXPECT_EQ(way(topology, 0, 1), (Ids{"n0.nic0>leaf0", "leaf0>n1.nic0"}));
  EXPECT_EQ(way(topology, 0, 2),
            (Ids{"n0.nic0>leaf0", "leaf0>spine1", "spine1>leaf1", "leaf1>n2.nic0"}));
  EXPECT_EQ(way(topology, 1, 3),
            (Ids{"n1.nic0>leaf0", "leaf0>spine0", "spine0>leaf1", "leaf1>n3.nic0"}));
  EXPECT_EQ(topology.bisection_bandwidth().bytes_per_second, 2 * kHdr);
}

// Two groups of two hosts on two rails, four GPUs and two NICs a node: a rail in a group is one
// leaf, other rails and other groups are over the one spine.
TEST(DrawnFabric, Rails) {
  const test::RailFabric shape{.groups = 2, .hosts = 2, .rails = 2, .spines = 1};
  const Topology topology = build(spec_of(shape.build(), 4, 2), 16);
  const std::string leaf = "MF0;leaf-";
  Cables expected;
  const auto named = [&](int number) { return leaf + std::to_string(number) + ":MQM9701/U1"; };
  for (int node = 0; node < 4; ++node) {
    for (int rail = 0; rail < 2; ++rail) {
      const std::string nic = "n" + std::to_string(node) + ".nic" + std::to_string(rail);
      add({{nic.c_str(), named(node / 2 * 2 + rail).c_str()}}, kNdr, expected);
    }
    add({{named(node).c_str(), "MF0;spine-0:MQM9701/U1"}}, kNdr, expected);
  }
  EXPECT_EQ(drawn(topology), expected);
  EXPECT_EQ(way(topology, 1, 5), (Ids{"n0.nic0>" + named(0), named(0) + ">n1.nic0"}))
      << "GPUs 0 and 1 share NIC 0";
  EXPECT_EQ(way(topology, 3, 7), (Ids{"n0.nic1>" + named(1), named(1) + ">n1.nic1"}));
  const std::string spine = "MF0;spine-0:MQM9701/U1";
  EXPECT_EQ(way(topology, 3, 4),
            (Ids{"n0.nic1>" + named(1),
                 named(1) + ">" + spine,
                 spine + ">" + named(0),
                 named(0) + ">n1.nic0"}));
  EXPECT_EQ(way(topology, 0, 8)[1], named(0) + ">" + spine);
  EXPECT_EQ(way(topology, 0, 8)[2], spine + ">" + named(2));
}

// Three cables side by side are three links, one of them at half the rate; of equal ones the
// destination's port chooses: leaf1's hosts hang on its ports 4 to 6. One that fails takes its own
// two directions.
TEST(DrawnFabric, CablesSideBySide) {
  FabricText text;
  const int left = text.add("Switch", "leaf0");
  const int right = text.add("Switch", "leaf1");
  for (const char* rate : {"4xNDR", "4xHDR", "4xNDR"}) {
    text.connect(left, right, rate);
  }
  for (int host = 0; host < 6; ++host) {
    text.hang("h" + std::to_string(host) + " mlx5_0", host < 3 ? left : right);
  }
  TopologySpec spec = spec_of(text, 1, 1);
  const Topology topology = build(spec, 6);
  Cables cables = drawn(topology);
  EXPECT_EQ(cables.size(), 2U * (3 + 6));
  for (const char* ends : {"leaf0>leaf1", "leaf1>leaf0"}) {
    EXPECT_EQ(cables[ends], kNdr);
    EXPECT_EQ(cables[std::string(ends) + "#2"], kHdr);
    EXPECT_EQ(cables[std::string(ends) + "#3"], kNdr);
  }
  EXPECT_EQ(way(topology, 0, 3)[1], "leaf0>leaf1#2") << "4 mod 3";
  EXPECT_EQ(way(topology, 0, 4)[1], "leaf0>leaf1#3") << "5 mod 3";
  EXPECT_EQ(way(topology, 0, 5)[1], "leaf0>leaf1") << "6 mod 3";
  EXPECT_EQ(topology.bisection_bandwidth().bytes_per_second, 2 * kNdr + kHdr);

  spec.failed_links = {"leaf1>leaf0#3"};
  const Topology cut = build(spec, 6);
  cables.erase("leaf0>leaf1#3");
  cables.erase("leaf1>leaf0#3");
  EXPECT_EQ(drawn(cut), cables);
  EXPECT_EQ(way(cut, 0, 4)[1], "leaf0>leaf1#2") << "5 mod 2";
  EXPECT_EQ(cut.bisection_bandwidth().bytes_per_second, kNdr + kHdr);
}

// Switches without adapters: one between the leaves, one above it that leads nowhere, one alone.
// Only the first is on any way.
TEST(DrawnFabric, SwitchesWithoutAdapters) {
  FabricText text;
  const int left = text.add("Switch", "left");
  const int middle = text.add("Switch", "middle");
  const int right = text.add("Switch", "right");
  const int above = text.add("Switch", "above");
  text.add("Switch", "alone");
  text.connect(left, middle);
  text.connect(middle, right);
  text.connect(above, middle);
  text.hang("a mlx5_0", left);
  text.hang("b mlx5_0", right);
  const Topology topology = build(spec_of(text, 1, 1), 2);
  Cables expected;
  add({{"left", "middle"},
       {"middle", "right"},
       {"above", "middle"},
       {"n0.nic0", "left"},
       {"n1.nic0", "right"}},
      kNdr,
      expected);
  EXPECT_EQ(drawn(topology), expected);
  EXPECT_EQ(switches(topology),
            (std::map<std::string, DeviceKind>{{"left", DeviceKind::kLeaf},
                                               {"right", DeviceKind::kLeaf},
                                               {"middle", DeviceKind::kSpine},
                                               {"above", DeviceKind::kCore},
                                               {"alone", DeviceKind::kCore}}));
  EXPECT_EQ(way(topology, 0, 1),
            (Ids{"n0.nic0>left", "left>middle", "middle>right", "right>n1.nic0"}));
}

// leaf0 has two cables to spine0 and one to spine1, leaf1 one to spine0 alone, leaf2 one to spine1
// alone, leaf3 none. So leaf1 and leaf2 meet by way of leaf0 only, and leaf3 meets nobody.
TEST(DrawnFabric, UnevenWiring) {
  FabricText text;
  const int spines[] = {text.add("Switch", "spine0"), text.add("Switch", "spine1")};
  std::vector<int> leaves;
  for (int leaf = 0; leaf < 4; ++leaf) {
    leaves.push_back(text.add("Switch", "leaf" + std::to_string(leaf)));
  }
  text.connect(leaves[0], spines[0]);
  text.connect(leaves[0], spines[0]);
  text.connect(leaves[0], spines[1], "4xHDR");
  text.connect(leaves[1], spines[0]);
  text.connect(leaves[2], spines[1]);
  for (int host = 0; host < 4; ++host) {
    text.hang("h" + std::to_string(host) + " mlx5_0", leaves[static_cast<std::size_t>(host)]);
  }
  const Topology topology = build(spec_of(text, 1, 1), 4);
  EXPECT_EQ(drawn(topology).size(), 2U * (5 + 4));
  EXPECT_EQ(drawn(topology)["leaf0>spine1"], kHdr);
  EXPECT_EQ(way(topology, 0, 2),
            (Ids{"n0.nic0>leaf0", "leaf0>spine1", "spine1>leaf2", "leaf2>n2.nic0"}));
  // The destination's port on leaf2 is 2: of the two cables between spine0 and leaf0 the first.
  EXPECT_EQ(way(topology, 1, 2),
            (Ids{"n1.nic0>leaf1",
                 "leaf1>spine0",
                 "spine0>leaf0",
                 "leaf0>spine1",
                 "spine1>leaf2",
                 "leaf2>n2.nic0"}));
  for (std::int64_t from = 0; from < 4; ++from) {
    for (std::int64_t to = 0; to < 4; ++to) {
      EXPECT_EQ(topology.reachable(from, to), from == to || (from < 3 && to < 3))
          << from << " to " << to;
    }
  }
  const std::vector<std::int64_t> all = {0, 1, 2, 3};
  EXPECT_EQ(topology.unreachable_pair(all, TrafficPattern::kRing),
            (std::pair<std::int64_t, std::int64_t>{2, 3}));
  EXPECT_EQ(
      topology.unreachable_pair(std::vector<std::int64_t>{2, 0, 1}, TrafficPattern::kAllPairs),
      std::nullopt);
  EXPECT_EQ(topology.why_unreachable(), "the fabric's cables do not join their switches");
}

// Both adapters of the first host on one leaf, those of the second on two: four GPUs share two NICs
// either way, and each pair keeps to its own.
TEST(DrawnFabric, TwoAdaptersOnOneLeaf) {
  FabricText text;
  const int left = text.add("Switch", "leaf0");
  const int right = text.add("Switch", "leaf1");
  text.connect(left, right);
  text.hang("a mlx5_0", left);
  text.hang("a mlx5_1", left, "4xHDR");
  text.hang("b mlx5_0", left);
  text.hang("b mlx5_1", right);
  const Topology topology = build(spec_of(text, 4, 2), 8);
  Cables expected;
  add({{"leaf0", "leaf1"}, {"n0.nic0", "leaf0"}, {"n1.nic0", "leaf0"}, {"n1.nic1", "leaf1"}},
      kNdr,
      expected);
  add({{"n0.nic1", "leaf0"}}, kHdr, expected);
  EXPECT_EQ(drawn(topology), expected);
  EXPECT_EQ(way(topology, 1, 5), (Ids{"n0.nic0>leaf0", "leaf0>n1.nic0"}));
  EXPECT_EQ(way(topology, 2, 4), (Ids{"n0.nic1>leaf0", "leaf0>n1.nic0"}));
  EXPECT_EQ(way(topology, 3, 7), (Ids{"n0.nic1>leaf0", "leaf0>leaf1", "leaf1>n1.nic1"}));
  // A pair alone has the slower of its NICs; the two pairs on NIC 1 of the first share its 25 GB/s.
  const auto across = [&](const std::vector<std::vector<std::int64_t>>& groups) {
    return topology.group_shapes(groups).front().across.bytes_per_second;
  };
  EXPECT_EQ(across({{1, 5}}), kNdr);
  EXPECT_EQ(across({{2, 6}}), kHdr);
  EXPECT_EQ(across({{2, 6}, {3, 7}}), kHdr / 2);
  EXPECT_EQ(across({{0, 4}, {1, 5}, {2, 6}, {3, 7}}), kNdr / 2);
}

}  // namespace
}  // namespace foretrain
