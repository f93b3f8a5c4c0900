#include "foretrain/collective.h"
#include "foretrain/model.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"

#include <cstdio>
#include <numeric>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

// DeepEP (deepseek-ai), normal kernels, H800 with one NDR NIC a GPU, 4,096 tokens of 7,168 FP8
// bytes, top-8 of 4 groups: dispatch of 43, 58, 51 GB/s over RDMA with 16, 32, 64 ranks. That is
// logical: each token counts once per node it goes to, its own node too, where it crosses no NIC.
TEST(Forwarding, DeepEpOnH800) {
  constexpr std::int64_t kTokens = 4096;
  constexpr std::int64_t kHidden = 7168;
  constexpr std::int64_t kCopies = 8;
  struct Row {
    std::int64_t ranks;
    double logical;
  };
  const TopologySpec spec = *read_topology("h800-ndr400");
  const ModelConfig model = *read_model("deepseek-v3");
  for (const Row& row : {Row{16, 43e9}, Row{32, 58e9}, Row{64, 51e9}}) {
    const Expected<Topology> topology = Topology::build(spec, row.ranks);
    std::vector<std::int64_t> ranks(static_cast<std::size_t>(row.ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    const GroupShape shape = topology->group_shape(ranks);
    const double nodes = nodes_per_token(model, shape.nodes);
    const CollectiveCost cost = forwarding_all_to_all(
        Bytes{kTokens * kHidden * kCopies}, kCopies, nodes, shape, link_model(spec));
    const double logical = static_cast<double>(kTokens * kHidden) * nodes / seconds(cost.total());
    const double wire = logical * (1.0 - 1.0 / static_cast<double>(shape.nodes));
    std::printf("EP%lld logical %.1f GB/s of %.1f measured, %+.1f %%, wire %.1f\n",
                static_cast<long long>(row.ranks),
                logical / 1e9,
                row.logical / 1e9,
                (logical / row.logical - 1.0) * 100.0,
                wire / 1e9);
    EXPECT_NEAR(logical, row.logical, 0.15 * row.logical) << row.ranks;
    EXPECT_LE(wire, 50e9) << "a 400 Gb/s NIC";
  }
}

}  // namespace
}  // namespace foretrain
