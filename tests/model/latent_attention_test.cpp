#include "tests/model/known_models.h"

#include "foretrain/model.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// Multi-latent attention of DeepSeek-V3: h 7168, 128 heads, ranks 1536 and 512, widths 128 without
// position, 64 with, 128 of values.
namespace foretrain {
namespace {

constexpr std::int64_t kS = 4096;

BlockContext layout(std::int64_t tp) {
  BlockContext at;
  at.sequence_length = kS;
  at.tp = tp;
  return at;
}

BlockOperators dense(const BlockContext& at) {
  return block_operators(known::deepseek_v3(), BlockKind::kDense, at);
}

const Operator& find(const std::vector<Operator>& operators, std::string_view name) {
  const auto found = std::find_if(
      operators.begin(), operators.end(), [&](const Operator& op) { return op.name == name; });
  EXPECT_NE(found, operators.end()) << name;
  return found == operators.end() ? operators.front() : *found;
}

std::vector<std::string> until(const std::vector<Operator>& operators, std::string_view last) {
  std::vector<std::string> list;
  for (const Operator& op : operators) {
    list.emplace_back(op.name);
    if (op.name == last)
      break;
  }
  return list;
}

// Rule: down projections run on the rank's own tokens; the latents, not the hidden state, are
// gathered, and so is the one rotary key.
TEST(LatentAttention, ForwardOrder) {
  const BlockOperators block = dense(layout(4));
  const std::vector<std::string> expected = {"norm 1",
                                             "query down",
                                             "key value down",
                                             "tp all-gather",
                                             "query norm",
                                             "tp all-gather",
                                             "query up",
                                             "key value norm",
                                             "tp all-gather",
                                             "key value up",
                                             "rotary",
                                             "attention",
                                             "attention output"};
  EXPECT_EQ(until(block.forward, "attention output"), expected);
  std::vector<std::int64_t> widths;
  for (const Operator& op : block.forward) {
    if (op.kind == OperatorKind::kCollective)
      widths.push_back(op.payload.value / (2 * kS));
  }
  EXPECT_EQ(widths, (std::vector<std::int64_t>{64, 1536, 512, 7168, 7168, 7168}));
}

TEST(LatentAttention, GemmShapes) {
  const BlockOperators block = dense(layout(4));
  const auto expect_gemm = [&](const char* name, std::int64_t m, std::int64_t n, std::int64_t k) {
    const Operator& op = find(block.forward, name);
    EXPECT_EQ(op.m, m) << name;
    EXPECT_EQ(op.n, n) << name;
    EXPECT_EQ(op.k, k) << name;
  };
  expect_gemm("query down", kS / 4, 1536, 7168);
  expect_gemm("query up", kS, 32 * 192, 1536);
  expect_gemm("key value down", kS / 4, 512 + 64, 7168);
  expect_gemm("key value up", kS, 32 * 256, 512);
  expect_gemm("attention output", kS, 7168, 32 * 128);
}

// Rule: 3 (q_dim + v_dim) FLOPs per causal pair and head, a third of it forward; q and k are 192
// wide, v and the output 128.
TEST(LatentAttention, CoreAttention) {
  const BlockOperators block = dense(layout(4));
  const std::int64_t pairs = kS * kS / 2;
  const Operator& attention = find(block.forward, "attention");
  EXPECT_EQ(attention.flops.value, 2 * 32 * (192 + 128) * pairs);
  EXPECT_EQ(attention.bytes.value, kS * 32 * (2 * 192 + 2 * 128) * 2 + 4 * 32 * kS);
  EXPECT_EQ(find(block.backward, "attention gradient").flops.value, 4 * 32 * (192 + 128) * pairs);
}

// Rule: without a query rank the query projection is one matrix on the gathered hidden state.
TEST(LatentAttention, FullQueryProjection) {
  ModelConfig model = known::deepseek_v3();
  model.q_lora_rank = 0;
  const BlockOperators block = block_operators(model, BlockKind::kDense, layout(4));
  EXPECT_EQ(find(block.forward, "query up").k, 7168);
  const std::vector<std::string> list = until(block.forward, "attention");
  EXPECT_EQ(std::count(list.begin(), list.end(), "query down"), 0);
}

// Rule: kept per token: both latents with their normed copies, q and k of 192 and v of 128 a head.
// With the up projections recomputed the latents and the one rotary key stand for all of it.
TEST(LatentAttention, Stash) {
  BlockContext at = layout(1);
  const std::int64_t rest = 2 * kS * (4 * 7168 + 128 * 128 + 3 * 18432) + 4 * 128 * kS;
  EXPECT_EQ(stash_bytes(dense(at)).value,
            rest + 2 * kS * (2 * 1536 + 2 * 512 + 128 * (192 + 192 + 128)));
  at.recompute = RecomputeMode::kModules;
  at.recompute_modules = {"mla_up_proj"};
  const BlockOperators again = dense(at);
  EXPECT_EQ(stash_bytes(again).value, rest + 2 * kS * (1536 + 512 + 64));
  std::vector<std::string> recomputed;
  for (const Operator& op : again.backward) {
    if (op.pass == Pass::kRecompute)
      recomputed.emplace_back(op.name);
  }
  EXPECT_EQ(recomputed,
            (std::vector<std::string>{
                "query norm", "query up", "key value norm", "key value up", "rotary"}));
}

// Rule: backward is the way back: each up projection gathers its latent again and scatters its
// gradient, the rotary key's is scattered, and two gradients of the hidden state are added.
TEST(LatentAttention, BackwardOrder) {
  const std::vector<Operator> backward = dense(layout(4)).backward;
  std::vector<std::string> list;
  for (const Operator& op : backward)
    list.emplace_back(op.name);
  const std::vector<std::string> expected = {"rotary gradient",
                                             "tp all-gather",
                                             "key value up input gradient",
                                             "tp reduce-scatter",
                                             "key value up weight gradient",
                                             "key value norm gradient",
                                             "tp all-gather",
                                             "query up input gradient",
                                             "tp reduce-scatter",
                                             "query up weight gradient",
                                             "query norm gradient",
                                             "tp reduce-scatter",
                                             "key value down input gradient",
                                             "key value down weight gradient",
                                             "query down input gradient",
                                             "query down weight gradient",
                                             "latent gradient sum",
                                             "norm 1 gradient"};
  const auto from = std::find(list.begin(), list.end(), "rotary gradient");
  EXPECT_EQ(std::vector<std::string>(from, list.end()), expected);
}

}  // namespace
}  // namespace foretrain
