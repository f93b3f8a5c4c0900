// Whatever form splits the layers, they sum to the model's: or the form is refused.
#include "foretrain/scenario.h"
#include "sim/scenario/layout.h"

#include <numeric>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

using Layers = std::vector<std::int64_t>;

Parallelism stages(std::int64_t pp, std::int64_t vpp) {
  Parallelism parallelism;
  parallelism.pp = pp;
  parallelism.vpp = vpp;
  return parallelism;
}

// Published layouts that are legal only because embedding and loss count as layers: Llama 3 405B
// (126 layers) on pp 8 vpp 8, Qwen3 235B (94) on pp 4 vpp 12, pp 8 vpp 3, pp 8 vpp 4.
TEST(SplitLayers, EmbeddingAndLossAsLayers) {
  const std::vector<std::vector<std::int64_t>> cases = {
      {126, 8, 8, 2}, {126, 16, 4, 2}, {94, 4, 12, 2}, {94, 8, 3, 4}, {94, 8, 4, 3}};
  for (const std::vector<std::int64_t>& row : cases) {
    Parallelism parallelism = stages(row[1], row[2]);
    EXPECT_FALSE(split_layers(row[0], parallelism).has_value());
    parallelism.embedding_and_loss_as_layers = true;
    const Expected<Layers> split = split_layers(row[0], parallelism);
    ASSERT_TRUE(split.has_value());
    EXPECT_EQ(split->front(), row[3] - 1);
    EXPECT_EQ(split->back(), row[3] - 1);
    EXPECT_EQ(split->at(1), row[3]);
    EXPECT_EQ(std::accumulate(split->begin(), split->end(), std::int64_t{0}), row[0]);
  }
}

// Stage s = chunk * pp + rank: rank 0 holds 4 layers in two chunks of 2, and so on.
TEST(SplitLayers, OneCountPerRankIsDealtToItsChunks) {
  Parallelism parallelism = stages(2, 2);
  parallelism.layers_per_stage = {4, 6};
  EXPECT_EQ(*split_layers(10, parallelism), (Layers{2, 3, 2, 3}));
  parallelism.layers_per_stage = {5, 5};
  EXPECT_FALSE(split_layers(10, parallelism).has_value());
}

TEST(SplitLayers, FirstAndLast) {
  Parallelism parallelism = stages(4, 1);
  parallelism.first_stage_layers = 6;
  parallelism.last_stage_layers = 8;
  EXPECT_EQ(*split_layers(30, parallelism), (Layers{6, 8, 8, 8}));
  parallelism.last_stage_layers.reset();
  EXPECT_EQ(*split_layers(30, parallelism), (Layers{6, 8, 8, 8}));
  parallelism.first_stage_layers = 7;
  EXPECT_FALSE(split_layers(30, parallelism).has_value());
}

// DeepSeek-V3's layout of 61 layers and one prediction module: 3 + 29 x 2.
TEST(Layout, MegatronsNotation) {
  const Expected<std::vector<LayoutStage>> parsed = parse_layout("Et*3|(tt|)*29,m|L");
  ASSERT_TRUE(parsed.has_value());
  ASSERT_EQ(parsed->size(), 32U);
  EXPECT_TRUE(parsed->front().embedding);
  EXPECT_EQ(parsed->front().layers, 3);
  EXPECT_EQ(parsed->at(29).layers, 2);
  EXPECT_EQ(parsed->at(30).mtp, 1);
  EXPECT_TRUE(parsed->back().loss);
  std::int64_t total = 0;
  for (const LayoutStage& stage : *parsed) {
    total += stage.layers;
  }
  EXPECT_EQ(total, 61);
}

TEST(Layout, WhatIsNone) {
  for (const char* text : {"",
                           "t|L",
                           "Et",
                           "Et|Lt",
                           "E|E|L",
                           "Et(t|L",
                           "Et)|L",
                           "Et*0|L",
                           "Ex|L",
                           "E(((((((((((((((((t)))))))))))))))))|L",
                           "Et*99999999999|L",
                           "Et|mt|L"}) {
    EXPECT_FALSE(parse_layout(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace foretrain
