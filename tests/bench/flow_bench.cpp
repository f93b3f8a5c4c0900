#include "foretrain/flow_run.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"

#include <benchmark/benchmark.h>

/// Flows on shared links: many staggered ones between all GPUs of 64 nodes of 8, and a ring of
/// 1,024 ranks as one flow per member and as its 2(n - 1) rounds.
namespace foretrain {
namespace {

constexpr const char* kTopology = "dgx-h100-ndr400";
constexpr std::int64_t kGpus = 512;

/// Scattered without a generator: multipliers prime to the number of GPUs, so all ranks send alike.
std::vector<FlowRequest> staggered(std::int64_t count) {
  std::vector<FlowRequest> flows;
  for (std::int64_t at = 0; at < count; ++at) {
    const std::int64_t source = at * 37 % kGpus;
    const std::int64_t away = 1 + (at * 101 + at / kGpus * 13) % (kGpus - 1);
    flows.push_back({std::to_string(at),
                     source,
                     (source + away) % kGpus,
                     Bytes{(1 + at % 64) * 1'000'000},
                     Duration{at * 7919 % 4096 * 1'000'000}});
  }
  return flows;
}

/// Routes included. All start within 4 ms, so thousands are under way at once: of 8,192, one that
/// begins or ends changes the rates of some 80 others on average, of 16,384 (left out here,
/// seconds) of many more. The topology is new in every round, which is built outside the time.
void BM_StaggeredFlows(benchmark::State& state) {
  const std::vector<FlowRequest> flows = staggered(state.range(0));
  const TopologySpec spec = read_topology(kTopology).value();
  for (auto _ : state) {
    state.PauseTiming();
    const Topology topology = Topology::build(spec, kGpus).value();
    benchmark::DoNotOptimize(topology.links().size());
    state.ResumeTiming();
    benchmark::DoNotOptimize(run_flows(topology, flows));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_StaggeredFlows)
    ->RangeMultiplier(2)
    ->Range(1024, 8192)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(3);

constexpr std::int64_t kRing = 1024;
constexpr std::int64_t kMessage = 1 << 30;

std::vector<FlowRequest> ring(std::int64_t bytes) {
  std::vector<FlowRequest> flows;
  for (std::int64_t rank = 0; rank < kRing; ++rank) {
    flows.push_back({std::to_string(rank), rank, (rank + 1) % kRing, Bytes{bytes}, Duration{}});
  }
  return flows;
}

/// One flow per member, of all it sends.
void BM_RingAsFlows(benchmark::State& state) {
  const Topology topology = Topology::build(read_topology(kTopology).value(), kRing).value();
  const std::vector<FlowRequest> flows = ring(2 * (kRing - 1) * kMessage / kRing);
  for (auto _ : state) {
    benchmark::DoNotOptimize(run_flows(topology, flows));
  }
}
BENCHMARK(BM_RingAsFlows)->Unit(benchmark::kMillisecond);

/// Every round begins when all of the one before have ended: 2(n - 1) x n transfers. Routes are
/// found once.
void BM_RingAsRounds(benchmark::State& state) {
  const Topology topology = Topology::build(read_topology(kTopology).value(), kRing).value();
  std::vector<double> capacities;
  for (const Link& link : topology.links()) {
    capacities.push_back(static_cast<double>(link.capacity.bytes_per_second));
  }
  struct Hop {
    std::vector<LinkUse> uses;
    double rate = 0;
    Duration alone{};
  };
  std::vector<Hop> hops;
  for (std::int64_t rank = 0; rank < kRing; ++rank) {
    Bandwidth rate{INT64_MAX};
    Hop& hop = hops.emplace_back();
    for (const std::int32_t link : topology.route(rank, (rank + 1) % kRing)) {
      hop.uses.push_back({link, 1.0});
      rate = std::min(rate, topology.links()[static_cast<std::size_t>(link)].capacity);
    }
    hop.rate = static_cast<double>(rate.bytes_per_second);
    hop.alone = Bytes{kMessage / kRing} / rate;
  }
  for (auto _ : state) {
    Transfers transfers(capacities);
    Instant now;
    for (std::int64_t round = 0; round < 2 * (kRing - 1); ++round) {
      for (std::size_t rank = 0; rank < hops.size(); ++rank) {
        const Hop& hop = hops[rank];
        transfers.begin(now, hop.uses, hop.rate, hop.alone, static_cast<std::int64_t>(rank));
      }
      while (const std::optional<Instant> end = transfers.next_end()) {
        now = *end;
        benchmark::DoNotOptimize(transfers.take_ended(now));
      }
    }
  }
}
BENCHMARK(BM_RingAsRounds)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretrain

BENCHMARK_MAIN();
