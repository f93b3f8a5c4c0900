#include "tests/model/known_models.h"

#include "foretrain/model.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// One multi-token-prediction module of DeepSeek-V3.
namespace foretrain {
namespace {

constexpr std::int64_t kS = 4096;

BlockContext layout(std::int64_t tp, RecomputeMode recompute = RecomputeMode::kNone) {
  BlockContext at;
  at.sequence_length = kS;
  at.tp = tp;
  at.ep = 8;
  at.recompute = recompute;
  return at;
}

std::vector<std::string> names(const std::vector<Operator>& operators) {
  std::vector<std::string> list;
  for (const Operator& op : operators)
    list.emplace_back(op.name);
  return list;
}

// Rule: the next token's embedding and the state, both normed, through one projection into a layer
// of the last one's kind.
TEST(Prediction, ForwardIsEmbeddingJoinAndLayer) {
  const ModelConfig model = known::deepseek_v3();
  const std::vector<std::string> list =
      names(block_operators(model, BlockKind::kPrediction, layout(4)).forward);
  std::vector<std::string> expected = {"embedding",
                                       "tp reduce-scatter",
                                       "embedding norm",
                                       "state norm",
                                       "join",
                                       "tp all-gather",
                                       "join projection",
                                       "tp all-gather"};
  const std::vector<std::string> layer =
      names(block_operators(model, BlockKind::kMoe, layout(4)).forward);
  expected.insert(expected.end(), layer.begin(), layer.end());
  EXPECT_EQ(list, expected);
}

// Rule: the projection is cut by columns: 2 h deep, h / tp wide; its input is gathered whole.
TEST(Prediction, Projection) {
  const BlockOperators block =
      block_operators(known::deepseek_v3(), BlockKind::kPrediction, layout(4));
  EXPECT_EQ(block.forward[5].payload.value, kS * 2 * 7168 * 2);
  EXPECT_EQ(block.forward[6].m, kS);
  EXPECT_EQ(block.forward[6].n, 7168 / 4);
  EXPECT_EQ(block.forward[6].k, 2 * 7168);
  EXPECT_EQ(block.forward[7].payload.value, kS * 7168 * 2);
}

// Rule: backward ends in the embedding's gradient, once the module's own gradients are there.
TEST(Prediction, BackwardEndsInTheEmbedding) {
  const BlockOperators block =
      block_operators(known::deepseek_v3(), BlockKind::kPrediction, layout(1));
  const std::vector<std::string> list = names(block.backward);
  const std::vector<std::string> tail(list.end() - 6, list.end());
  EXPECT_EQ(tail,
            (std::vector<std::string>{"join projection input gradient",
                                      "join projection weight gradient",
                                      "state norm gradient",
                                      "embedding norm gradient",
                                      "state gradient sum",
                                      "embedding gradient"}));
  EXPECT_FALSE(block.backward.back().inputs.empty());
}

// Rule: kept beside the layer's own: both norms' inputs and the joined tensor, 4 hidden states;
// with full recomputation the two inputs alone.
TEST(Prediction, Stash) {
  const ModelConfig model = known::deepseek_v3();
  const std::int64_t hidden_state = kS * 7168 * 2;
  const auto kept = [&](BlockKind kind, RecomputeMode mode) {
    return stash_bytes(block_operators(model, kind, layout(1, mode))).value;
  };
  EXPECT_EQ(kept(BlockKind::kPrediction, RecomputeMode::kNone) -
                kept(BlockKind::kMoe, RecomputeMode::kNone),
            4 * hidden_state);
  EXPECT_EQ(kept(BlockKind::kPrediction, RecomputeMode::kFull), 2 * hidden_state);
}

// Rule: a dense model's module has a dense layer.
TEST(Prediction, DenseModel) {
  ModelConfig model = known::llama3_8b();
  model.mtp_layers = 1;
  const std::vector<std::string> list =
      names(block_operators(model, BlockKind::kPrediction, layout(1)).forward);
  EXPECT_EQ(std::count(list.begin(), list.end(), "mlp up"), 1);
  EXPECT_EQ(count_parameters(model).mtp,
            block_parameters(model, BlockKind::kDense, 1) + 2 * 4096LL * 4096 + 3 * 4096);
}

// Rule: with sequence parallelism the gradient of the projection's output is gathered, as its saved
// input is, and the input's gradient is scattered.
TEST(Prediction, BackwardOverTensorParallelRanks) {
  const BlockOperators block =
      block_operators(known::deepseek_v3(), BlockKind::kPrediction, layout(4));
  std::vector<std::string> list = names(block.backward);
  list.erase(list.begin(), std::find(list.begin(), list.end(), "norm 1 gradient") + 1);
  EXPECT_EQ(list,
            (std::vector<std::string>{"tp all-gather",
                                      "tp all-gather",
                                      "join projection input gradient",
                                      "tp reduce-scatter",
                                      "join projection weight gradient",
                                      "state norm gradient",
                                      "embedding norm gradient",
                                      "state gradient sum",
                                      "tp all-gather",
                                      "embedding gradient"}));
}

}  // namespace
}  // namespace foretrain
