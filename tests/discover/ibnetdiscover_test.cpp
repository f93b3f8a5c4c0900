#include "tests/support/fabric_text.h"

#include "foretrain/discover.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

/// Rule: a fabric that ibnetdiscover lists is read as it is, cable by cable, and told in figures
/// that follow from how it was built.
namespace foretrain {
namespace {

using test::FabricText;
using test::RailFabric;

constexpr std::int64_t kNdr = 50'000'000'000;

FabricDiscovery read(const std::string& text) {
  const Expected<FabricDiscovery> read = parse_ibnetdiscover(text);
  EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().list.front().message);
  return read.value_or(FabricDiscovery());
}

// Of the size of a cluster that is published as ibnetdiscover prints it: 40 switches, 582 adapters
// of which 40 are in the switches. Here: 8 groups of 17 hosts on 4 rails, but for the last host,
// which has two adapters; 32 leaves, 8 spines, two cables from each leaf to each spine.
FabricText cluster() {
  FabricText text;
  std::vector<int> switches;
  for (int at = 0; at < 40; ++at) {
    switches.push_back(text.add("Switch", "MF0;sw" + std::to_string(at) + ":MQM9701/U1"));
  }
  for (int leaf = 8; leaf < 40; ++leaf) {
    for (int cable = 0; cable < 16; ++cable) {
      text.connect(leaf, cable / 2);
    }
  }
  for (int host = 0; host < 136; ++host) {
    for (int rail = 0; rail < (host == 135 ? 2 : 4); ++rail) {
      text.hang("node" + std::to_string(host) + " HCA-" + std::to_string(rail + 1),
                8 + host / 17 * 4 + rail);
    }
  }
  for (const int at : switches) {
    text.hang("Mellanox Technologies Aggregation Node", at);
  }
  return text;
}

TEST(Ibnetdiscover, CountsOfACluster) {
  const FabricDiscovery found = read(cluster().text());
  EXPECT_EQ(found.fabric.switches.size(), 40U);
  EXPECT_EQ(found.adapters, 582);
  EXPECT_EQ(found.aggregation_nodes, 40);
  EXPECT_EQ(found.fabric.other_adapters, 40);
  EXPECT_EQ(found.unnamed_adapters, 0);
  EXPECT_EQ(found.fabric.hosts.size(), 136U);
  EXPECT_EQ(found.fabric.cables.size(), 32U * 16U);
  EXPECT_EQ(found.links, 2 * (582 + 32 * 16));
}

TEST(Ibnetdiscover, FiguresOfACluster) {
  const FabricSummary told = summarise(read(cluster().text()));
  EXPECT_EQ(told.switches_by_level, (std::vector<std::int64_t>{32, 8}));
  EXPECT_EQ(told.adapters, 542);
  EXPECT_EQ(told.adapters_by_rate, (std::map<std::int64_t, std::int64_t>{{kNdr, 542}}));
  EXPECT_EQ(told.cables_by_rate, (std::map<std::int64_t, std::int64_t>{{kNdr, 512}}));
  EXPECT_EQ(told.hosts_by_adapters, (std::map<std::int64_t, std::int64_t>{{2, 1}, {4, 135}}));
  ASSERT_EQ(told.rails.size(), 4U);
  EXPECT_EQ(told.rails[0].names, (std::set<std::string>{"HCA-1"}));
  EXPECT_EQ(told.rails[0].switches, (std::set<std::int32_t>{8, 12, 16, 20, 24, 28, 32, 36}));
  EXPECT_EQ(told.rails[0].adapters, 136);
  EXPECT_EQ(told.rails[3].adapters, 135);
  ASSERT_EQ(told.leaves.size(), 32U);
  EXPECT_EQ(told.leaves[0].down.bytes_per_second, 17 * kNdr);
  EXPECT_EQ(told.leaves[0].up.bytes_per_second, 16 * kNdr);
  // 68 hosts are four whole groups: their 16 leaves have 16 cables up each, fewer than the
  // adapters.
  EXPECT_EQ(told.bisection.bytes_per_second, 16 * 16 * kNdr);
  ASSERT_EQ(told.odd.size(), 1U);
  EXPECT_NE(told.odd[0].find("node135"), std::string::npos) << told.odd[0];
}

// A border of one host against three cannot carry more than that host's adapters; below a leaf
// nothing needs a cable upwards.
TEST(Ibnetdiscover, BisectionIsTheNarrowestCut) {
  const auto bisection = [](const RailFabric& shape) {
    return summarise(read(shape.build().text())).bisection.bytes_per_second;
  };
  EXPECT_EQ(bisection({.groups = 1, .hosts = 3, .rails = 2, .spines = 1}), 2 * kNdr);
  EXPECT_EQ(bisection({.groups = 1, .hosts = 6, .rails = 1, .spines = 1}), 3 * kNdr);
  EXPECT_EQ(bisection({.groups = 2, .hosts = 6, .rails = 3, .spines = 2, .cables = 2}),
            3 * 4 * kNdr);
  EXPECT_EQ(bisection({.groups = 2, .hosts = 2, .rails = 3, .spines = 4, .cables = 3}),
            3 * 2 * kNdr);
}

TEST(Ibnetdiscover, RatesAreWidthsTimesSpeeds) {
  const std::pair<const char*, std::int64_t> kRates[] = {{"1xSDR", 2'500},
                                                         {"4xSDR", 10'000},
                                                         {"4xDDR", 20'000},
                                                         {"4xQDR", 40'000},
                                                         {"4xFDR10", 41'000},
                                                         {"4xFDR", 56'000},
                                                         {"4xEDR", 100'000},
                                                         {"4xHDR", 200'000},
                                                         {"2xHDR", 100'000},
                                                         {"2xNDR", 200'000},
                                                         {"4xNDR", 400'000},
                                                         {"4xXDR", 800'000},
                                                         {"8xEDR", 200'000},
                                                         {"12xQDR", 120'000},
                                                         {"12xSDR", 30'000}};
  for (const auto& [word, megabits] : kRates) {
    FabricText text;
    text.hang("a hca", text.add("Switch", "s"), word);
    const FabricDiscovery found = read(text.text());
    ASSERT_EQ(found.fabric.hosts.size(), 1U) << word;
    EXPECT_EQ(found.fabric.hosts[0].adapters[0].rate.bytes_per_second, megabits * 125'000) << word;
  }
}

TEST(Ibnetdiscover, NamesAreSortedAsPeopleCount) {
  FabricText text;
  const int leaf = text.add("Switch", "leaf");
  for (const char* name : {"n10 mlx5_2", "n2 mlx5_10", "n2 mlx5_9", "n1 mlx5_0"}) {
    text.hang(name, leaf);
  }
  const FabricDiscovery found = read(text.text());
  ASSERT_EQ(found.fabric.hosts.size(), 3U);
  EXPECT_EQ(found.fabric.hosts[0].name, "n1");
  EXPECT_EQ(found.fabric.hosts[1].name, "n2");
  EXPECT_EQ(found.fabric.hosts[1].adapters[0].name, "mlx5_9");
  EXPECT_EQ(found.fabric.hosts[1].adapters[1].name, "mlx5_10");
  EXPECT_EQ(found.fabric.hosts[1].adapters[1].port, 2) << "the second that was hung";
  EXPECT_EQ(found.fabric.hosts[2].name, "n10");
}

// An adapter that nobody has named, or two of one name, belong to no host; two ports of one
// adapter are two of its host.
TEST(Ibnetdiscover, AdaptersWithoutAHost) {
  FabricText text;
  const int leaf = text.add("Switch", "leaf");
  for (const char* name : {"MT4129 ConnectX7   Mellanox Technologies",
                           "localhost mlx5_0",
                           "localhost mlx5_0",
                           "MT4129 ConnectX7",
                           "alone"}) {
    text.hang(name, leaf);
  }
  text.connect(text.hang("node1 mlx5_0", leaf), leaf, "4xHDR");
  const FabricDiscovery found = read(text.text());
  EXPECT_EQ(found.unnamed_adapters, 5);
  EXPECT_EQ(found.fabric.other_adapters, 5);
  EXPECT_EQ(found.adapters, 6);
  ASSERT_EQ(found.fabric.hosts.size(), 1U);
  ASSERT_EQ(found.fabric.hosts[0].adapters.size(), 2U);
  EXPECT_EQ(found.fabric.hosts[0].adapters[0].name, "mlx5_0");
  EXPECT_EQ(found.fabric.hosts[0].adapters[1].name, "mlx5_0/2");
  EXPECT_EQ(found.fabric.hosts[0].adapters[1].rate.bytes_per_second, kNdr / 2);
}

TEST(Ibnetdiscover, SwitchesOfOneNameAreToldApart) {
  FabricText text;
  const int first = text.add("Switch", "leaf");
  text.connect(first, text.add("Switch", "leaf"));
  const FabricDiscovery found = read(text.text());
  EXPECT_EQ(found.fabric.switches, (std::vector<std::string>{"leaf S-1000", "leaf S-1001"}));
  EXPECT_EQ(summarise(found).switches_without_hosts_in_reach, 2);
}

TEST(Ibnetdiscover, DotHasEverySwitchAndTheNumberOfCables) {
  const RailFabric shape{.groups = 1, .hosts = 3, .rails = 1, .spines = 1, .cables = 5};
  const std::string dot = fabric_dot(read(shape.build().text()), "small");
  EXPECT_TRUE(dot.starts_with("graph \"small\" {"));
  EXPECT_NE(dot.find("s1 -- s0 [label=\"5\"]"), std::string::npos) << dot;
  EXPECT_NE(dot.find("3 hosts"), std::string::npos) << dot;
}

}  // namespace
}  // namespace foretrain
