// Single terms of the closed forms, worked out by hand on sizes that isolate them.
#include "tests/estimate/jobs.h"

#include <string>

#include <gtest/gtest.h>

namespace foretrain::test {
namespace {

constexpr double kRate = 989e12 * 0.6;

Layout with_recompute(Layout layout, std::int64_t layers) {
  layout.recompute_layers = layers;
  return layout;
}

// Llama 3 70B, tp 8, cp 2, dp 4: the ring leaves the node (16 ranks). Per micro-batch 80 layers x 3
// passes x 1 step of K and V: 2 x 4,096 tokens x 1,024 x 2 bytes = 16.8 MB at 50 GB/s = 80.5 ms;
// attention hides 80 x 6 x 8,192 x 8,192 FLOPs x 4,096 tokens / 8 = 27.8 ms of it.
TEST(Terms, RingPassesThatAttentionDoesNotHide) {
  const Estimate estimate =
      chapter_estimator("llama3-70b", 8192, 512).estimate(Layout{.tp = 8, .cp = 2, .dp = 4});
  const double ring = 80.0 * 3 * 2 * 4096 * 1024 * 2 / 50e9;
  const double attention = 80.0 * 6 * 8192 * 8192 * 4096 / 8 / kRate;
  EXPECT_NEAR(ring, 0.0805, 0.0001);
  EXPECT_NEAR(attention, 0.0278, 0.0001);
  EXPECT_NEAR(estimate.parts.cp, 128 * (ring - attention), 1e-9);
}

// Multi-latent attention passes K of 128 heads x 192 and V of 128 x 128: 20,480 columns on average.
TEST(Terms, RingOfLatentAttentionPassesItsOwnWidths) {
  const Expected<ModelConfig> model = read_model("deepseek-v3");
  const Expected<TopologySpec> hardware = read_topology("h800-ndr400");
  ASSERT_TRUE(model && hardware);
  Assumptions exposed = default_assumptions(ClosedForm::kChapter, *model, *hardware);
  exposed.cp_overlap = 0;
  const Estimate estimate =
      Estimator(*model, 8192, 16, exposed).estimate(Layout{.cp = 16, .dp = 1, .ep = 16});
  const double bytes = 61.0 * 3 * 15 * 2 * 512 * 20480 * 2;
  EXPECT_NEAR(estimate.parts.cp, 16 * bytes / 50e9, 1e-6);
}

// Gradients and weights of 2 bytes, (n - 1) / n of each over the network, a fifth exposed.
TEST(Terms, DataTrafficOfEachSharding) {
  const Estimator estimator = chapter_estimator("llama3-8b", 8192, 64);
  const double once = 15.0 / 16 * 8.03e9 / 50e9 * 0.2;  // of one byte a parameter
  const auto exposed = [&](Sharding sharding) {
    return estimator.estimate(Layout{.dp = 16, .sharding = sharding}).parts.dp;
  };
  EXPECT_NEAR(exposed(Sharding::kNone), 2 * 2 * once, 1e-9);
  EXPECT_NEAR(exposed(Sharding::kZero1), (2 + 2) * once, 1e-9);
  EXPECT_NEAR(exposed(Sharding::kZero2), (2 * 4 + 2) * once, 1e-9);  // 4 micro-batches
  EXPECT_NEAR(exposed(Sharding::kZero3), (2 + 2 * 2) * 4 * once, 1e-9);
}

// Gradients are shared over cp as well as dp; with dp 1 the group reaches no further than cp.
TEST(Terms, DataTrafficReachesAsFarAsItsGroup) {
  const Estimator estimator = chapter_estimator("llama3-8b", 8192, 16);
  const double bytes = 3.0 / 4 * (2 + 2) * 8.03e9 / 4 * 0.2;
  const Layout alone{.cp = 4, .pp = 4, .dp = 1, .order = "cp-pp-dp-tp"};
  EXPECT_NEAR(estimator.estimate(alone).parts.dp, bytes / 450e9, 1e-9);
  const Layout outside{.cp = 1, .pp = 4, .dp = 4, .order = "cp-pp-dp-tp"};
  EXPECT_NEAR(estimator.estimate(outside).parts.dp, bytes / 50e9, 1e-9);
}

// Chunks of a stage divide fill and drain; each chunk sends its own messages.
TEST(Terms, InterleavingDividesTheBubbleAndMultipliesMessages) {
  const Estimator estimator = chapter_estimator("llama3-70b", 8192, 64);
  const Layout plain = with_recompute(Layout{.tp = 8, .pp = 4, .dp = 4}, 0);
  Layout chunks = plain;
  chunks.vpp = 5;
  chunks.schedule = "interleaved";
  const Estimate one = estimator.estimate(plain);
  const Estimate five = estimator.estimate(chunks);
  EXPECT_NEAR(five.parts.pp, 5 * one.parts.pp, 1e-9);
  const double more_messages = 4 * one.parts.pp / 16 * 3;  // 16 micro-batches, 3 of them bubble
  EXPECT_NEAR(five.parts.bubble, (one.parts.bubble + more_messages) / 5, 1e-9);
}

// 126 layers as 7, 8, ..., 8, 7: the stage before the last is the slowest until the head outweighs
// a layer. Llama 3 405B's head is 6 x 128,256 x 16,384 = 12.6 GFLOP a token, a layer 19.9: the
// fullest.
TEST(Terms, TheSlowestStageIsTheFullestOrTheOneWithTheHead) {
  const Estimator estimator = chapter_estimator("llama3-405b", 8192, 2048);
  Layout layout = with_recompute(Layout{.tp = 8, .pp = 16, .dp = 128}, 0);
  layout.most_layers = 8;
  layout.last_layers = 7;
  const Estimate by_layers = estimator.estimate(layout);
  const double slowest = by_layers.parts.compute + by_layers.parts.imbalance;
  const double tables = 2.0 * 128256 * 16384;
  const double layer = 6 * (406e9 - tables) / 126 + 6.0 * 8192 * 16384;
  EXPECT_NEAR(slowest, 16 * 8 * layer * 8192 / 8 / kRate, 1e-6);
  layout.last_layers = 8;
  const Estimate by_head = estimator.estimate(layout);
  EXPECT_NEAR(by_head.parts.compute + by_head.parts.imbalance - slowest,
              16 * 6.0 * 128256 * 16384 * 8192 / 8 / kRate,
              1e-6);
}

// A layer with a shared expert has its MLP's all-reduces, one with routed experts only has not.
TEST(Terms, TensorTrafficOfLayersWithExperts) {
  const double all_reduce = 2 * 7.0 / 8 * 2 * 2048 * 4096 / 450e9;
  const Estimate routed =
      chapter_estimator("mixtral-8x7b", 2048, 16).estimate(Layout{.tp = 8, .dp = 2});
  EXPECT_NEAR(routed.parts.tp, 8 * 32 * 2 * all_reduce, 1e-9);
  const Estimate shared = estimator_of(ClosedForm::kChapter, "deepseek-v3", 2048, 16)
                              .estimate(Layout{.tp = 8, .dp = 2});
  EXPECT_NEAR(shared.parts.tp, 8 * 61 * 4 * all_reduce * 7168 / 4096, 1e-9);
}

// Expert groups of etp x ep = 16 ranks leave the node though ep alone would not.
TEST(Terms, ExpertTrafficLeavesTheNodeWithItsGroup) {
  const Estimator estimator = chapter_estimator("mixtral-8x7b", 2048, 16);
  const double inside = estimator.estimate(Layout{.dp = 16, .ep = 8}).parts.ep;
  const double across = estimator.estimate(Layout{.dp = 16, .ep = 8, .etp = 2}).parts.ep;
  EXPECT_NEAR(across / inside, 9.0, 1e-9);
}

// DeepSeek-V3 keeps 18 h and a shared expert of 2,048 in 58 layers, 34 h in three; 8 experts
// chosen.
TEST(Terms, ActivationsOfSharedExpertsAndDenseLayers) {
  const Layout layout = with_recompute(Layout{.dp = 8, .ep = 8}, 0);
  const Estimate estimate =
      estimator_of(ClosedForm::kChapter, "deepseek-v3", 4096, 8).estimate(layout);
  const double moe = 18.0 * 7168 + 8 * 1.2 * (4 * 7168 + 6 * 2048) + 6.0 * 2048;
  EXPECT_NEAR(estimate.memory.activations / (4096 * (58 * moe + 3 * 34.0 * 7168)), 1.0, 1e-12);
}

// Fewer micro-batches than stages: that many are in flight, and fill and drain are as long as ever.
TEST(Terms, WorkshopHoldsNoMoreMicroBatchesThanThereAre) {
  const Estimator estimator = estimator_of(ClosedForm::kWorkshop, "llama3-70b", 8192, 8);
  const Estimate estimate =
      estimator.estimate(with_recompute(Layout{.tp = 8, .pp = 16, .dp = 4}, 0));
  EXPECT_EQ(estimate.micro_batches, 2);
  EXPECT_NEAR(estimate.memory.activations, 2 * 5 * 34.0 * 8192 * 8192 / 8, 1);
  EXPECT_NEAR(estimate.parts.bubble / (estimate.parts.compute + estimate.parts.tp), 15.0 / 2, 1e-9);
}

// Half of the layers recomputed: 6 / (6 + 2 / 2), and half of the activations but their inputs.
TEST(Terms, WorkshopRecomputesWholeLayersOfAStage) {
  const Estimator estimator = estimator_of(ClosedForm::kWorkshop, "llama3-70b", 8192, 2048);
  const Layout layout{.tp = 8, .pp = 4, .dp = 64, .vpp = 4};
  const Estimate none = estimator.estimate(with_recompute(layout, 0));
  const Estimate half = estimator.estimate(with_recompute(layout, 10));
  EXPECT_NEAR(none.parts.bubble / (none.parts.compute + none.parts.tp), 3.0 / (32 * 4), 1e-12);
  EXPECT_NEAR(half.mfu / none.mfu, 6.0 / 7, 1e-9);
  EXPECT_NEAR(half.memory.activations / none.memory.activations, (34.0 + 2) / 68, 1e-9);
  EXPECT_EQ(estimator.estimate(with_recompute(layout, 1000)).recompute_layers, 20);
}

// One sequence a replica on 4,096 tokens: gradients take longer than the step, which waits for
// them.
TEST(Terms, WorkshopStepIsNoShorterThanItsGradients) {
  const Estimate estimate = estimator_of(ClosedForm::kWorkshop, "llama3-8b", 512, 64)
                                .estimate(with_recompute(Layout{.dp = 64}, 0));
  EXPECT_NEAR(estimate.step_time_s, 2 * 63.0 / 64 * 2 * 8.03e9 / 50e9, 1e-9);
}

// What of a scenario reaches the rules.
TEST(Terms, LayoutOfAScenarioTakesOrderStagesAndRecomputation) {
  const Expected<Scenario> scenario =
      read_scenario("llama3-70b-64",
                    {"parallelism={\"tp\": 4, \"pp\": 2, \"order\": \"tp-pp-cp-ep-dp\", "
                     "\"first_stage_layers\": 41}",
                     "schedule=1f1b",
                     "recompute={\"mode\": \"full\", \"layers\": 7}"});
  ASSERT_TRUE(scenario) << scenario.error().list.front().message;
  const Layout layout = layout_of(*scenario, ClosedForm::kWorkshop);
  EXPECT_EQ(layout.order, "tp-pp-cp-ep-dp");
  EXPECT_EQ(layout.most_layers, 41);
  EXPECT_EQ(layout.last_layers, 39);
  EXPECT_EQ(layout.recompute_layers, 7);
  EXPECT_EQ(layout_of(*scenario, ClosedForm::kChapter).recompute_layers, kRecomputeAsNeeded);
}

// As in Megatron, the count is of each chunk: 5 of 10 layers, on 2 chunks a rank.
TEST(Terms, RecomputedLayersOfAScenarioAreOfEachChunk) {
  const std::vector<std::string> chunks = {"parallelism={\"tp\": 8, \"pp\": 4, \"vpp\": 2}",
                                           "schedule=interleaved",
                                           "recompute={\"mode\": \"full\", \"layers\": 5}"};
  const Expected<Scenario> scenario = read_scenario("llama3-70b-64", chunks);
  ASSERT_TRUE(scenario) << scenario.error().list.front().message;
  EXPECT_EQ(layout_of(*scenario, ClosedForm::kWorkshop).recompute_layers, 10);
  std::vector<std::string> too_many = chunks;
  too_many.back() = "recompute={\"mode\": \"full\", \"layers\": 11}";
  const Expected<Scenario> refused = read_scenario("llama3-70b-64", too_many);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().list.front().pointer, "/recompute/layers");
}

}  // namespace
}  // namespace foretrain::test
