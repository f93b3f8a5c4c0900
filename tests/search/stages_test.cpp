#include "sim/search/stages.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

TEST(Stages, EveryLayerIsPlacedOnceAndTheEndsCarryLess) {
  for (const std::int64_t layers : {1, 5, 32, 61, 80, 94, 126}) {
    for (const std::int64_t pp : {1, 2, 4, 8, 16}) {
      const auto split = split_stages(layers, pp, 1, true);
      ASSERT_EQ(split.has_value(), layers >= pp) << layers << " over " << pp;
      if (!split || split->per_stage.empty()) {
        continue;
      }
      const auto& stages = split->per_stage;
      EXPECT_EQ(std::accumulate(stages.begin(), stages.end(), std::int64_t{0}), layers);
      EXPECT_EQ(*std::max_element(stages.begin(), stages.end()), split->most);
      EXPECT_EQ(stages.back(), split->last);
      EXPECT_EQ(stages.back(), layers / pp);
      EXPECT_LE(split->most - split->last, 1);
    }
  }
}

TEST(Stages, UnevenOnlyWhenAskedFor) {
  EXPECT_FALSE(split_stages(126, 16, 1, false));
  EXPECT_FALSE(split_stages(61, 2, 1, false));
  EXPECT_EQ(split_stages(80, 16, 1, false)->most, 5);
}

TEST(Stages, Llama405BCountsEmbeddingAndLossAsLayers) {
  const auto split = split_stages(126, 16, 4, true);
  ASSERT_TRUE(split);
  EXPECT_TRUE(split->ends_as_layers);
  EXPECT_EQ(split->most, 8);
  EXPECT_EQ(split->last, 7);
}

// 61 layers, an embedding and a loss in three chunks of one rank: it holds every layer.
TEST(Stages, OneRankHoldsEveryLayerHoweverManyChunks) {
  const auto split = split_stages(61, 1, 3, true);
  ASSERT_TRUE(split);
  EXPECT_EQ(split->most, 61);
  EXPECT_EQ(split->last, 61);
}

}  // namespace
}  // namespace foretrain
