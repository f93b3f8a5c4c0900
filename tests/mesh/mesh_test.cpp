#include "foretrain/mesh.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

DeviceMesh mesh_of(const MeshSize& size) {
  Expected<DeviceMesh> mesh = DeviceMesh::build(size);
  EXPECT_TRUE(mesh.has_value()) << (mesh ? "" : mesh.error().list.front().message);
  return mesh.value();
}

Groups groups_of(const DeviceMesh& mesh, std::string_view dimension) {
  Groups all;
  for (const ProcessGroup& group : mesh.groups(dimension)) {
    all.push_back(group.ranks);
  }
  return all;
}

Groups first_four(const DeviceMesh& mesh, std::string_view dimension) {
  Groups all = groups_of(mesh, dimension);
  all.resize(4);
  return all;
}

MeshSize sixteen_ranks() {
  MeshSize size;
  size.tp = size.cp = size.dp = size.pp = 2;
  return size;
}

// Rule: the innermost dimension has adjacent ranks. The worked example of the parallelism chapter:
// numpy arange(16).reshape(PP, DP, CP, TP), its printed groups and rank 13 = binary 1101.
TEST(Mesh, TwoByTwoByTwoByTwo) {
  const DeviceMesh mesh = mesh_of(sixteen_ranks());
  EXPECT_EQ(mesh.ranks(), 16);
  EXPECT_EQ(first_four(mesh, "tp"), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(first_four(mesh, "cp"), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(first_four(mesh, "dp"), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(first_four(mesh, "pp"), (Groups{{0, 8}, {1, 9}, {2, 10}, {3, 11}}));
  for (const char* dimension : {"tp", "cp", "dp", "pp"}) {
    EXPECT_EQ(mesh.groups(dimension).size(), 8U) << dimension;
  }
  const Coordinates at = mesh.coordinates(13);
  EXPECT_EQ(at.pp, 1);
  EXPECT_EQ(at.dp, 1);
  EXPECT_EQ(at.cp, 0);
  EXPECT_EQ(at.tp, 1);
}

// Rule: with 8 GPUs per node the same example keeps tp, cp, dp inside a node and pp across.
TEST(Mesh, InsideNode) {
  const DeviceMesh mesh = mesh_of(sixteen_ranks());
  EXPECT_TRUE(mesh.inside_node("tp"));
  EXPECT_TRUE(mesh.inside_node("cp"));
  EXPECT_TRUE(mesh.inside_node("dp"));
  EXPECT_FALSE(mesh.inside_node("pp"));
}

// Rule: Llama 3 puts data parallelism outermost, [TP, CP, PP, DP] (The Llama 3 Herd of Models,
// 3.3.2). Strides by hand: tp 1, cp 8, pp 8, dp 8 * 16 = 128 for tp 8, pp 16.
TEST(Mesh, LlamaThreeOrder) {
  MeshSize size;
  size.tp = 8;
  size.pp = 16;
  size.dp = 128;
  size.order = "tp-cp-pp-dp";
  const DeviceMesh mesh = mesh_of(size);
  EXPECT_EQ(mesh.ranks(), 16384);
  const ProcessGroup pipeline = mesh.groups("pp").front();
  ASSERT_EQ(pipeline.ranks.size(), 16U);
  EXPECT_EQ(pipeline.ranks[1], 8);
  EXPECT_EQ(pipeline.ranks[15], 120);
  const ProcessGroup data = mesh.groups("dp")[5];
  EXPECT_EQ(data.ranks[0], 5);
  EXPECT_EQ(data.ranks[1], 133);
  EXPECT_EQ(data.ranks[127], 5 + 127 * 128);
}

// Rule: where ep stands in the order does not move tp, cp, dp, pp: experts reuse ranks.
TEST(Mesh, ExpertWordMovesNothing) {
  for (const char* order : {"tp-cp-dp-pp", "ep-tp-cp-dp-pp", "tp-ep-cp-dp-pp", "tp-cp-dp-pp-ep"}) {
    MeshSize size = sixteen_ranks();
    size.order = order;
    const DeviceMesh mesh = mesh_of(size);
    EXPECT_EQ(first_four(mesh, "pp"), (Groups{{0, 8}, {1, 9}, {2, 10}, {3, 11}})) << order;
  }
}

// Rule: gradients are reduced over dp x cp, a replica is tp x cp x pp. Ranks 0-15 as bits PP DP CP
// TP: dp-cp of rank 0 varies the middle bits, model of rank 0 all but the DP bit.
TEST(Mesh, CompoundGroups) {
  const DeviceMesh mesh = mesh_of(sixteen_ranks());
  EXPECT_EQ(groups_of(mesh, "dp-cp"),
            (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
  EXPECT_EQ(groups_of(mesh, "model"),
            (Groups{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}));
}

}  // namespace
}  // namespace foretrain
