#include "tests/cluster/plain_routes.h"
#include "tests/support/tiny_cluster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rule: routes are those of the documents (MODEL 4.1): shortest, chosen by destination, by a hash
/// or always the first, over another GPU's NVLink where rails do not meet, and there exactly when
/// what failed leaves a way. Oracle: plain_routes.h, link by link, over small fabrics of all kinds.
namespace foretrain {
namespace {

using testing_support::PlainRoutes;
using testing_support::tiny_cluster;
using Links = std::vector<std::int32_t>;

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
TopologySpec random_spec(Draw& draw, std::int64_t& gpus) {
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
void fail_some(Draw& draw, std::int64_t gpus, TopologySpec& spec) {
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

std::string described(const TopologySpec& spec, std::int64_t gpus) {
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

std::string names(const Topology& topology, const Links& links) {
  std::string text;
  for (const std::int32_t link : links) {
    text += topology.links()[static_cast<std::size_t>(link)].id + " ";
  }
  return text;
}

/// Every pair; how many have no way.
std::int64_t compare(const Topology& topology, Routing routing) {
  const PlainRoutes plain(topology);
  std::int64_t parted = 0;
  for (std::int64_t from = 0; from < topology.gpus(); ++from) {
    for (std::int64_t to = 0; to < topology.gpus(); ++to) {
      const std::optional<Links> expected = plain.route(from, to, routing);
      EXPECT_EQ(topology.reachable(from, to), expected.has_value()) << from << " to " << to;
      if (!expected || !topology.reachable(from, to)) {
        ++parted;
        continue;
      }
      const Links route = topology.route(from, to);
      if (routing == Routing::kHashed) {
        EXPECT_TRUE(plain.is_shortest(from, to, route))
            << from << " to " << to << ": " << names(topology, route);
      } else {
        EXPECT_EQ(names(topology, route), names(topology, *expected)) << from << " to " << to;
      }
    }
  }
  return parted;
}

TEST(Router, IsThePlainRuleOnWholeFabrics) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Draw draw(seed);
    std::int64_t gpus = 0;
    const TopologySpec spec = random_spec(draw, gpus);
    for (const Routing routing : {Routing::kDestination, Routing::kSingle, Routing::kHashed}) {
      EXPECT_EQ(compare(*Topology::build(spec, gpus, routing), routing), 0);
      ASSERT_FALSE(testing::Test::HasFailure()) << seed << ": " << described(spec, gpus);
    }
  }
}

TEST(Router, IsThePlainRuleOnWhatFailuresLeave) {
  std::int64_t parted = 0;
  for (std::uint64_t seed = 1000; seed < 1200; ++seed) {
    Draw draw(seed);
    std::int64_t gpus = 0;
    TopologySpec spec = random_spec(draw, gpus);
    fail_some(draw, gpus, spec);
    for (const Routing routing : {Routing::kDestination, Routing::kSingle, Routing::kHashed}) {
      parted += compare(*Topology::build(spec, gpus, routing), routing);
      ASSERT_FALSE(testing::Test::HasFailure()) << seed << ": " << described(spec, gpus);
    }
  }
  EXPECT_GT(parted, 1000) << "failures part some";
}

// Rule: a route depends on the fabric and its ends alone, not on who was asked for before.
TEST(Router, IsDeterministic) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Draw draw(seed);
    std::int64_t gpus = 0;
    const TopologySpec spec = random_spec(draw, gpus);
    for (const Routing routing : {Routing::kDestination, Routing::kHashed, Routing::kSingle}) {
      const Topology forwards = *Topology::build(spec, gpus, routing);
      const Topology backwards = *Topology::build(spec, gpus, routing);
      std::map<std::pair<std::int64_t, std::int64_t>, Links> routes;
      for (std::int64_t pair = 0; pair < gpus * gpus; ++pair) {
        routes[{pair / gpus, pair % gpus}] = forwards.route(pair / gpus, pair % gpus);
      }
      for (std::int64_t pair = gpus * gpus - 1; pair >= 0; --pair) {
        const std::pair ends(pair / gpus, pair % gpus);
        ASSERT_EQ(backwards.route(ends.first, ends.second), routes[ends]);
      }
    }
  }
}

/// Two leaves of 16 single-GPU nodes, 16 spines.
TopologySpec wide() {
  TopologySpec spec = tiny_cluster();
  spec.fabric = FabricKind::kFatTree;
  spec.gpus_per_node = spec.nics_per_node = 1;
  spec.nodes_per_leaf_group = 16;
  return spec;
}

// Rule: a hash takes every spine alike, whichever end changes. 256 flows over 16 spines: 16 each
// but for chance, of which five standard deviations are sqrt(15) x 5 = 19.4; both ends count.
TEST(Router, AHashSpreadsOverAllSpines) {
  const Topology topology = *Topology::build(wide(), 32, Routing::kHashed);
  std::map<std::string, std::int64_t> flows;
  for (std::int64_t from = 0; from < 16; ++from) {
    std::set<std::string> by_destination, by_source;
    for (std::int64_t to = 16; to < 32; ++to) {
      const auto spine = [&](std::int64_t source, std::int64_t destination) {
        const Links route = topology.route(source, destination);
        return topology.links()[static_cast<std::size_t>(route[2])].id;
      };
      ++flows[spine(from, to)];
      by_destination.insert(spine(from, to));
      by_source.insert(spine(to - 16, from + 16));
    }
    // Of 16 draws over 16 spines 10.3 are distinct; 5 would be one in a million.
    EXPECT_GT(by_destination.size(), 5U) << from;
    EXPECT_GT(by_source.size(), 5U) << from;
  }
  EXPECT_EQ(flows.size(), 16U);
  for (const auto& [spine, count] : flows) {
    EXPECT_NEAR(static_cast<double>(count), 16.0, 19.4) << spine;
  }
}

// Rule: choices one after the other are independent: of four NICs behind a PCIe switch, then of
// four spines, 240 flows take every pair.
TEST(Router, AHashChoosesAnewAtEverySwitch) {
  TopologySpec spec = tiny_cluster();
  spec.fabric = FabricKind::kFatTree;
  spec.node_interconnect = "pcie";
  spec.nodes_per_leaf_group = 4;
  spec.oversubscription = 4.0;
  const Topology topology = *Topology::build(spec, 32, Routing::kHashed);
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::int64_t from = 0; from < 16; ++from) {
    for (std::int64_t to = 16; to < 31; ++to) {
      const Links route = topology.route(from, to);
      const auto at = [&](std::size_t hop) {
        return topology.links()[static_cast<std::size_t>(route[hop])];
      };
      pairs.emplace(topology.devices()[static_cast<std::size_t>(at(1).to)].index, at(3).to);
    }
  }
  EXPECT_EQ(pairs.size(), 16U);
}

// Rule: by destination, whoever sends: a shift by any number of nodes has one flow a link.
TEST(Router, AnyShiftAtFullBisectionHasALinkAFlow) {
  const Topology topology = *Topology::build(wide(), 32);
  for (std::int64_t shift = 1; shift < 32; ++shift) {
    std::map<std::int32_t, std::int64_t> flows;
    for (std::int64_t from = 0; from < 32; ++from) {
      for (const std::int32_t link : topology.route(from, (from + shift) % 32)) {
        EXPECT_EQ(++flows[link], 1) << shift << " " << names(topology, {link});
      }
    }
  }
}

}  // namespace
}  // namespace foretrain
