#include "tests/model/known_models.h"

#include "foretrain/model.h"

#include <gtest/gtest.h>

namespace foretrain {
namespace {

constexpr double kGiga = 1e9;

double causal(const ModelConfig& model, std::int64_t sequence) {
  return flops_per_token(model, sequence, FlopsConvention::kCausal) / kGiga;
}
double full(const ModelConfig& model, std::int64_t sequence) {
  return flops_per_token(model, sequence, FlopsConvention::kFull) / kGiga;
}

// Rule: 6 (N - input embedding) + 6 L h s. Figures: Llama 3 at 8,192 tokens, as NVIDIA's published
// rates imply them.
TEST(Flops, LlamaThreeCausal) {
  EXPECT_NEAR(causal(known::llama3_8b(), 8192), 51.47, 0.005);
  EXPECT_NEAR(causal(known::llama3_70b(), 8192), 449.2, 0.05);
  EXPECT_NEAR(causal(known::llama3_405b(), 8192), 2524.0, 0.05);
}

// Rule: the full convention counts both halves of the attention matrix: 57.91 for 8B at 8,192, and
// the difference is 6 L h s = 6 * 32 * 4096 * 8192.
TEST(Flops, FullCountsBothHalves) {
  EXPECT_NEAR(full(known::llama3_8b(), 8192), 57.91, 0.005);
  EXPECT_DOUBLE_EQ(full(known::llama3_8b(), 8192) - causal(known::llama3_8b(), 8192),
                   6.0 * 32 * 4096 * 8192 / kGiga);
}

// Rule: published utilisation of torchtitan (8B at 2,904 and 70B at 331 tokens/s on a 312 TFLOP/s
// peak) is reproduced by each convention: 53.9 % full, 47.9 % causal.
TEST(Flops, TorchtitanUtilisation) {
  EXPECT_NEAR(2904 * full(known::llama3_8b(), 8192) / 312e3, 0.539, 0.0005);
  EXPECT_NEAR(2904 * causal(known::llama3_8b(), 8192) / 312e3, 0.479, 0.0005);
  EXPECT_NEAR(331 * causal(known::llama3_70b(), 8192) / 312e3, 0.477, 0.0005);
}

// Rule: only active experts count: Mixtral 8x7B at 2,048 tokens, full attention, is the 79.71 that
// its logged 235.7 TFLOP/s at 2,957 tokens/s implies.
TEST(Flops, MixtralCountsActiveExperts) {
  EXPECT_NEAR(full(known::mixtral_8x7b(), 2048), 79.71, 0.005);
}

// Rule: multi-latent attention costs 3 (q_dim + v_dim) per causal pair and head; without
// multi-token prediction DeepSeek-V3 at 4,096 tokens is 250.4.
TEST(Flops, MultiLatentAttention) {
  // Matrices and attention alone are 250.4498, norms and router corrections 0.0062 more.
  EXPECT_NEAR(causal(known::deepseek_v3(), 4096) - 0.0062, 250.4, 0.05);
  const double slope = causal(known::deepseek_v3(), 8192) - causal(known::deepseek_v3(), 4096);
  EXPECT_NEAR(slope * kGiga, 3.0 * (192 + 128) * 128 * 61 * 4096, 1.0);
}

// Rule: a trained prediction module adds a layer, its projection and the head once more: 250.4
// becomes 260.6 for DeepSeek-V3 at 4,096 tokens.
TEST(Flops, PredictionModules) {
  const ModelConfig model = known::deepseek_v3();
  const double with = flops_per_token(model, 4096, FlopsConvention::kCausal, 0.0, 1) / kGiga;
  EXPECT_NEAR(with, 260.6, 0.05);
  // Attention 187.1 M, nine experts of 44.04 M, the router, 2 h^2, V h, norms; and 3 (q + v) a s
  // / 2.
  const double parameters = 187'107'328 + 9 * 44'040'192.0 + 7168 * 256 + 256 + 2 * 7168.0 * 7168 +
                            129280.0 * 7168 + 5 * 7168;
  EXPECT_NEAR(
      (with - causal(model, 4096)) * kGiga, 6 * parameters + 3.0 * (192 + 128) * 128 * 4096, 1.0);
}

// Rule: tied embeddings still pay for the head: V h more multiply-adds than without any.
TEST(Flops, TiedHeadIsCounted) {
  ModelConfig tied = known::llama32_1b();
  ModelConfig untied = tied;
  untied.tied_embeddings = false;
  EXPECT_DOUBLE_EQ(causal(tied, 4096), causal(untied, 4096));
}

// Rule: attention's share grows with the sequence: an eighth at 8k, two thirds at 128k for 8B
// (6.44 of 51.47; 103.1 of 148.1).
TEST(Flops, AttentionShareGrows) {
  const ModelConfig model = known::llama3_8b();
  const double rest = 6.0 * (8'030'261'248 - 525'336'576) / kGiga;
  EXPECT_NEAR(1 - rest / causal(model, 8192), 0.125, 0.001);
  EXPECT_NEAR(1 - rest / causal(model, 131072), 0.696, 0.001);
}

// Rule: inside a sliding window only pairs at most w apart count: 2 s w - w^2 of s^2; a window as
// long as the sequence changes nothing.
TEST(Flops, SlidingWindow) {
  ModelConfig model = known::llama3_8b();
  const double matrices = 6.0 * (8'030'261'248 - 525'336'576);
  model.sliding_window = 1024;
  const double pairs = (2.0 * 8192 * 1024 - 1024.0 * 1024) / 2;
  EXPECT_NEAR(causal(model, 8192) * kGiga, matrices + 12.0 * 32 * 4096 * pairs / 8192, 1.0);
  model.sliding_window = 100'000;
  EXPECT_DOUBLE_EQ(causal(model, 8192), causal(known::llama3_8b(), 8192));
}

// Rule: the hardware convention is the causal one plus what is done again.
TEST(Flops, HardwareAddsRecomputation) {
  const ModelConfig model = known::llama3_8b();
  EXPECT_DOUBLE_EQ(flops_per_token(model, 4096, FlopsConvention::kHardware, 1e9),
                   flops_per_token(model, 4096, FlopsConvention::kCausal) + 1e9);
}

}  // namespace
}  // namespace foretrain
