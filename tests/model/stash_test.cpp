#include "tests/model/known_models.h"

#include "foretrain/model.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

BlockContext context(std::int64_t sequence, std::int64_t batch, std::int64_t tp, bool split) {
  BlockContext at;
  at.sequence_length = sequence;
  at.micro_batch_size = batch;
  at.tp = tp;
  at.sequence_parallel = split;
  return at;
}

std::int64_t layer_stash(const ModelConfig& model, const BlockContext& at) {
  return stash_bytes(block_operators(model, BlockKind::kDense, at)).value;
}

// Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models": a GPT
// layer in 16 bits with dropout and without a flash kernel. s = 2048, b = 1, h = 12288, a = 96.
constexpr std::int64_t kS = 2048, kH = 12288, kA = 96;
constexpr std::int64_t kSbh = kS * kH;

BlockContext paper(std::int64_t tp, bool split) {
  BlockContext at = context(kS, 1, tp, split);
  at.flash_attention = false;
  return at;
}

// Rule: equation 4, sequence parallelism: s b h (34 + 5 a s / h) / t, to the byte.
TEST(Stash, KorthikantiEquationFour) {
  for (const std::int64_t t : {1, 2, 4, 8}) {
    EXPECT_EQ(layer_stash(known::gpt3_175b(), paper(t, true)), (34 * kSbh + 5 * kA * kS * kS) / t);
  }
}

// Rule: equation 2, tensor parallelism alone: s b h (10 + 24 / t + 5 a s / (h t)).
TEST(Stash, KorthikantiEquationTwo) {
  for (const std::int64_t t : {1, 2, 4, 8}) {
    EXPECT_EQ(layer_stash(known::gpt3_175b(), paper(t, false)),
              10 * kSbh + 24 * kSbh / t + 5 * kA * kS * kS / t);
  }
}

// Rule: equation 6, selective recomputation: 34 s b h / t.
TEST(Stash, KorthikantiEquationSix) {
  BlockContext at = paper(8, true);
  at.recompute = RecomputeMode::kSelective;
  EXPECT_EQ(layer_stash(known::gpt3_175b(), at), 34 * kSbh / 8);
  at.recompute = RecomputeMode::kModules;
  at.recompute_modules = {"core_attn"};
  EXPECT_EQ(layer_stash(known::gpt3_175b(), at), 34 * kSbh / 8);
}

// Rule: a flash kernel keeps one 32-bit number per query and head instead of the scores, so that
// selective recomputation has next to nothing left to save.
TEST(Stash, FlashKeepsStatisticsOnly) {
  BlockContext at = context(kS, 1, 8, true);
  const std::int64_t kept = layer_stash(known::gpt3_175b(), at);
  EXPECT_EQ(kept, (34 * kSbh + 4 * kA * kS) / 8);
  at.recompute = RecomputeMode::kSelective;
  EXPECT_EQ(layer_stash(known::gpt3_175b(), at), 34 * kSbh / 8);
  EXPECT_LT(static_cast<double>(kept - 34 * kSbh / 8), 0.02 * static_cast<double>(kept));
}

// Rule: full recomputation keeps the block's input: 2 s b h, divided by t only when the sequence
// is split.
TEST(Stash, FullKeepsTheInput) {
  BlockContext at = context(8192, 2, 8, true);
  at.recompute = RecomputeMode::kFull;
  const std::int64_t sbh = 8192LL * 2 * 4096;
  EXPECT_EQ(layer_stash(known::llama3_8b(), at), 2 * sbh / 8);
  at.sequence_parallel = false;
  EXPECT_EQ(layer_stash(known::llama3_8b(), at), 2 * sbh);
}

// Rule: a Llama layer keeps, in units of s b h / t: norm inputs 4, norm outputs 4, q 2, k and v
// 4 kv / a, attention output 2, gate, up and their product 6 f / h. For 405B (f = 3.25 h, kv =
// a / 16): 4 + 4 + 2 + 0.25 + 2 + 19.5 = 31.75, and 4 a / h for the flash statistics.
TEST(Stash, LlamaFourHundredFive) {
  const std::int64_t sbh = 8192LL * 16384;
  EXPECT_EQ(layer_stash(known::llama3_405b(), context(8192, 1, 8, true)),
            (31 * sbh + 3 * sbh / 4 + 4 * 128 * 8192) / 8);
}

// Rule: recomputed norms free their outputs (2 of 2 s b h / t), a recomputed MLP its inner tensors
// (6 f s b / t).
TEST(Stash, Modules) {
  const ModelConfig model = known::llama3_8b();
  BlockContext at = context(4096, 1, 4, true);
  const std::int64_t all = layer_stash(model, at);
  at.recompute = RecomputeMode::kModules;
  at.recompute_modules = {"layernorm"};
  EXPECT_EQ(all - layer_stash(model, at), 4 * 4096LL * 4096 / 4);
  at.recompute_modules = {"mlp"};
  EXPECT_EQ(all - layer_stash(model, at), 6 * 4096LL * 14336 / 4);
  at.recompute_modules = {"mlp", "layernorm", "core_attn"};
  EXPECT_EQ(all - layer_stash(model, at),
            4 * 4096LL * 4096 / 4 + 6 * 4096LL * 14336 / 4 + 4 * 32 * 4096 / 4);
}

// Rule: logits live at 16 bits beside a 32-bit copy that becomes their gradient: 6 s b V / t; only
// the head has them.
TEST(Stash, Logits) {
  const BlockContext at = context(8192, 1, 8, true);
  const BlockOperators head = block_operators(known::llama3_8b(), BlockKind::kHead, at);
  EXPECT_EQ(head.logits.value, 6 * 8192LL * 128256 / 8);
  EXPECT_EQ(stash_bytes(head).value, 2 * 2 * 8192LL * 4096 / 8);
  EXPECT_EQ(block_operators(known::llama3_8b(), BlockKind::kDense, at).logits.value, 0);
}

// Rule: what passes between stages is the hidden state, split over tp with the sequence.
TEST(Stash, Boundary) {
  const ModelConfig model = known::llama3_8b();
  EXPECT_EQ(boundary_bytes(model, context(8192, 2, 8, true)).value, 2 * 8192LL * 2 * 4096 / 8);
  EXPECT_EQ(boundary_bytes(model, context(8192, 2, 8, false)).value, 2 * 8192LL * 2 * 4096);
}

}  // namespace
}  // namespace foretrain
