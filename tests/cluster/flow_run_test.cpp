#include "foretrain/flow_run.h"

#include "tests/flow/progressive_filling.h"

#include "foretrain/scenario.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

/// Rule: flows end when progressive filling of the links' own rates, written a second time in long
/// double, has carried their bytes: never more than rounding up to the picosecond away, and in any
/// order of the list.
namespace foretrain {
namespace {

Topology sixteen(const char* name) {
  return Topology::build(read_topology(name).value(), 16).value();
}

std::vector<FlowRequest> random_flows(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&random](unsigned bound) {
    return static_cast<std::int64_t>(random() % bound);
  };
  std::vector<FlowRequest> flows;
  for (int at = 0; at < 30; ++at) {
    const std::int64_t source = below(16);
    // A third goes to one rank, so that links fill and shares differ.
    const std::int64_t other = below(3) == 0 ? 1 : below(16);
    const std::int64_t bytes = below(2) == 0 ? 1 + below(20) : below(300'000'000);
    flows.push_back({std::to_string(at),
                     source,
                     other == source ? (source + 1) % 16 : other,
                     Bytes{bytes},
                     Duration{below(3) * below(4'000'000) * 1000}});
  }
  return flows;
}

/// When each ends by the second implementation, in ps. A transfer's work is its bytes, at a limit
/// of 1 byte per ps, which no link reaches.
std::vector<long double> expected_ends(const Topology& topology,
                                       const std::vector<FlowRequest>& flows,
                                       const FlowRun& run) {
  std::vector<double> capacities;
  for (const Link& link : topology.links()) {
    capacities.push_back(static_cast<double>(link.capacity.bytes_per_second));
  }
  std::vector<filling::Timed> all;
  for (std::size_t at = 0; at < flows.size(); ++at) {
    filling::Timed& one = all.emplace_back();
    for (const std::int32_t link : run.flows[at].path) {
      one.wanted.uses.push_back({link, 1.0});
    }
    one.wanted.limit = 1e12L;
    one.start = (flows[at].start + run.flows[at].latency).count();
    one.alone = flows[at].bytes.value;
  }
  return filling::ends(capacities, all);
}

void expect_as_filled(const Topology& topology, const std::vector<FlowRequest>& flows) {
  const FlowRun run = run_flows(topology, flows);
  const std::vector<long double> ends = expected_ends(topology, flows, run);
  for (std::size_t at = 0; at < flows.size(); ++at) {
    const auto end = static_cast<long double>(run.flows[at].finish.time_since_epoch().count());
    EXPECT_NEAR(
        static_cast<double>(end - ends[at]), 0.0, std::max(2.0, 1e-9 * static_cast<double>(end)))
        << flows[at].id;
  }
}

TEST(FlowRun, EndsAsProgressiveFillingSays) {
  for (const char* name : {"dgx-h100-ndr400", "h100-roce-clos", "dgx-a100-hdr200"}) {
    const Topology topology = sixteen(name);
    for (unsigned seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(std::string(name) + " seed " + std::to_string(seed));
      expect_as_filled(topology, random_flows(seed));
    }
  }
}

// On NVLink of 450 GB/s a byte takes 2.2 ps: times rounded up would be work that 200 flows share.
TEST(FlowRun, RoundingIsNotMultipliedByThoseWhoShare) {
  const Topology topology = sixteen("dgx-h100-ndr400");
  std::vector<FlowRequest> flows;
  for (int at = 0; at < 200; ++at) {
    flows.push_back({std::to_string(at), 0, 1, Bytes{1 + at % 3}, Duration{}});
  }
  flows.push_back({"long", 0, 1, Bytes{1001}, Duration{}});
  expect_as_filled(topology, flows);
}

// Each of 2,224.4 ps starts 2,223 ps after the one before and is alone most of the time: a limit
// just below the line rate would leave a little idle in each, which later ones would wait for.
TEST(FlowRun, RoundingLeavesNoLinkIdle) {
  const Topology topology = sixteen("dgx-h100-ndr400");
  std::vector<FlowRequest> flows;
  for (int at = 0; at < 100; ++at) {
    flows.push_back({std::to_string(at), 0, 1, Bytes{1001}, Duration{at * 2223}});
  }
  expect_as_filled(topology, flows);
}

TEST(FlowRun, OrderOfTheListChangesNothing) {
  const Topology topology = sixteen("dgx-h100-ndr400");
  const std::vector<FlowRequest> flows = random_flows(99);
  const std::vector<FlowRequest> reversed(flows.rbegin(), flows.rend());
  const FlowRun one = run_flows(topology, flows);
  const FlowRun other = run_flows(topology, reversed);
  for (std::size_t at = 0; at < flows.size(); ++at) {
    const Duration apart = one.flows[at].finish - other.flows[flows.size() - 1 - at].finish;
    EXPECT_LE(std::abs(apart.count()), 1) << "sums of doubles in another order";
  }
}

// What crosses each link is what the flows that cross it send; what leaves the ranks is what
// arrives.
TEST(FlowRun, BytesAreConserved) {
  const Topology topology = sixteen("dgx-h100-ndr400");
  const std::vector<FlowRequest> flows = random_flows(7);
  const FlowRun run = run_flows(topology, flows);
  double sent = 0;
  double left = 0;
  double arrived = 0;
  for (const FlowRequest& flow : flows) {
    sent += static_cast<double>(flow.bytes.value);
  }
  for (std::size_t at = 0; at < run.carried.size(); ++at) {
    const Link& link = topology.links()[at];
    left += link.from < topology.gpus() ? run.carried[at] : 0;
    arrived += link.to < topology.gpus() ? run.carried[at] : 0;
  }
  EXPECT_EQ(left, sent);
  EXPECT_EQ(arrived, sent);
}

}  // namespace
}  // namespace foretrain
