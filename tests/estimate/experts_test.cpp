// Mixtures of experts by hand: Mixtral 8x7B (arXiv 2401.04088: 32 layers, h 4096, 8 experts of
// 14336, 2 chosen) and DeepSeek-V3 (arXiv 2412.19437: 61 layers of which 3 dense, h 7168, 256
// experts of 2048, 8 chosen, one shared). Figures below are worked out on paper, GB of 1e9 bytes.
#include "tests/estimate/jobs.h"

#include "foretrain/model.h"

#include <gtest/gtest.h>

namespace foretrain::test {
namespace {

Estimator mixtral(std::int64_t sequence = 2048, std::int64_t batch = 128) {
  return chapter_estimator("mixtral-8x7b", sequence, batch);
}

Estimator deepseek() {
  return estimator_of(ClosedForm::kChapter, "deepseek-v3", 4096, 15360, "h800-ndr400");
}

// 32 layers x 8 experts x 3 x 4096 x 14336 = 45.1e9; 58 x 256 x 3 x 7168 x 2048 = 654e9.
TEST(Experts, ParametersSplitInTwoGroups) {
  EXPECT_EQ(mixtral().assumptions().expert_parameters, 45.1e9);
  EXPECT_EQ(mixtral().assumptions().parameters, 45.1e9 + 1.61e9);
  EXPECT_EQ(deepseek().assumptions().expert_parameters, 654e9);
  EXPECT_EQ(deepseek().assumptions().parameters, 654e9 + 17.1e9);
}

// tp 2, dp 8, ep 8 on 16 GPUs: outside the experts 1.61e9 / 2 = .805e9 a GPU, sharded over 8;
// experts 45.1e9 / 8 = 5.6375e9 a GPU, sharded over 16 / 8 = 2.
TEST(Experts, StatesOfMixtralByHand) {
  const EstimateMemory memory = mixtral().estimate(Layout{.tp = 2, .dp = 8, .ep = 8}).memory;
  EXPECT_NEAR(memory.weights / 1e9, 2 * (0.805 + 5.6375), 1e-9);
  EXPECT_NEAR(memory.gradients / 1e9, 2 * (0.805 + 5.6375), 1e-9);
  EXPECT_NEAR(memory.optimizer / 1e9, 12 * (0.805 / 8 + 5.6375 / 2), 1e-9);
}

// pp 16, ep 64 on 2,048 H800: dp 128; outside the experts 17.1e9 / 16 = 1.06875e9, over 128 ranks;
// experts 654e9 / (16 x 64) = .638671875e9, over 128 / 64 = 2: 6.8 + 3.9 = 10.8 GB of states.
TEST(Experts, StatesOfDeepSeekByHand) {
  const EstimateMemory memory = deepseek().estimate(Layout{.pp = 16, .dp = 128, .ep = 64}).memory;
  EXPECT_NEAR((memory.weights + memory.gradients) / 1e9, 4 * (1.06875 + 0.638671875), 1e-9);
  EXPECT_NEAR(memory.optimizer / 1e9, 12 * (1.06875 / 128 + 0.638671875 / 2), 1e-9);
  EXPECT_NEAR((memory.total() - memory.activations) / 1e9, 10.76, 0.005);
}

// etp cuts experts as ep does, and leaves the rest alone.
TEST(Experts, ExpertTensorParallelismCutsExpertsOnly) {
  const EstimateMemory memory =
      mixtral().estimate(Layout{.tp = 2, .dp = 8, .ep = 4, .etp = 2}).memory;
  EXPECT_NEAR(memory.weights / 1e9, 2 * (0.805 + 5.6375), 1e-9);
}

// 2 of 8 experts work on a token: 12.9e9 active of 46.7e9. The published count of FLOPs is the
// library's own, of exact parameters; rounding to three figures moves it by less than half a
// percent.
TEST(Experts, FlopsCountTheChosenExpertsOnly) {
  const Expected<ModelConfig> model = read_model("mixtral-8x7b");
  ASSERT_TRUE(model);
  const Estimate estimate = mixtral().estimate(Layout{.tp = 2, .dp = 8, .ep = 8});
  const double per_token = estimate.model_flops / (128.0 * 2048.0);
  EXPECT_NEAR(per_token / flops_per_token(*model, 2048, FlopsConvention::kCausal), 1.0, 0.005);
  EXPECT_LT(per_token, 6 * 46.7e9 / 3);
}

// Per MoE layer two all-to-alls each way, each 2 chosen x 1,024 tokens (2,048 over tp 2) x 4,096 x
// 2 bytes x 7/8 = 14.68 MB; x 4 x 32 layers = 1.879 GB; the busiest rank 1.2 times that. Eight
// ranks stay inside a node, sixteen do not.
TEST(Experts, AllToAllsByHand) {
  const Estimate inside = mixtral().estimate(Layout{.tp = 2, .dp = 8, .ep = 8});
  const double bytes = 4.0 * 32 * 2 * 1024 * 4096 * 2 * 7 / 8;
  EXPECT_NEAR(bytes / 1e9, 1.879, 0.001);
  EXPECT_NEAR(inside.parts.ep, 16 * bytes * 1.2 / 450e9, 1e-9);
  const Estimate across = deepseek().estimate(Layout{.pp = 16, .dp = 128, .ep = 64});
  // 4 layers of 3.8 (61 over 16), 58 in 61 with experts; 8 chosen x 4,096 x 7,168 x 2 bytes.
  const double sent = 4.0 * 4 * 58 / 61 * 8 * 4096.0 * 7168 * 2 * 63 / 64;
  EXPECT_NEAR(across.parts.ep, 120 * sent * 1.2 / 50e9, 1e-6);
}

// All of the all-to-alls hidden, balanced routing: nothing left of both.
TEST(Experts, OverlapAndBalanceAreTheLimits) {
  const Expected<ModelConfig> model = read_model("mixtral-8x7b");
  const Expected<TopologySpec> hardware = read_topology("dgx-h100-ndr400");
  ASSERT_TRUE(model && hardware);
  Assumptions ideal = default_assumptions(ClosedForm::kChapter, *model, *hardware);
  ideal.ep_overlap = 1;
  ideal.expert_imbalance = 1;
  const Layout layout{.dp = 16, .ep = 8};
  const Estimate estimate = Estimator(*model, 2048, 128, ideal).estimate(layout);
  EXPECT_EQ(estimate.parts.ep, 0);
  EXPECT_NEAR(estimate.parts.imbalance, 0, 1e-9 * estimate.step_time_s);
  ideal.expert_imbalance = 1.3;
  const Estimate skewed = Estimator(*model, 2048, 128, ideal).estimate(layout);
  // Experts are 6 x 45.1e9 x 2 / 8 FLOPs a token; .3 of their time is waited for, on 16 GPUs.
  const double experts = 6 * 45.1e9 / 4 * 128 * 2048 / (16 * 989e12 * 0.6);
  EXPECT_NEAR(skewed.parts.imbalance, 0.3 * experts, 1e-9);
}

// A layer keeps 18 h + 2 x 1.2 x (4 h + 6 x 14,336) bytes a token: 319 kB, not the dense 34 h.
TEST(Experts, ActivationsFollowTheChosenExperts) {
  const Layout layout{.tp = 2, .dp = 8, .ep = 8, .recompute_layers = 0};
  const double kept = 18.0 * 4096 + 2 * 1.2 * (4 * 4096 + 6 * 14336.0);
  EXPECT_NEAR(kept, 319488, 1);
  const double activations = mixtral().estimate(layout).memory.activations;
  EXPECT_NEAR(activations / (32.0 * 2048 / 2 * kept), 1.0, 1e-12);
}

// Ranks that hold every expert send nothing and have no busiest one among them.
TEST(Experts, NoTrafficAndNoImbalanceWithoutExpertParallelism) {
  const Estimate estimate = mixtral().estimate(Layout{.tp = 8, .dp = 2, .recompute_layers = 0});
  EXPECT_EQ(estimate.parts.ep, 0);
  EXPECT_NEAR(estimate.parts.imbalance, 0, 1e-9 * estimate.step_time_s);
  const double kept = 18.0 * 4096 + 2 * (4 * 4096 + 6 * 14336.0);
  EXPECT_NEAR(estimate.memory.activations / (32.0 * 2048 / 8 * kept), 1.0, 1e-12);
}

}  // namespace
}  // namespace foretrain::test
