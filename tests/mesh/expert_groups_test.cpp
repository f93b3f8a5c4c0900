#include "foretrain/mesh.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

Groups groups_of(const MeshSize& size, std::string_view dimension) {
  const Expected<DeviceMesh> mesh = DeviceMesh::build(size);
  EXPECT_TRUE(mesh.has_value());
  Groups all;
  for (const ProcessGroup& group : mesh->groups(dimension)) {
    all.push_back(group.ranks);
  }
  return all;
}

// Rule: ep takes ranks from tp x cp x dp and adds none. The case of torchtitan#4831: 8 GPUs, tp 2,
// cp 2, dp 2; ep 4 leaves 8 / 4 = 2 replicas of each expert, ep 8 leaves one. Both legal.
TEST(ExpertGroups, ReuseTheStage) {
  MeshSize size;
  size.tp = size.cp = size.dp = 2;
  size.ep = 4;
  EXPECT_EQ(groups_of(size, "ep"), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(groups_of(size, "edp"), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  size.ep = 8;
  EXPECT_EQ(groups_of(size, "ep"), (Groups{{0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(groups_of(size, "edp").size(), 8U);
}

// Rule: tp 4, ep 4, etp 1 on 4 GPUs is legal (Megatron-Bridge#546): edp = 4 / 4 = 1.
TEST(ExpertGroups, TensorRanksBecomeExpertRanks) {
  MeshSize size;
  size.tp = size.ep = 4;
  EXPECT_EQ(groups_of(size, "ep"), (Groups{{0, 1, 2, 3}}));
  EXPECT_EQ(groups_of(size, "edp"), (Groups{{0}, {1}, {2}, {3}}));
}

// Rule: a multiple of max(tp, ep) * pp is legal too: tp 4, ep 4 on 8 GPUs, edp 2.
TEST(ExpertGroups, AnyMultipleIsLegal) {
  MeshSize size;
  size.tp = size.ep = 4;
  size.dp = 2;
  EXPECT_EQ(groups_of(size, "edp"), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

// Rule: etp is innermost, then ep, then edp, inside one pipeline stage (Megatron-LM's expert rank
// generator with order tp-cp-ep-dp-pp). 16 ranks, pp 2: stage 1 is ranks 8-15; etp 2 pairs
// neighbours, ep 2 is two apart, edp 2 four apart.
TEST(ExpertGroups, TensorInnermostWithinAStage) {
  MeshSize size;
  size.tp = 2;
  size.dp = 4;
  size.pp = 2;
  size.etp = 2;
  size.ep = 2;
  EXPECT_EQ(groups_of(size, "etp")[4], (std::vector<std::int64_t>{8, 9}));
  EXPECT_EQ(groups_of(size, "ep"),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(groups_of(size, "edp"),
            (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
}

// Rule: a stage's ranks need not be contiguous. Order tp-pp-ep-dp with tp 2, pp 2, dp 2: stage 0 is
// ranks 0 1 4 5, stage 1 is 2 3 6 7; ep 4 takes a whole stage.
TEST(ExpertGroups, StageScatteredByTheOrder) {
  MeshSize size;
  size.tp = size.pp = size.dp = 2;
  size.ep = 4;
  size.order = "tp-pp-ep-dp";
  EXPECT_EQ(groups_of(size, "ep"), (Groups{{0, 1, 4, 5}, {2, 3, 6, 7}}));
}

// Rule: an order with dp inside ep gives experts' replicas neighbouring ranks.
TEST(ExpertGroups, OrderDecidesReplicasOrExpertsFirst) {
  MeshSize size;
  size.dp = 4;
  size.ep = 2;
  size.order = "ep-dp";
  EXPECT_EQ(groups_of(size, "ep"), (Groups{{0, 1}, {2, 3}}));
  size.order = "dp-ep";
  EXPECT_EQ(groups_of(size, "ep"), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(groups_of(size, "edp"), (Groups{{0, 1}, {2, 3}}));
}

}  // namespace
}  // namespace foretrain
