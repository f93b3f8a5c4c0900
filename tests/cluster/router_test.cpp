#include "tests/cluster/plain_routes.h"
#include "tests/cluster/random_fabric.h"
#include "tests/support/tiny_cluster.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rule: routes are those of the documents (MODEL 4.1): shortest, chosen by destination, by a hash
/// or always the first, over another GPU's NVLink where rails do not meet, and there exactly when
/// what failed leaves a way. Oracle: plain_routes.h, link by link, over small fabrics of all kinds.
namespace foretrain {
namespace {

using testing_support::described;
using testing_support::Draw;
using testing_support::fail_some;
using testing_support::PlainRoutes;
using testing_support::random_spec;
using testing_support::tiny_cluster;
using Links = std::vector<std::int32_t>;

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
