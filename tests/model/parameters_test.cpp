#include "tests/model/known_models.h"

#include "foretrain/model.h"

#include <cmath>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

struct KnownCount {
  const char* name;
  ModelConfig model;
  std::int64_t total;
};

// Rule: counts equal those of the published checkpoints, to the parameter.
TEST(Parameters, EqualThePublishedTotals) {
  const KnownCount known[] = {
      {"llama2-7b", known::llama2_7b(), 6'738'415'616},
      {"llama3-8b", known::llama3_8b(), 8'030'261'248},
      {"llama3-70b", known::llama3_70b(), 70'553'706'496},
      {"llama3-405b", known::llama3_405b(), 405'853'388'800},
      {"llama3.2-1b", known::llama32_1b(), 1'235'814'400},
      {"qwen2.5-7b", known::qwen25_7b(), 7'615'616'512},
      {"qwen3-30b-a3b", known::qwen3_30b_a3b(), 30'532'122'624},
      {"mixtral-8x7b", known::mixtral_8x7b(), 46'702'792'704},
      {"deepseek-v3", known::deepseek_v3(), 671'026'419'200},
      {"gpt2", known::gpt2(), 124'439'808},
  };
  for (const KnownCount& row : known)
    EXPECT_EQ(count_parameters(row.model).total, row.total) << row.name;
}

// Rule: the active count of a mixture takes top-k routed experts and the shared ones (published:
// 3.35 B, 12.88 B, 37.55 B); a dense model is wholly active.
TEST(Parameters, ActiveCountsOfMixtures) {
  EXPECT_NEAR(static_cast<double>(count_parameters(known::qwen3_30b_a3b()).active), 3.35e9, 5e6);
  EXPECT_NEAR(static_cast<double>(count_parameters(known::mixtral_8x7b()).active), 12.88e9, 5e6);
  EXPECT_NEAR(static_cast<double>(count_parameters(known::deepseek_v3()).active), 37.55e9, 5e6);
  const ParameterCount dense = count_parameters(known::llama3_8b());
  EXPECT_EQ(dense.active, dense.total);
}

// Rule: active parameters to the parameter, written out: what every token multiplies or looks up,
// with top-k experts of 3 h f_e.
TEST(Parameters, ActiveCountsExactly) {
  const std::int64_t mixtral_layer =
      2 * 4096LL * 4096 + 2 * 4096 * 1024 + 2 * 3 * 4096LL * 14336 + 4096 * 8 + 2 * 4096;
  EXPECT_EQ(count_parameters(known::mixtral_8x7b()).active,
            32 * mixtral_layer + 2 * 32000LL * 4096 + 4096);
  const std::int64_t qwen_layer =
      2 * 2048LL * 4096 + 2 * 2048 * 512 + 2 * 128 + 8 * 3 * 2048LL * 768 + 2048 * 128 + 2 * 2048;
  EXPECT_EQ(count_parameters(known::qwen3_30b_a3b()).active,
            48 * qwen_layer + 2 * 151936LL * 2048 + 2048);
  const std::int64_t latent = 7168LL * 1536 + 1536 + 1536LL * 128 * 192 + 7168 * (512 + 64) + 512 +
                              512LL * 128 * 256 + 128 * 128LL * 7168;
  const std::int64_t expert = 3 * 7168LL * 2048;
  EXPECT_EQ(count_parameters(known::deepseek_v3()).active,
            61 * (latent + 2 * 7168) + 3 * 3 * 7168LL * 18432 +
                58 * (9 * expert + 7168 * 256 + 256) + 2 * 129280LL * 7168 + 7168);
}

/// Parameters of a block that every tensor-parallel rank holds whole.
std::int64_t replicated(const ModelConfig& model, BlockKind kind) {
  const std::int64_t h = model.hidden;
  if (kind == BlockKind::kEmbedding)
    return 0;
  if (kind == BlockKind::kHead)
    return h;
  std::int64_t count = 2 * h + (model.qk_norm ? 2 * model.head_dim : 0);
  if (model.kv_lora_rank > 0) {
    count += h * model.q_lora_rank + model.q_lora_rank +
             h * (model.kv_lora_rank + model.qk_rope_dim) + model.kv_lora_rank;
  }
  if (kind == BlockKind::kPrediction)
    count += 2 * h;
  if (kind == BlockKind::kMoe || (kind == BlockKind::kPrediction && model.experts > 0))
    count += h * model.experts + (model.router_bias ? model.experts : 0);
  return count;
}

// Rule: over all ranks of a folding (tp cp dp = etp ep edp) each expert is held edp times and the
// rest dp cp times, but for what every tp rank holds whole; that done, they are the model.
TEST(Parameters, RanksOfAFoldingAddUp) {
  struct Folding {
    std::int64_t tp, cp, dp, ep, etp;
  };
  const Folding foldings[] = {
      {1, 1, 8, 8, 1}, {4, 1, 2, 8, 1}, {2, 2, 2, 4, 2}, {4, 2, 1, 2, 4}, {8, 1, 1, 1, 1}};
  for (const ModelConfig& model :
       {known::llama3_8b(), known::mixtral_8x7b(), known::qwen3_30b_a3b(), known::deepseek_v3()}) {
    for (const Folding& f : foldings) {
      // 4 key/value heads cannot be cut over 8 ranks.
      if (model.kv_heads % f.tp != 0)
        continue;
      Parallelism degrees;
      degrees.tp = f.tp, degrees.cp = f.cp, degrees.dp = f.dp;
      degrees.ep = f.ep, degrees.etp = f.etp;
      const std::int64_t ranks = f.tp * f.cp * f.dp;
      const std::int64_t edp = ranks / (f.ep * f.etp);
      const auto once = [&](BlockKind kind) {
        const RankParameters rank = rank_parameters(model, kind, degrees);
        return ranks * rank.experts / edp + ranks * rank.shared / (f.dp * f.cp) -
               (f.tp - 1) * replicated(model, kind);
      };
      std::int64_t sum = 0;
      for (const BlockKind kind : model_blocks(model))
        sum += once(kind);
      EXPECT_EQ(sum, count_parameters(model).total) << model.model_type << " tp " << f.tp;
      if (model.mtp_layers > 0) {
        // The module's last norm is the head's.
        EXPECT_EQ(once(BlockKind::kPrediction) + model.hidden, count_parameters(model).mtp);
      }
    }
  }
}

// Rule: multi-token prediction is on top of the total, 11.61 B for DeepSeek-V3's one module.
TEST(Parameters, MultiTokenPredictionIsExtra) {
  EXPECT_NEAR(static_cast<double>(count_parameters(known::deepseek_v3()).mtp), 11.61e9, 5e6);
  EXPECT_EQ(count_parameters(known::llama3_8b()).mtp, 0);
}

// Rule: the tables that only look up: an untied token table, learned positions.
TEST(Parameters, InputEmbedding) {
  EXPECT_EQ(count_parameters(known::llama3_8b()).input_embedding, 128256 * 4096);
  EXPECT_EQ(count_parameters(known::llama32_1b()).input_embedding, 0);
  EXPECT_EQ(count_parameters(known::gpt2()).input_embedding, 1024 * 768);
}

// Rule: the blocks on one rank add up to the model, whatever the family.
TEST(Parameters, BlocksAddUpToTheModel) {
  for (const ModelConfig& model : {known::llama3_8b(),
                                   known::llama32_1b(),
                                   known::qwen25_7b(),
                                   known::qwen3_30b_a3b(),
                                   known::mixtral_8x7b(),
                                   known::deepseek_v3(),
                                   known::gpt2()}) {
    std::int64_t sum = 0;
    for (const BlockKind kind : model_blocks(model))
      sum += block_parameters(model, kind, 1);
    EXPECT_EQ(sum, count_parameters(model).total) << model.model_type;
  }
}

// Rule: over tp ranks the split matrices add up once and each replicated vector tp times. For
// Llama the replicated part of a layer is its two norms.
TEST(Parameters, TensorParallelSharesAddUp) {
  const ModelConfig model = known::llama3_8b();
  const std::int64_t whole = block_parameters(model, BlockKind::kDense, 1);
  for (const std::int64_t tp : {1, 2, 4, 8}) {
    EXPECT_EQ(tp * block_parameters(model, BlockKind::kDense, tp),
              whole + (tp - 1) * 2 * model.hidden);
  }
  // 8 key/value heads over 16 ranks: each rank still holds one of each.
  const std::int64_t replicated = block_parameters(model, BlockKind::kDense, 16);
  EXPECT_EQ(16 * replicated, whole + 15 * 2 * model.hidden + 8 * 2 * 128 * model.hidden);
}

// Rule: stages cover the model; a tied head away from its embedding keeps a copy of the table.
TEST(Parameters, StagesAddUp) {
  Parallelism parallelism;
  parallelism.pp = 4;
  parallelism.layers_per_stage = {5, 4, 4, 3};
  for (const bool tied : {false, true}) {
    ModelConfig model = known::llama32_1b();
    model.tied_embeddings = tied;
    std::int64_t sum = 0;
    for (const StageSlice& slice : stage_slices(model, parallelism))
      sum += stage_parameters(model, slice, 1);
    const std::int64_t copy = tied ? model.vocabulary * model.hidden : 0;
    EXPECT_EQ(sum, count_parameters(model).total + copy);
  }
  const std::vector<StageSlice> slices = stage_slices(known::llama32_1b(), parallelism);
  EXPECT_EQ(slices[1].first_layer, 5);
  EXPECT_TRUE(slices.front().embedding && !slices.front().head);
  EXPECT_TRUE(slices.back().head && !slices.back().embedding);
}

// Rule: leading dense layers of a mixture are dense blocks, the rest MoE.
TEST(Parameters, BlockKinds) {
  const std::vector<BlockKind> blocks = model_blocks(known::deepseek_v3());
  ASSERT_EQ(blocks.size(), 63U);
  EXPECT_EQ(blocks[0], BlockKind::kEmbedding);
  EXPECT_EQ(blocks[3], BlockKind::kDense);
  EXPECT_EQ(blocks[4], BlockKind::kMoe);
  EXPECT_EQ(blocks[62], BlockKind::kHead);
}

}  // namespace
}  // namespace foretrain
