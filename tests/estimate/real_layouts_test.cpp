// Real configurations as shipped scenarios: GPT 145.6B and 1T (Narayanan et al. 2021,
// arXiv 2104.04473, Table 1) and Llama 3 405B at 8K and 128K (arXiv 2407.21783, Table 4).
#include "foretrain/estimate.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain::test {
namespace {

struct RealLayout {
  const char* scenario;
  std::int64_t gpus, tp, pp, cp, replicas;
};

const std::vector<RealLayout>& real_layouts() {
  static const std::vector<RealLayout> kLayouts = {
      {"gpt-145b-1536-a100", 1536, 8, 8, 1, 24},
      {"gpt-1t-3072-a100", 3072, 8, 64, 1, 6},
      {"llama3-405b-8k", 16384, 8, 16, 1, 128},
      {"llama3-405b-128k", 16384, 8, 16, 16, 8},
      {"gpt3-175b-1024-a100", 1024, 8, 8, 1, 16},
  };
  return kLayouts;
}

TEST(RealLayouts, AreShippedAsScenarios) {
  for (const RealLayout& real : real_layouts()) {
    const Expected<Scenario> scenario = read_scenario(real.scenario);
    ASSERT_TRUE(scenario) << real.scenario;
    EXPECT_EQ(scenario->cluster.gpus, real.gpus) << real.scenario;
    EXPECT_EQ(scenario->parallelism.tp, real.tp) << real.scenario;
    EXPECT_EQ(scenario->parallelism.pp, real.pp) << real.scenario;
    EXPECT_EQ(scenario->parallelism.cp, real.cp) << real.scenario;
    EXPECT_EQ(scenario->parallelism.dp, real.replicas) << real.scenario;
  }
}

// A step of Llama 3 405B is 16 M tokens at either length, 16 micro-batches a pipeline.
TEST(RealLayouts, BothLengthsOfLlama405BTrainOn16MTokensAStep) {
  for (const char* name : {"llama3-405b-8k", "llama3-405b-128k"}) {
    const Expected<Scenario> scenario = read_scenario(name);
    ASSERT_TRUE(scenario) << name;
    EXPECT_EQ(scenario->training.sequence_length * scenario->training.global_batch_size, 1 << 24);
    EXPECT_EQ(scenario->micro_batches(), 16) << name;
  }
}

// Ranks of the scenario fill it: the closed form sees every GPU, and the stages hold every layer
// (126 layers, embedding and loss as two more: 8 a stage, 7 at the ends).
TEST(RealLayouts, AreLayoutsOfTheClosedForm) {
  for (const RealLayout& real : real_layouts()) {
    const Expected<Scenario> scenario = read_scenario(real.scenario);
    ASSERT_TRUE(scenario) << real.scenario;
    for (const ClosedForm form : {ClosedForm::kChapter, ClosedForm::kWorkshop}) {
      const Layout layout = layout_of(*scenario, form);
      EXPECT_EQ(layout.tp * layout.cp * layout.pp * layout.dp, real.gpus);
      EXPECT_GE(layout.most_layers * layout.pp, scenario->model.layers);
      EXPECT_LE(layout.last_layers, layout.most_layers);
      const Estimator estimator(
          scenario->model,
          scenario->training.sequence_length,
          scenario->training.global_batch_size,
          default_assumptions(form, scenario->model, scenario->cluster.hardware));
      const Estimate estimate = estimator.estimate(layout);
      EXPECT_GT(estimate.mfu, 0.1) << real.scenario;
      EXPECT_LT(estimate.mfu, 0.6) << real.scenario;
    }
  }
  const Expected<Scenario> llama = read_scenario("llama3-405b-8k");
  ASSERT_TRUE(llama);
  EXPECT_EQ(layout_of(*llama, ClosedForm::kChapter).most_layers, 8);
  EXPECT_EQ(layout_of(*llama, ClosedForm::kChapter).last_layers, 7);
}

}  // namespace
}  // namespace foretrain::test
