#include "tests/support/scenarios.h"

#include <gtest/gtest.h>

/// Rule: the innermost dimension gets the fastest links, and that shows in the step.
namespace foretrain {
namespace {

StepReport flagship(const std::string& order) {
  const Expected<Scenario> scenario =
      read_scenario("llama3-70b-64", {"parallelism.order=\"" + order + "\""});
  EXPECT_TRUE(scenario.has_value());
  const Expected<Simulation> simulation = simulate(*scenario);
  EXPECT_TRUE(simulation.has_value());
  return simulation->report;
}

TEST(Order, TensorParallelismAcrossNodesIsFarWorse) {
  const StepReport megatron = flagship("tp-cp-ep-dp-pp");
  const StepReport llama = flagship("tp-cp-pp-dp");
  const StepReport bad = flagship("dp-pp-tp");
  EXPECT_TRUE(megatron.network.front().inside_node);
  EXPECT_FALSE(bad.network.front().inside_node);
  EXPECT_GT(seconds(bad.step_time), 1.5 * seconds(megatron.step_time));
  EXPECT_GT(bad.breakdown.tp, 4 * megatron.breakdown.tp);
  // Pipeline or data parallelism outermost: both cross nodes, neither is on the critical path.
  EXPECT_NEAR(seconds(llama.step_time) / seconds(megatron.step_time), 1.0, 0.03);
}

}  // namespace
}  // namespace foretrain
