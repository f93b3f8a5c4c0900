#include "foretrain/collective.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

using std::chrono::microseconds;

constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllReduce,
                                     CollectiveKind::kAllGather,
                                     CollectiveKind::kReduceScatter,
                                     CollectiveKind::kAllToAll,
                                     CollectiveKind::kBroadcast,
                                     CollectiveKind::kSendReceive};

/// n ranks as `nodes` nodes of k; 100 GB/s inside at 2 us, 10 GB/s across at 7 us.
GroupShape group_of(std::int64_t nodes, std::int64_t k) {
  GroupShape group;
  group.size = nodes * k;
  group.nodes = nodes;
  group.ranks_per_node = k;
  group.inside = {100'000'000'000};
  group.inside_latency = microseconds(2);
  group.across = {10'000'000'000};
  group.across_latency = microseconds(7);
  return group;
}

Duration time_of(CollectiveKind kind, Bytes bytes, const GroupShape& group, LinkModel links = {}) {
  return collective_cost(kind, bytes, group, links).total();
}

// Rule: ring of n, S bytes, bandwidth B, hop a: (n-1)/n S/B + (n-1) a, an all-reduce twice that.
// n = 4, S = 400 MB, B = 100 GB/s: 3/4 * 4 ms = 3 ms and 3 * 2 us.
TEST(Collective, RingInsideANode) {
  const GroupShape group = group_of(1, 4);
  const Bytes bytes{400'000'000};
  EXPECT_EQ(time_of(CollectiveKind::kAllGather, bytes, group), microseconds(3000 + 6));
  EXPECT_EQ(time_of(CollectiveKind::kReduceScatter, bytes, group), microseconds(3000 + 6));
  EXPECT_EQ(time_of(CollectiveKind::kAllReduce, bytes, group), microseconds(6000 + 12));
  EXPECT_EQ(time_of(CollectiveKind::kAllToAll, bytes, group), microseconds(3000 + 6));
  EXPECT_EQ(time_of(CollectiveKind::kBroadcast, bytes, group), microseconds(4000 + 6));
}

TEST(Collective, SendReceive) {
  EXPECT_EQ(time_of(CollectiveKind::kSendReceive, Bytes{100'000'000}, group_of(1, 2)),
            microseconds(1000 + 2));
  EXPECT_EQ(time_of(CollectiveKind::kSendReceive, Bytes{100'000'000}, group_of(2, 1)),
            microseconds(10'000 + 7));
}

// Rule: S (1 + 1/h) / B, two hops, and the start-up: 50 us, or 30 us and two loops of h x channels
// x chunk where that is more. B = 1 GiB/ms. 8 ranks, 16 channels, 512 MiB in chunks of 64 KiB:
// loops of 8 MiB, 7.8 us, change nothing. 72 ranks have 32 heads: at 1 GiB and 64 KiB loops of 32
// MiB, 31.25 us; at 128 MiB and 32 KiB half of that; at 4 GiB and 128 KiB twice.
TEST(Collective, NvlsFillsItsLoops) {
  LinkModel links;
  links.algorithm = "nvls";
  links.nvls_efficiency = links.low_latency_inside = 1.0;
  links.nvls_channels = 16;
  links.fixed = microseconds(50);
  links.low_latency_fixed = microseconds(30);
  const auto time = [&](std::int64_t ranks, std::int64_t mebi) {
    GroupShape group = group_of(1, ranks);
    group.inside = {(std::int64_t{1} << 30) * 1000};
    return time_of(CollectiveKind::kAllReduce, Bytes{mebi << 20}, group, links);
  };
  const auto nano = [](std::int64_t count) { return std::chrono::nanoseconds(count); };
  EXPECT_EQ(time(8, 512), nano(562'500 + 50'000 + 4'000));
  EXPECT_EQ(time(72, 1024), nano(1'031'250 + 30'000 + 62'500 + 4'000));
  EXPECT_EQ(time(72, 128), nano(128'906 + 30'000 + 31'250 + 4'000) + Duration{250});
  EXPECT_EQ(time(72, 4096), nano(4'125'000 + 30'000 + 125'000 + 4'000));
}

// Rule: one member per node rings over the NICs. N = 4, S = 400 MB at 10 GB/s: 3/4 * 40 ms.
TEST(Collective, RingOverNics) {
  const CollectiveCost cost =
      collective_cost(CollectiveKind::kAllGather, Bytes{400'000'000}, group_of(4, 1), LinkModel{});
  EXPECT_EQ(cost.total(), microseconds(30'000 + 21));
  EXPECT_EQ(cost.algorithm, "ring");
  EXPECT_TRUE(cost.across_limits);
}

// Rule: k in each of N nodes: in-node phases on S, rings between nodes on S/k. k = 4, N = 2,
// S = 400 MB. All-gather: across 1/2 * 100 MB / 10 GB/s = 5 ms, inside 3/4 * 4 ms = 3 ms, hops
// 1 * 7 + 3 * 2 us. All-reduce: twice.
TEST(Collective, HierarchicalOverNodes) {
  const GroupShape group = group_of(2, 4);
  const Bytes bytes{400'000'000};
  EXPECT_EQ(time_of(CollectiveKind::kAllGather, bytes, group), microseconds(8000 + 13));
  EXPECT_EQ(time_of(CollectiveKind::kReduceScatter, bytes, group), microseconds(8000 + 13));
  EXPECT_EQ(time_of(CollectiveKind::kAllReduce, bytes, group), microseconds(16'000 + 26));
}

// Rule: pipelined phases hide the shorter under the longer: 5 ms of 5 and 3; half overlap leaves
// 1.5 ms of the 3.
TEST(Collective, PhaseOverlap) {
  LinkModel links;
  links.phase_overlap = 1.0;
  const Bytes bytes{400'000'000};
  EXPECT_EQ(time_of(CollectiveKind::kAllGather, bytes, group_of(2, 4), links),
            microseconds(5000 + 13));
  links.phase_overlap = 0.5;
  EXPECT_EQ(time_of(CollectiveKind::kAllGather, bytes, group_of(2, 4), links),
            microseconds(6500 + 13));
}

// Rule: tensor parallelism over two nodes is not one flat ring at NIC speed (2 * 7/8 S / 10 GB/s),
// and not as cheap as one node of the same size.
TEST(Collective, TwoNodesLieBetweenOneNodeAndTheSlowRing) {
  const Bytes bytes{400'000'000};
  const Duration two_nodes = time_of(CollectiveKind::kAllReduce, bytes, group_of(2, 4));
  GroupShape uneven = group_of(2, 4);
  uneven.even = false;
  EXPECT_GT(two_nodes, time_of(CollectiveKind::kAllReduce, bytes, group_of(1, 8)));
  EXPECT_LT(two_nodes, time_of(CollectiveKind::kAllReduce, bytes, uneven));
  // The flat ring: 14/8 * 40 ms; 2 * (2 far hops of 7 us + 5 near ones of 2 us).
  EXPECT_EQ(time_of(CollectiveKind::kAllReduce, bytes, uneven), microseconds(70'000 + 48));
}

// Rule: all-to-all sends k-1 of n parts over NVLink and n-k over the NIC, side by side. k = 4,
// N = 2, S = 400 MB: NIC 4/8 * 40 ms = 20 ms hides NVLink's 1.5 ms; hops 3 * 2 + 1 * 7 us.
TEST(Collective, AllToAllOverNodes) {
  GroupShape group = group_of(2, 4);
  EXPECT_EQ(time_of(CollectiveKind::kAllToAll, Bytes{400'000'000}, group),
            microseconds(20'000 + 13));
  group.across_all_pairs = {5'000'000'000};
  EXPECT_EQ(time_of(CollectiveKind::kAllToAll, Bytes{400'000'000}, group),
            microseconds(40'000 + 13));
}

// Rule: a broadcast streams the whole buffer through every link once, 1/k of it over each NIC.
TEST(Collective, BroadcastOverNodes) {
  EXPECT_EQ(time_of(CollectiveKind::kBroadcast, Bytes{400'000'000}, group_of(2, 4)),
            microseconds(10'000 + 3 * 2 + 7));
}

// Rule: nothing to do takes no time: a group of one, no bytes, or free communication.
TEST(Collective, NothingCostsNothing) {
  LinkModel slow;
  slow.fixed = microseconds(50);
  LinkModel free = slow;
  free.free = true;
  for (const CollectiveKind kind : kKinds) {
    EXPECT_EQ(time_of(kind, Bytes{1 << 30}, group_of(1, 1), slow), Duration{});
    EXPECT_EQ(time_of(kind, Bytes{0}, group_of(2, 4), slow), Duration{});
    EXPECT_EQ(time_of(kind, Bytes{1 << 30}, group_of(2, 4), free), Duration{});
  }
}

// Rule: efficiency divides the rate, start-up is paid once, extra hops add to the wire's own.
TEST(Collective, LinkModel) {
  LinkModel links;
  links.inside_efficiency = 0.5;
  links.fixed = microseconds(10);
  links.inside_hop = microseconds(1);
  EXPECT_EQ(time_of(CollectiveKind::kAllGather, Bytes{400'000'000}, group_of(1, 4), links),
            microseconds(6000 + 3 * (2 + 1) + 10));
  links.topology_latency = false;
  EXPECT_EQ(time_of(CollectiveKind::kAllGather, Bytes{400'000'000}, group_of(1, 4), links),
            microseconds(6000 + 3 * 1 + 10));
}

// Rule: the bytes one rank sends are the textbook's whatever the algorithm: (n-1)/n S, twice for
// an all-reduce, S for a broadcast or a message.
TEST(Collective, SentBytesAreTheTextbooks) {
  const Bytes bytes{8'000'000};
  for (const GroupShape& group : {group_of(1, 8), group_of(8, 1), group_of(2, 4), group_of(4, 2)}) {
    const auto sent = [&](CollectiveKind kind) {
      return collective_cost(kind, bytes, group, LinkModel{}).sent_bytes;
    };
    EXPECT_EQ(sent(CollectiveKind::kAllGather), 7'000'000);
    EXPECT_EQ(sent(CollectiveKind::kReduceScatter), 7'000'000);
    EXPECT_EQ(sent(CollectiveKind::kAllToAll), 7'000'000);
    EXPECT_EQ(sent(CollectiveKind::kAllReduce), 14'000'000);
    EXPECT_EQ(sent(CollectiveKind::kBroadcast), 8'000'000);
  }
}

// Rule: no collective beats the injection bound. Every byte a rank sends leaves by its NVLink or
// its NIC, so time >= sent / (both together); and a group over nodes must bring each node what it
// lacks through its k NICs: at least (1 - 1/N) S / (k B) for an all-gather.
TEST(Collective, NeverBelowTheBounds) {
  for (std::int64_t nodes = 1; nodes <= 5; ++nodes) {
    for (std::int64_t k = 1; k <= 8; ++k) {
      for (const std::int64_t bytes : {1L, 7L, 4096L, 1'000'003L, 1L << 33}) {
        for (const double overlap : {0.0, 0.7, 1.0}) {
          LinkModel links;
          links.phase_overlap = overlap;
          for (const CollectiveKind kind : kKinds) {
            if (nodes * k == 1 || (kind == CollectiveKind::kSendReceive && nodes * k != 2)) {
              continue;
            }
            const GroupShape group = group_of(nodes, k);
            const CollectiveCost cost = collective_cost(kind, Bytes{bytes}, group, links);
            const double rate = nodes > 1 ? 110e9 : 100e9;
            ASSERT_GE(seconds(cost.total()) * rate, static_cast<double>(cost.sent_bytes) * 0.999999)
                << to_string(kind) << " " << nodes << "x" << k << " " << bytes;
            if (kind == CollectiveKind::kAllGather) {
              const double missing = static_cast<double>(bytes * (nodes - 1) / nodes);
              ASSERT_GE(seconds(cost.total()) * 10e9 * static_cast<double>(k), missing * 0.999999);
            }
          }
        }
      }
    }
  }
}

// Rule: more bytes never take less time, a faster link never more.
TEST(Collective, Monotone) {
  for (const CollectiveKind kind : kKinds) {
    const GroupShape group = group_of(2, 1);
    GroupShape faster = group;
    faster.across = {20'000'000'000};
    Duration last{};
    for (std::int64_t bytes = 1; bytes < (1L << 34); bytes *= 3) {
      const Duration time = time_of(kind, Bytes{bytes}, group);
      ASSERT_GE(time, last);
      ASSERT_LE(time_of(kind, Bytes{bytes}, faster), time);
      last = time;
    }
  }
}

// Rule: nccl-tests' factors: all-reduce 2 (n-1)/n, the gathers and all-to-all (n-1)/n, others 1.
TEST(BusBandwidth, Factors) {
  const Bytes bytes{8'000'000'000};
  const Duration second{1'000'000'000'000};
  EXPECT_DOUBLE_EQ(bus_bandwidth(CollectiveKind::kAllReduce, bytes, 8, second), 14e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(CollectiveKind::kAllGather, bytes, 8, second), 7e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(CollectiveKind::kReduceScatter, bytes, 8, second), 7e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(CollectiveKind::kAllToAll, bytes, 8, second), 7e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(CollectiveKind::kBroadcast, bytes, 8, second), 8e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(CollectiveKind::kSendReceive, bytes, 2, second), 8e9);
  EXPECT_DOUBLE_EQ(bus_bandwidth(CollectiveKind::kAllReduce, bytes, 8, Duration{}), 0.0);
}

// Rule: a tuned all-reduce over N = 1,024 nodes takes log2 N = 10 hops up and 10 down when it is
// small, 2 (3 * 2 + 10 * 7) us, instead of 2 * 1,024 hops around; a large one takes the ring, whose
// (n-1)/n of the payload beats the tree's whole of it. A broadcast takes 10 hops.
TEST(Collective, TreesServeSmallBuffersOnManyNodes) {
  LinkModel links;
  links.tuned = true;
  links.phase_overlap = 1.0;
  const GroupShape group = group_of(1024, 4);
  const CollectiveCost small = collective_cost(CollectiveKind::kAllReduce, Bytes{4}, group, links);
  EXPECT_EQ(small.algorithm, "tree");
  EXPECT_EQ(small.latency, microseconds(2 * (3 * 2 + 10 * 7)));
  const CollectiveCost send = collective_cost(CollectiveKind::kBroadcast, Bytes{4}, group, links);
  EXPECT_EQ(send.algorithm, "tree");
  EXPECT_EQ(send.latency, microseconds(3 * 2 + 10 * 7));
  // 400 TB: ring 2 * 4095/4096 * 1e4 s / 4 lanes, 1.2 s less than the tree; its 2 * (1024 * 7 +
  // 3071 * 2) us of hops do not matter.
  const Bytes large{400'000'000'000'000};
  EXPECT_EQ(collective_cost(CollectiveKind::kAllReduce, large, group, links).algorithm, "ring");
}

}  // namespace
}  // namespace foretrain
