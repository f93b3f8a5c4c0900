#include "foretrain/collective.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"
#include "sim/base/data_directory.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
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

double all_reduce_seconds(const std::string& preset, std::int64_t ranks, std::int64_t bytes) {
  const TopologySpec spec = read(preset);
  const Expected<Topology> topology = Topology::build(spec, ranks);
  std::vector<std::int64_t> group(static_cast<std::size_t>(ranks));
  for (std::size_t at = 0; at < group.size(); ++at) {
    group[at] = static_cast<std::int64_t>(at);
  }
  return seconds(
      collective_cost(
          CollectiveKind::kAllReduce, Bytes{bytes}, topology->group_shape(group), link_model(spec))
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
                           "h100-roce-clos",
                           "dgx-a100-40gb-hdr200",
                           "a100-4x200",
                           "a100-4x100-roce",
                           "a100-4x100-opa",
                           "a100-8x200-roce",
                           "a100-40gb-8x200-roce",
                           "a800-4x200-roce",
                           "h100-2x400",
                           "h100-96gb-500w-400",
                           "dgx-b300-xdr800",
                           "gb300-nvl72",
                           "dgx2-v100",
                           "dgx1-v100",
                           "gcp-a3-mega",
                           "aws-p6-b200-efa",
                           "a100-pcie-1x200",
                           "dgx-h100-ndr400-fat-tree-1to4"}) {
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
                                  spec.nic_efficiency,
                                  spec.low_latency_efficiency,
                                  spec.low_latency_nic_efficiency}) {
      EXPECT_GT(fraction, 0.0) << name;
      EXPECT_LE(fraction, 1.0) << name;
    }
    const std::int64_t fp8 = gpu.fp8_dense.flops_per_second;
    const std::int64_t bf16 = gpu.bf16_dense.flops_per_second;
    EXPECT_TRUE(fp8 == 0 || std::abs(fp8 - 2 * bf16) <= bf16 / 500) << name;
    const std::int64_t fp4 = gpu.nvfp4_dense.flops_per_second;
    EXPECT_TRUE(fp4 == 0 || fp4 == 2 * fp8 || fp4 == 3 * fp8) << name;
    EXPECT_EQ(fp8 > 0, gpu.fp8_gemm_efficiency > 0.0) << name;
    EXPECT_EQ(fp4 > 0, gpu.nvfp4_gemm_efficiency > 0.0) << name;
    EXPECT_LE(gpu.fp8_gemm_efficiency, 1.0) << name;
    EXPECT_LE(gpu.nvfp4_gemm_efficiency, 1.0) << name;
    const double reported = static_cast<double>(gpu.memory_reported.value) /
                            static_cast<double>(gpu.memory_as_sold.value);
    EXPECT_NEAR(reported, 1.07, 0.08) << name;
    const bool pcie = spec.node_interconnect == "pcie";
    EXPECT_GT(pcie ? spec.pcie_bandwidth : spec.nvlink_bandwidth, spec.nic_bandwidth) << name;
    EXPECT_GT(spec.sources.size(), 10U) << name;
  }
}

// What a node sends when all of its GPUs do, by its product's page: NICs times their rate, a share
// for each GPU. DGX-2's sixteen GPUs share eight NICs of 12.5 GB/s; behind PCIe 3.0 none waits.
TEST(Presets, EachGpuGetsItsShareOfTheNics) {
  struct Share {
    const char* name;
    double gigabytes;
  };
  for (const Share& expected : {Share{"dgx-a100-40gb-hdr200", 25.0},
                                Share{"a100-4x200", 12.5},
                                Share{"a100-4x100-roce", 6.25},
                                Share{"a100-4x100-opa", 6.25},
                                Share{"a100-8x200-roce", 25.0},
                                Share{"a800-4x200-roce", 12.5},
                                Share{"h100-2x400", 12.5},
                                Share{"h100-96gb-500w-400", 50.0},
                                Share{"dgx-b300-xdr800", 100.0},
                                Share{"gb300-nvl72", 100.0},
                                Share{"gb200-nvl72-64", 50.0},
                                Share{"gb300-nvl72-64", 100.0},
                                Share{"dgx2-v100", 6.25},
                                Share{"dgx1-v100", 6.25},
                                Share{"a100-pcie-1x200", 6.25}}) {
    const TopologySpec spec = read(expected.name);
    const std::int64_t node = spec.gpus_per_node;
    const Expected<Topology> two = Topology::build(spec, 2 * node);
    std::vector<std::vector<std::int64_t>> pairs;
    for (std::int64_t rank = 0; rank < node; ++rank) {
      pairs.push_back({rank, node + rank});
    }
    EXPECT_EQ(static_cast<double>(two->group_shapes(pairs).front().across.bytes_per_second),
              expected.gigabytes * 1e9)
        << expected.name;
    EXPECT_EQ(static_cast<double>(two->bisection_bandwidth().bytes_per_second),
              expected.gigabytes * 1e9 * static_cast<double>(node))
        << expected.name;
  }
}

