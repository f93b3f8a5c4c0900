#include "foretrain/collective.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rules no collective breaks whatever the fabric, the group, the size and the algorithm: bounds of
/// what links carry, order in bytes, and that a buffer in chunks costs its latency more.
namespace foretrain {
namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce,
                                     CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllToAll,
                                     CollectiveKind::kBroadcast};

struct Fabric {
  std::string name;
  TopologySpec spec;
  std::vector<GroupShape> shapes;
};

/// Whole nodes, some of each, one of each, one node.
std::vector<Fabric> fabrics() {
  std::vector<Fabric> all;
  for (const char* name : {"dgx-a100-hdr200",
                           "dgx1-v100",
                           "h800-ndr400",
                           "hgx-h200-ndr400",
                           "dgx-b200-ndr400",
                           "gb200-nvl72",
                           "gcp-a3-mega",
                           "aws-p6-b200-efa"}) {
    Fabric fabric{name, *read_topology(name), {}};
    const std::int64_t node = fabric.spec.gpus_per_node;
    const Expected<Topology> topology = Topology::build(fabric.spec, 9 * node);
    for (const std::int64_t nodes : {1, 2, 3, 4, 9}) {
      for (const std::int64_t k : {1, 2, 4, 8}) {
        std::vector<std::int64_t> ranks;
        for (std::int64_t at = 0; at < nodes * k; ++at) {
          ranks.push_back(at / k * node + at % k);
        }
        if (ranks.size() > 1) {
          fabric.shapes.push_back(topology->group_shape(ranks));
        }
      }
    }
    all.push_back(std::move(fabric));
  }
  return all;
}

constexpr std::int64_t kSizes[] = {
    1, 4096, 100'003, 1 << 20, 24 << 20, 1 << 28, std::int64_t{1} << 33};

/// Every fabric, group, kind, size, and algorithm by name and by choice.
template <typename Check>
void for_all(const Check& check) {
  for (const Fabric& fabric : fabrics()) {
    for (const GroupShape& shape : fabric.shapes) {
      for (const CollectiveKind kind : kKinds) {
        LinkModel links = link_model(fabric.spec);
        std::vector<std::string_view> names = collective_algorithms(kind, shape, links);
        names.emplace_back("");
        for (const std::string_view name : names) {
          links.algorithm = name;
          for (const std::int64_t bytes : kSizes) {
            SCOPED_TRACE(fabric.name + " " + std::string(to_string(kind)) + " " +
                         std::to_string(shape.nodes) + "x" + std::to_string(shape.ranks_per_node) +
                         " " + std::to_string(bytes) + " " + std::string(name));
            check(kind, bytes, shape, links);
          }
        }
      }
    }
  }
}

double rate(Bandwidth bandwidth) {
  return static_cast<double>(bandwidth.bytes_per_second);
}

/// What the slowest node must send, by counting who lacks what (Thakur et al. 2005): of an
/// all-gather each node lacks (N-1)/N S and somebody sends it; an all-reduce is that twice; of an
/// all-to-all each of k members sends (n-k)/n S away; a broadcast passes S on.
double leaves_node(CollectiveKind kind, double bytes, const GroupShape& shape) {
  const auto nodes = static_cast<double>(shape.nodes);
  const auto k = static_cast<double>(shape.ranks_per_node);
  const auto n = static_cast<double>(shape.size);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return 2.0 * (nodes - 1.0) / nodes * bytes;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return (nodes - 1.0) / nodes * bytes;
    case CollectiveKind::kAllToAll:
      return k * (n - k) / n * bytes;
    default:
      return nodes > 1 ? bytes : 0.0;
  }
}

// Rule: nothing leaves a node faster than its members' NICs at line rate, and every collective has
// at least one link's latency.
TEST(CollectiveBounds, InjectionAndLatency) {
  for_all([](CollectiveKind kind, std::int64_t bytes, const GroupShape& shape, LinkModel& links) {
    const double time = seconds(collective_cost(kind, Bytes{bytes}, shape, links).total());
    const double line = rate(shape.across) * static_cast<double>(shape.ranks_per_node);
    if (shape.nodes > 1) {
      ASSERT_GE(time * line, leaves_node(kind, static_cast<double>(bytes), shape) * 0.999999);
      ASSERT_GE(time, seconds(shape.across_latency));
    }
    ASSERT_GT(time, 0.0);
  });
}

// Rule: without reduction in the switches no rank passes on less than (n-1)/n S, so bus bandwidth
// stays below NVLink's rate in a node, and below what leaves a node between nodes; only an
// all-reduce of two nodes may exceed that, by n / (n-1) at most twofold less what stays (each sends
// its sum once).
TEST(CollectiveBounds, BusBandwidthOfLinks) {
  for_all([](CollectiveKind kind, std::int64_t bytes, const GroupShape& shape, LinkModel& links) {
    if (kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kBroadcast) {
      return;
    }
    const CollectiveCost cost = collective_cost(kind, Bytes{bytes}, shape, links);
    const double bus = bus_bandwidth(kind, Bytes{bytes}, shape.size, cost.total());
    const double lanes = rate(shape.across) * static_cast<double>(shape.ranks_per_node);
    const auto n = static_cast<double>(shape.size);
    if (cost.algorithm == "ring") {
      ASSERT_LE(bus, shape.nodes == 1 ? rate(shape.inside) : lanes);
    } else if (shape.nodes > 2 && cost.algorithm != "hierarchical") {
      ASSERT_LE(bus, lanes);
    } else if (shape.nodes > 1) {
      // Two nodes, and phases one after the other, whose bytes across are (N-1)/N S a round.
      ASSERT_LE(bus, lanes * 2.0 * (n - 1.0) / n);
    } else {
      // In the switch: S + S/n over each GPU's link.
      ASSERT_LE(bus, rate(shape.inside) * 2.0 * (n - 1.0) / (n + 1.0));
    }
  });
}

