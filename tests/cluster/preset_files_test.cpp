#include "foretrain/collective.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rule: every shipped hardware file loads, builds at every size it allows, and
/// its calibrated constants reproduce the published measurements they were read
/// from.
namespace foretrain {
namespace {

TopologySpec read(const std::string& name) {
  Expected<TopologySpec> spec = read_topology(name);
  EXPECT_TRUE(spec.has_value()) << name << ": "
                                << (spec ? ""
                                         : spec.error().list.front().pointer + " " +
                                               spec.error().list.front().message);
  return spec ? *spec : TopologySpec{};
}

LinkModel links_of(const TopologySpec& spec) {
  LinkModel links;
  links.inside_efficiency = spec.nvlink_efficiency;
  links.across_efficiency = spec.nic_efficiency;
  links.across_hop = spec.collective_latency_hop;
  links.fixed = spec.collective_latency_inside;
  links.phase_overlap = spec.collective_phase_overlap;
  return links;
}

double all_reduce_seconds(const std::string& preset, std::int64_t ranks, std::int64_t bytes) {
  const TopologySpec spec = read(preset);
  const Expected<Topology> topology = Topology::build(spec, ranks);
  std::vector<std::int64_t> group(static_cast<std::size_t>(ranks));
  for (std::size_t at = 0; at < group.size(); ++at) {
    group[at] = static_cast<std::int64_t>(at);
  }
  return seconds(
      collective_cost(
          CollectiveKind::kAllReduce, Bytes{bytes}, topology->group_shape(group), links_of(spec))
          .total());
}

TEST(Presets, TheContractsAreThere) {
  const std::vector<std::string> names = topology_presets();
  for (const char* name : {"dgx-a100-hdr200",
                           "dgx-h100-ndr400",
                           "hgx-h200-ndr400",
                           "h800-ndr400",
                           "dgx-b200-ndr400",
                           "gb200-nvl72",
                           "h100-roce-clos"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(Presets, LoadAndBuildAtEverySize) {
  for (const std::string& name : topology_presets()) {
    const TopologySpec spec = read(name);
    EXPECT_EQ(spec.name, name);
    const std::int64_t node = spec.gpus_per_node;
    const std::int64_t largest = spec.max_gpus > 0 ? spec.max_gpus : 16384;
    for (const std::int64_t gpus : {std::int64_t{1}, node, 2 * node, largest}) {
      const Expected<Topology> topology = Topology::build(spec, gpus);
      ASSERT_TRUE(topology.has_value()) << name << " " << gpus;
      EXPECT_EQ(topology->gpus(), gpus);
    }
    const Expected<Topology> two = Topology::build(spec, 2 * node);
    EXPECT_GT(two->bisection_bandwidth().bytes_per_second, 0) << name;
    EXPECT_FALSE(two->route(0, 2 * node - 1).empty()) << name;
  }
}

// Rule: constants are physical: fractions in (0, 1], FP8 twice BF16 where there
// is any, the driver reports within 8 % of what is sold.
TEST(Presets, ConstantsAreSane) {
  for (const std::string& name : topology_presets()) {
    const TopologySpec spec = read(name);
    const GpuSpec& gpu = spec.gpu;
    for (const double fraction : {gpu.gemm_efficiency,
                                  gpu.attention_forward_efficiency,
                                  gpu.attention_backward_efficiency,
                                  gpu.flash2_forward_efficiency,
                                  gpu.flash2_backward_efficiency,
                                  gpu.batched_gemm_efficiency,
                                  gpu.memory_efficiency,
                                  spec.nvlink_efficiency,
                                  spec.nic_efficiency}) {
      EXPECT_GT(fraction, 0.0) << name;
      EXPECT_LE(fraction, 1.0) << name;
    }
    const std::int64_t fp8 = gpu.fp8_dense.flops_per_second;
    const std::int64_t bf16 = gpu.bf16_dense.flops_per_second;
    EXPECT_TRUE(fp8 == 0 || std::abs(fp8 - 2 * bf16) <= bf16 / 500) << name;
    const double reported = static_cast<double>(gpu.memory_reported.value) /
                            static_cast<double>(gpu.memory_as_sold.value);
    EXPECT_NEAR(reported, 1.07, 0.08) << name;
    EXPECT_GT(spec.nvlink_bandwidth, spec.nic_bandwidth) << name;
    EXPECT_GT(spec.sources.size(), 10U) << name;
  }
}

// nccl-tests, 8 x A100 NVLink 3, 1 GiB: 8.204 ms (stas00/ml-engineering), 8.193
// ms (vTrain); 64 MiB: 0.685 and 0.580 ms.
TEST(Presets, AllReduceInOneA100Node) {
  EXPECT_NEAR(all_reduce_seconds("dgx-a100-hdr200", 8, 1 << 30), 8.193e-3, 0.05 * 8.193e-3);
  EXPECT_NEAR(all_reduce_seconds("dgx-a100-hdr200", 8, 64 << 20), 0.630e-3, 0.15 * 0.630e-3);
}

// nccl-tests, A100 with HDR InfiniBand, 1 GiB (Echo, arXiv 2412.12487): 16.17
// ms on 2 nodes, 17.1 ms on 8.
TEST(Presets, AllReduceOverA100Nodes) {
  EXPECT_NEAR(all_reduce_seconds("dgx-a100-hdr200", 16, 1 << 30), 16.17e-3, 0.15 * 16.17e-3);
  EXPECT_NEAR(all_reduce_seconds("dgx-a100-hdr200", 64, 1 << 30), 17.1e-3, 0.20 * 17.1e-3);
}

// nccl-tests, 8 x H200: ring all-reduce bus bandwidth 367 GB/s at 16 GiB
// (stas00/ml-engineering).
TEST(Presets, AllReduceInOneHopperNode) {
  const std::int64_t bytes = std::int64_t{16} << 30;
  const double expected = 1.75 * static_cast<double>(bytes) / 367e9;
  EXPECT_NEAR(all_reduce_seconds("hgx-h200-ndr400", 8, bytes), expected, 0.05 * expected);
}

// nccl-tests, 4 nodes of 8 x B200 with 400 Gb/s NICs: 381 GB/s bus bandwidth at
// 8 GiB, 73 % of the NICs over EFA; InfiniBand is stated somewhat faster.
TEST(Presets, AllReduceOverBlackwellNodes) {
  const std::int64_t bytes = std::int64_t{8} << 30;
  const double expected = 2.0 * 31.0 / 32.0 * static_cast<double>(bytes) / 381e9;
  EXPECT_NEAR(all_reduce_seconds("dgx-b200-ndr400", 32, bytes), expected, 0.20 * expected);
}

// Llama 3: 24,576 GPUs, pods of 3,072 at full bisection, 1:7 between them. Two
// halves of four pods: 4 * 3072 * 50 GB/s / 7. Two pods' worth of rails inside
// one pod: no loss.
TEST(Presets, LlamaThreeBisection) {
  const TopologySpec spec = read("h100-roce-clos");
  const double whole =
      static_cast<double>(Topology::build(spec, 24576)->bisection_bandwidth().bytes_per_second);
  EXPECT_NEAR(whole, 4.0 * 3072 * 50e9 / 7.0, 1e-6 * whole);
  const std::int64_t pod = Topology::build(spec, 3072)->bisection_bandwidth().bytes_per_second;
  EXPECT_EQ(pod, std::int64_t{1536} * 50'000'000'000);
}

}  // namespace
}  // namespace foretrain