/// As nccl-tests counts, of 1 GiB.
double bus_of(const std::string& preset, CollectiveKind kind, std::int64_t ranks) {
  const TopologySpec spec = read(preset);
  const Expected<Topology> topology = Topology::build(spec, ranks);
  std::vector<std::int64_t> group(static_cast<std::size_t>(ranks));
  std::iota(group.begin(), group.end(), 0);
  const Bytes bytes{std::int64_t{1} << 30};
  const CollectiveCost cost =
      collective_cost(kind, bytes, topology->group_shape(group), link_model(spec));
  return bus_bandwidth(kind, bytes, ranks, cost.total());
}

// MooreThreads/SimuMax, A100 PCIe, fractions of 30 GB/s: all-reduce, all-gather and reduce-scatter
// of two GPUs .697, .687, .642, of four .692, .692, .685; between nodes .6 of 25 GB/s.
TEST(Presets, PcieAloneCarriesACard) {
  struct Case {
    CollectiveKind kind;
    std::int64_t ranks;
    double measured, tolerance;
  };
  for (const Case& at : {Case{CollectiveKind::kAllReduce, 2, 0.6965 * 30e9, 0.06},
                         Case{CollectiveKind::kAllReduce, 4, 0.6924 * 30e9, 0.04},
                         Case{CollectiveKind::kAllGather, 2, 0.6866 * 30e9, 0.15},
                         Case{CollectiveKind::kAllGather, 4, 0.6915 * 30e9, 0.02},
                         Case{CollectiveKind::kReduceScatter, 2, 0.6419 * 30e9, 0.08},
                         Case{CollectiveKind::kReduceScatter, 4, 0.6845 * 30e9, 0.02},
                         Case{CollectiveKind::kAllReduce, 8, 0.6 * 25e9, 0.06}}) {
    const double bus = bus_of("a100-pcie-1x200", at.kind, at.ranks);
    EXPECT_NEAR(bus, at.measured, at.tolerance * at.measured)
        << to_string(at.kind) << " of " << at.ranks;
    EXPECT_LT(bus, 32e9 * 0.7) << "what PCIe 4.0 gives";
  }
  const Expected<Topology> node = Topology::build(read("a100-pcie-1x200"), 4);
  EXPECT_EQ(node->group_shape(std::vector<std::int64_t>{0, 1}).slowest_link_inside,
            "gpu0>n0.pcie0");
  for (const Link& link : node->links()) {
    EXPECT_NE(link.kind, LinkKind::kNvlink) << link.id;
  }
}