// Rule: more bytes never take less time, whatever is chosen on the way.
TEST(CollectiveBounds, MonotoneInBytes) {
  for (const Fabric& fabric : fabrics()) {
    const LinkModel links = link_model(fabric.spec);
    for (const GroupShape& shape : fabric.shapes) {
      for (const CollectiveKind kind : kKinds) {
        Duration last{};
        for (std::int64_t bytes = 1; bytes < (std::int64_t{1} << 35); bytes += bytes / 3 + 1) {
          const Duration time = collective_cost(kind, Bytes{bytes}, shape, links).total();
          ASSERT_GE(time, last) << fabric.name << " " << to_string(kind) << " " << bytes;
          last = time;
        }
      }
    }
  }
}

// Rule: what is chosen is never slower than the ring that NCCL always has; naming an algorithm
// names it.
TEST(CollectiveBounds, ChoiceAndNames) {
  for_all([](CollectiveKind kind, std::int64_t bytes, const GroupShape& shape, LinkModel& links) {
    const CollectiveCost cost = collective_cost(kind, Bytes{bytes}, shape, links);
    if (!links.algorithm.empty()) {
      ASSERT_EQ(cost.algorithm, links.algorithm);
      LinkModel free = links;
      free.algorithm = "";
      if (links.algorithm == "ring") {
        ASSERT_LE(collective_cost(kind, Bytes{bytes}, shape, free).total(), cost.total());
      }
    }
  });
}

// Rule: a ring's buffer sent as c chunks takes the same bytes' time and c times the latency, to a
// picosecond a chunk and part.
TEST(CollectiveBounds, ChunksCostTheirLatencyOnly) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  for (const Fabric& fabric : fabrics()) {
    LinkModel links = link_model(fabric.spec);
    links.low_latency_inside = 0.0;
    links.algorithm = "ring";
    for (const GroupShape& shape : fabric.shapes) {
      const auto cost = [&](std::int64_t bytes) {
        return collective_cost(CollectiveKind::kAllReduce, Bytes{bytes}, shape, links);
      };
      for (const std::int64_t chunks : {1, 4, 64}) {
        const Duration apart = chunks * cost(kBytes / chunks).total();
        const Duration more = (chunks - 1) * cost(kBytes).latency;
        const Duration extra = apart - cost(kBytes).total() - more;
        ASSERT_GE(extra, Duration{});
        ASSERT_LE(extra, Duration{4 * chunks}) << fabric.name;
      }
    }
  }
}

// Rule: GB is 1e9 and GiB 2^30, in sizes and rates: 900 GB from one B200 to the other at 900 GB/s
// take a second over the efficiency, 900 GiB 1.0737 of it.
TEST(CollectiveBounds, GigabytesAreNotGibibytes) {
  const TopologySpec spec = *read_topology("dgx-b200-ndr400");
  const Expected<Topology> topology = Topology::build(spec, 8);
  const std::vector<std::int64_t> pair = {0, 1};
  const GroupShape shape = topology->group_shape(pair);
  const auto wire = [&](std::int64_t bytes) {
    return seconds(
        collective_cost(CollectiveKind::kSendReceive, Bytes{bytes}, shape, link_model(spec))
            .inside);
  };
  EXPECT_NEAR(wire(900'000'000'000) * spec.nvlink_efficiency, 1.0, 1e-9);
  EXPECT_NEAR(wire(std::int64_t{900} << 30) * spec.nvlink_efficiency, 1.073741824, 1e-9);
}

// Rule: uneven nodes go at the pace of the node with the fewest members' NICs.
TEST(CollectiveBounds, UnevenNodesHaveTheFewestLanes) {
  const TopologySpec spec = *read_topology("hgx-h200-ndr400");
  LinkModel links = link_model(spec);
  links.phase_overlap = 0.0;  // show both parts whole
  const Expected<Topology> topology = Topology::build(spec, 16);
  std::vector<std::int64_t> ranks(16);
  std::iota(ranks.begin(), ranks.end(), 0);
  GroupShape shape = topology->group_shape(ranks);
  const Bytes bytes{std::int64_t{1} << 32};
  const double even =
      seconds(collective_cost(CollectiveKind::kAllGather, bytes, shape, links).across);
  shape.even = false;
  shape.fewest_per_node = 2;
  const CollectiveCost uneven = collective_cost(CollectiveKind::kAllGather, bytes, shape, links);
  EXPECT_NEAR(seconds(uneven.across), 4.0 * even, 1e-6 * even);
}

// Rule: a fabric without a spine sends all-pairs traffic over NVLink first: the share that does
// adds its time there, and 0 adds nothing.
TEST(CollectiveBounds, ForwardedTrafficAddsNvlinkTime) {
  const TopologySpec spec = *read_topology("hgx-h200-ndr400");
  const LinkModel links = link_model(spec);
  GroupShape shape;
  shape.size = 64;
  shape.nodes = 8;
  shape.ranks_per_node = 8;
  shape.inside = {450'000'000'000};
  shape.across = {50'000'000'000};
  const Bytes bytes{64'000'000};
  const auto time = [&] {
    return seconds(collective_cost(CollectiveKind::kAllToAll, bytes, shape, links).total());
  };
  const double direct = time();
  shape.forwarded_share = 0.875;
  // 56 of 64 MB leave the node, seven eighths of them over a neighbour's NIC.
  EXPECT_NEAR(time() - direct, 0.875 * 56e6 / (450e9 * spec.nvlink_efficiency), 2e-12);
}

}  // namespace
}  // namespace foretrain
