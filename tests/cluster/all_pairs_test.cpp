#include "tests/cluster/random_fabric.h"

#include "foretrain/topology.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rule: between nodes an all-to-all goes at the rate that the fullest link leaves it, whatever the
/// fabric and however many ranks. Oracle: every pair's route, one by one.
namespace foretrain {
namespace {

using testing_support::described;
using testing_support::Draw;
using testing_support::fail_some;
using testing_support::random_spec;
using testing_support::tiny_cluster;
using Ranks = std::vector<std::int64_t>;

Ranks first(std::int64_t count) {
  Ranks ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Bytes per second of each rank when all pairs between nodes send alike. `counted`: only pairs
/// with an end among so many first ranks, where the fullest link is known to be theirs.
double plain_rate(const Topology& topology, const Ranks& ranks, std::int64_t counted) {
  std::map<std::int64_t, std::int64_t> in_node;
  for (const std::int64_t rank : ranks) {
    ++in_node[topology.node_of(rank)];
  }
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const auto& [node, members] : in_node) {
    fewest = std::min(fewest, members);
  }
  std::vector<double> flows(topology.links().size(), 0.0);
  for (const std::int64_t from : ranks) {
    for (const std::int64_t to : ranks) {
      if (topology.node_of(from) != topology.node_of(to) && std::min(from, to) < counted) {
        for (const std::int32_t link : topology.route(from, to)) {
          flows[static_cast<std::size_t>(link)] += 1.0;
        }
      }
    }
  }
  const double partners = static_cast<double>(static_cast<std::int64_t>(ranks.size()) - fewest);
  double rate = std::numeric_limits<double>::infinity();
  for (std::size_t link = 0; link < flows.size(); ++link) {
    if (flows[link] > 0.0) {
      const auto capacity = static_cast<double>(topology.links()[link].capacity.bytes_per_second);
      rate = std::min(rate, capacity * partners / flows[link]);
    }
  }
  return rate;
}

double modelled_rate(const Topology& topology, const Ranks& ranks) {
  return static_cast<double>(topology.group_shape(ranks).across_all_pairs.bytes_per_second);
}

// Groups with holes, so that nodes hold unlike numbers; whole fabrics under single routing, where
// nothing is taken from domains, and broken ones under both.
TEST(AllPairs, AreWhatTheirRoutesAddUpTo) {
  std::int64_t compared = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Draw draw(seed);
    std::int64_t gpus = 0;
    TopologySpec spec = random_spec(draw, gpus);
    const bool broken = draw.below(3) > 0;
    if (broken) {
      fail_some(draw, gpus, spec);
    }
    Ranks ranks;
    for (std::int64_t rank = 0; rank < gpus; ++rank) {
      if (draw.below(5) > 0) {
        ranks.push_back(rank);
      }
    }
    for (const Routing routing : {Routing::kSingle, Routing::kHashed, Routing::kDestination}) {
      const Topology topology = *Topology::build(spec, gpus, routing);
      if (ranks.empty() || (routing == Routing::kDestination && spec.failed_links.empty())) {
        continue;
      }
      if (topology.unreachable_pair(ranks, TrafficPattern::kAllPairs)) {
        continue;
      }
      const double expected = plain_rate(topology, ranks, gpus);
      if (std::isfinite(expected)) {
        ++compared;
        EXPECT_NEAR(modelled_rate(topology, ranks), expected, 1e-9 * expected + 1.0)
            << seed << ": " << described(spec, gpus);
      }
    }
  }
  EXPECT_GT(compared, 300);
}

/// A fat tree of 8-GPU nodes, four under a leaf with eight uplinks; one of them has failed.
TopologySpec narrow_tree() {
  TopologySpec spec = tiny_cluster();
  spec.fabric = FabricKind::kFatTree;
  spec.gpus_per_node = spec.nics_per_node = 8;
  spec.nodes_per_leaf_group = 4;
  spec.oversubscription = 4.0;
  spec.failed_links = {"leaf0.0>spine0"};
  return spec;
}

/// Of n ranks those of a leaf send to all others over seven of eight uplinks: a cut no route beats.
double cut_rate(std::int64_t ranks, std::int64_t nic) {
  const double others = static_cast<double>(ranks - 32);
  return 7.0 * static_cast<double>(nic) * static_cast<double>(ranks - 8) / (32.0 * others);
}

TEST(AllPairs, OfMoreThanAThousandRanksCountAsOfFewer) {
  const TopologySpec spec = narrow_tree();
  const Topology topology = *Topology::build(spec, 24'576);
  double before = std::numeric_limits<double>::infinity();
  for (const std::int64_t ranks : {256, 1'016, 1'024, 1'032, 1'056, 2'048, 24'576}) {
    const GroupShape shape = topology.group_shape(first(ranks));
    const auto rate = static_cast<double>(shape.across_all_pairs.bytes_per_second);
    EXPECT_LE(rate, cut_rate(ranks, spec.nic_bandwidth.bytes_per_second) * (1.0 + 1e-9)) << ranks;
    // A last leaf that is partly used spreads a little worse.
    EXPECT_LE(rate, before * 1.005) << ranks << " ranks are no faster than fewer";
    EXPECT_NE(shape.slowest_link_all_pairs.find("spine"), std::string::npos) << ranks;
    before = rate;
  }
  EXPECT_NEAR(modelled_rate(topology, first(1'056)), plain_rate(topology, first(1'056), 32), 1.0);
}

// Above that, hashed flows are counted by their mean and how far the fullest link strays.
TEST(AllPairs, HashedOnesOfManyRanksAreNearTheirRoutes) {
  TopologySpec spec = narrow_tree();
  spec.failed_links.clear();
  const Topology topology = *Topology::build(spec, 1'032, Routing::kHashed);
  const double rate = modelled_rate(topology, first(1'032));
  EXPECT_NEAR(rate / plain_rate(topology, first(1'032), 1'032), 1.0, 0.05);
  EXPECT_NEAR(rate / modelled_rate(topology, first(1'024)), 1.0, 0.05);
}

// Rule: what limits is named: pods joined at 1:7, leaves at 4:1, a NIC where nothing is narrower.
TEST(AllPairs, NameTheLinkThatLimits) {
  TopologySpec spec = narrow_tree();
  spec.failed_links.clear();
  const auto limit = [&](std::int64_t ranks) {
    return Topology::build(spec, ranks)->group_shape(first(ranks)).slowest_link_all_pairs;
  };
  EXPECT_EQ(limit(32), "n0.nic0>leaf0.0");
  EXPECT_EQ(limit(256), "leaf0.0>spine0");
  spec.oversubscription = 1.0;
  EXPECT_EQ(limit(256), "n0.nic0>leaf0.0");
  spec.fabric = FabricKind::kClos;
  spec.gpus_per_pod = 64;
  spec.pod_oversubscription = 7.0;
  EXPECT_EQ(limit(256), "pod0.spine0>core0");
}

}  // namespace
}  // namespace foretrain