// Two leaves of six nodes, 48 ports down and 12 up each, 50 GB/s a port. Bisection: the 12. One
// message from every GPU to the other leaf: a quarter of a NIC. All pairs: of the 88 that a rank
// talks to over its NIC 48 are under the other leaf, so 48 x 48 / 88 streams share the 12 cables.
// Under one leaf, and in a ring that leaves it once, nothing is slowed.
TEST(Presets, AFatTreeWithAQuarterAboveItsLeaves) {
  const Expected<Topology> two = Topology::build(read("dgx-h100-ndr400-fat-tree-1to4"), 96);
  EXPECT_EQ(two->bisection_bandwidth().bytes_per_second, 12 * 50'000'000'000);
  std::vector<std::vector<std::int64_t>> far, near;
  for (std::int64_t rank = 0; rank < 48; ++rank) {
    far.push_back({rank, rank + 48});
  }
  for (std::int64_t rank = 0; rank < 24; ++rank) {
    near.push_back({rank, rank + 24});
  }
  for (const GroupShape& shape : two->group_shapes(far)) {
    EXPECT_EQ(shape.across.bytes_per_second, 12'500'000'000);
  }
  for (const GroupShape& shape : two->group_shapes(near)) {
    EXPECT_EQ(shape.across.bytes_per_second, 50'000'000'000);
  }
  std::vector<std::int64_t> all(96);
  std::iota(all.begin(), all.end(), 0);
  const GroupShape everybody = two->group_shape(all);
  EXPECT_EQ(everybody.across.bytes_per_second, 50'000'000'000);
  EXPECT_NEAR(static_cast<double>(everybody.across_all_pairs.bytes_per_second),
              12 * 50e9 * 88 / (48 * 48),
              1.0);
}

// Rule: a narrow format's GEMM constants are in the GPU's file exactly when its peak is; every
// fault of the file comes at once.
TEST(Presets, NarrowConstantsComeWithTheirPeak) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "narrow_gpu";
  std::filesystem::create_directories(folder);
  const auto copy = [&](std::string_view folder_of,
                        std::string_view from,
                        std::string_view to,
                        const auto& edit) {
    std::ifstream file(preset_path(folder_of, from));
    std::stringstream text;
    text << file.rdbuf();
    std::ofstream(folder / to) << edit(text.str());
  };
  const auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  copy("topologies", "dgx-b200-ndr400", "cluster.json", [&](const std::string& text) {
    return replaced(text, "\"b200-sxm\"", "\"./gpu.json\"");
  });
  copy("topologies/gpu", "b200-sxm", "gpu.json", [&](std::string text) {
    text = replaced(text, "9000 TFLOP/s", "0 FLOP/s");
    return replaced(text, "\"fp8_gemm_efficiency\"", "\"fp8_gemm_efficacy\"");
  });
  const Expected<TopologySpec> spec = read_topology((folder / "cluster.json").string());
  ASSERT_FALSE(spec.has_value());
  std::vector<std::string> pointers;
  for (const Diagnostic& fault : spec.error().list) {
    pointers.push_back(fault.pointer);
  }
  std::sort(pointers.begin(), pointers.end());
  EXPECT_EQ(pointers,
            (std::vector<std::string>{"/gpu/fp8_gemm_efficacy",
                                      "/gpu/fp8_gemm_efficiency",
                                      "/gpu/nvfp4_gemm_efficiency",
                                      "/gpu/nvfp4_gemm_half_size"}));
  std::filesystem::remove_all(folder);
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

// nccl-tests, 8 x H200: all-reduce bus bandwidth 480-482 GB/s at 16 GiB, reduced in the NVLink
// switch (stas00/ml-engineering).
TEST(Presets, AllReduceInOneHopperNode) {
  const std::int64_t bytes = std::int64_t{16} << 30;
  const double expected = 1.75 * static_cast<double>(bytes) / 481e9;
  EXPECT_NEAR(all_reduce_seconds("hgx-h200-ndr400", 8, bytes), expected, 0.02 * expected);
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

/// The first numbers of a cell: "34, 2.2 us" is 34 and 2.2, "none" is 0.
std::vector<double> numbers_in(std::string_view cell, std::size_t count) {
  std::vector<double> numbers;
  for (std::size_t at = 0; at < cell.size() && numbers.size() < count;) {
    const std::size_t end = std::min(cell.find_first_not_of("0123456789.", at), cell.size());
    if (end > at) {
      numbers.push_back(std::stod(std::string(cell.substr(at, end - at))));
    }
    at = end + 1;
  }
  numbers.resize(count, 0.0);
  return numbers;
}

// Rule: the constants in MODEL 4.5's table are the files', a column a GPU generation.
TEST(Presets, TheModelDocumentTellsTheirConstants) {
  std::ifstream file(FORETRAIN_SOURCE_DIR "/MODEL.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto us = [](Duration time) { return seconds(time) * 1e6; };
  std::size_t column = 0;
  for (const char* name : {"dgx-a100-hdr200", "dgx-h100-ndr400", "dgx-b200-ndr400"}) {
    const TopologySpec spec = read(name);
    const std::pair<std::string, std::vector<double>> rows[] = {
        {"nvlink_efficiency", {spec.nvlink_efficiency}},
        {"nic_efficiency", {spec.nic_efficiency}},
        {"collective_phase_overlap", {spec.collective_phase_overlap}},
        {"collective_latency_inside: bulk start", {us(spec.collective_latency_inside)}},
        {"collective_latency_hop: bulk, between nodes", {us(spec.collective_latency_hop)}},
        {"low_latency_efficiency, of the bulk rate", {spec.low_latency_efficiency}},
        {"low_latency_nic_efficiency", {spec.low_latency_nic_efficiency}},
        {"low_latency_start, collective_step_inside",
         {us(spec.low_latency_start), us(spec.collective_step_inside)}},
        {"low_latency_hop", {us(spec.low_latency_hop)}},
        {"nvls_efficiency", {spec.nvls_efficiency}},
        {"all_to_all_efficiency", {spec.all_to_all_efficiency}}};
    for (const auto& [key, values] : rows) {
      const std::string begins = "\n| " + key + " |";
      std::size_t cell = text.find(begins);
      ASSERT_NE(cell, std::string::npos) << "MODEL 4.5 has no row " << key;
      cell += begins.size() - 1;
      for (std::size_t skipped = 0; skipped < column; ++skipped) {
        cell = text.find('|', cell + 1);
      }
      const std::string_view words = std::string_view(text).substr(cell + 1);
      EXPECT_EQ(numbers_in(words.substr(0, words.find('|')), values.size()), values)
          << key << " of " << name;
    }
    ++column;
  }
}

}  // namespace
}  // namespace foretrain
