#include "tests/support/scenarios.h"

#include <gtest/gtest.h>

/// Rule: a synchronous job runs at the pace of its slowest rank.
namespace foretrain {
namespace {

using test::TinyScenario;

TinyScenario job() {
  TinyScenario scenario;
  scenario.tp = 2;
  scenario.pp = 2;
  scenario.gpus = 16;
  scenario.batch = 32;
  scenario.sharding = "zero1";
  return scenario;
}

TinyScenario slow(const std::string& ranks, double factor) {
  TinyScenario scenario = job();
  scenario.more = R"(, "perturbations": [{"kind": "slow_gpu", "ranks": [)" + ranks +
                  R"(], "factor": )" + std::to_string(factor) + "}]";
  return scenario;
}

TEST(Straggler, FactorOneIsNoPerturbation) {
  const Simulation plain = job().run();
  const Simulation same = slow("3", 1.0).run();
  EXPECT_EQ(plain.report.step_time, same.report.step_time);
  EXPECT_EQ(plain.report.breakdown, same.report.breakdown);
  EXPECT_EQ(plain.report.simulation.ranks_simulated, same.report.simulation.ranks_simulated);
}

TEST(Straggler, SlowerNeverMakesAStepFaster) {
  Duration before = job().run().report.step_time;
  for (const double factor : {1.01, 1.1, 1.5, 3.0}) {
    const Duration now = slow("5", factor).run().report.step_time;
    EXPECT_GT(now, before);
    before = now;
  }
}

TEST(Straggler, OneSlowGpuCostsAsMuchAsEveryGpuOfItsStage) {
  // Replicas meet at the gradient reduction: one slow member is as bad as all of them.
  const Duration one = slow("0", 1.25).run().report.step_time;
  const Duration stage = slow("0,1,2,3,4,5,6,7", 1.25).run().report.step_time;
  EXPECT_NEAR(seconds(one) / seconds(stage), 1.0, 1e-3);
}

TEST(Straggler, OneSlowGpuOfTheSlowestStageCostsItsComputeShare) {
  // 1F1B is as slow as its slowest stage, here the last one, which holds the head: it is never
  // starved, so 10/8 of its kernels lengthen the step by a quarter of the time it computes, in one
  // replica as much as in both.
  TinyScenario plain = job();
  plain.costs = R"({"model": "constant", "communication": "free"})";
  plain.sharding = "none";
  const StepReport base = plain.run().report;
  const Duration busy = base.stages.back().busy;
  const auto with = [&plain](const std::string& ranks) {
    TinyScenario slowed = plain;
    slowed.more =
        R"(, "perturbations": [{"kind": "slow_gpu", "ranks": [)" + ranks + R"(], "factor": 1.25}])";
    return slowed.run().report.step_time;
  };
  const Duration one = with("9");  // stage 1, replica 0, tensor rank 1
  EXPECT_NEAR(seconds(one - base.step_time) / (0.25 * seconds(busy)), 1.0, 1e-6);
  EXPECT_EQ(one, with("8,9,10,11,12,13,14,15"));
}

TEST(Straggler, OneSlowGpuWithoutAPipelineCostsItsComputeShare) {
  TinyScenario scenario;
  scenario.gpus = 8;
  scenario.batch = 32;
  scenario.costs = test::kFreeEnds;
  const Duration plain = scenario.run().report.step_time;
  scenario.more = R"(, "perturbations": [{"kind": "slow_gpu", "ranks": [6], "factor": 1.25}])";
  const StepReport report = scenario.run().report;
  // 1.25 is exact in fixed point, and rounding up can add at most a picosecond a kernel.
  EXPECT_NEAR(seconds(report.step_time) / seconds(plain), 1.25, 1e-6);
  // Seven of eight ranks wait a fifth of the step.
  EXPECT_NEAR(seconds(report.breakdown.straggler) / seconds(report.step_time), 0.2 * 7 / 8, 1e-6);
  EXPECT_EQ(report.breakdown.bubble.count(), 0);
  ASSERT_EQ(report.stragglers.size(), 1U);
  EXPECT_EQ(report.stragglers.front().cost, report.step_time - plain);
  EXPECT_EQ(report.stragglers.front().cause, "slow_gpu rank 6");
}

TEST(Straggler, TwinRanksAreInterchangeable) {
  // Ranks 1 and 5 hold the same stage and tensor shard in different replicas.
  const StepReport one = slow("1", 1.3).run().report;
  const StepReport other = slow("5", 1.3).run().report;
  EXPECT_EQ(one.step_time, other.step_time);
  EXPECT_EQ(one.breakdown, other.breakdown);
}

TEST(Straggler, ASlowNodeIsItsGpus) {
  TinyScenario node = job();
  node.more = R"(, "perturbations": [{"kind": "slow_node", "nodes": [1], "factor": 1.2}])";
  EXPECT_EQ(node.run().report.step_time, slow("8,9,10,11,12,13,14,15", 1.2).run().report.step_time);
}

TEST(Straggler, JitterOfRanksIsSeededAndUnfoldsThem) {
  TinyScenario jitter = job();
  jitter.more = R"(, "seed": 7, "perturbations": [{"kind": "jitter", "scope": "rank",)"
                R"( "distribution": "lognormal", "sigma": 0.05}])";
  const Simulation once = jitter.run();
  EXPECT_EQ(once.report.step_time, jitter.run().report.step_time);
  EXPECT_EQ(once.report.simulation.ranks_simulated, 16);
  EXPECT_GT(once.report.step_time, job().run().report.step_time);
  TinyScenario other = jitter;
  other.more.replace(other.more.find("7"), 1, "8");
  EXPECT_NE(once.report.step_time, other.run().report.step_time);
}

TEST(Straggler, AWindowOfStepsSlowsThoseStepsAlone) {
  TinyScenario scenario = job();
  scenario.more =
      R"(, "perturbations": [{"kind": "slow_gpu", "ranks": [0], "factor": 2.0, "steps": [1, 2]}])";
  SimulateOptions options;
  options.steps = 5;
  const Simulation simulation = scenario.run(options);
  const std::vector<Instant>& ends = simulation.timeline.step_ends;
  ASSERT_EQ(ends.size(), 6U);
  const Duration normal = job().run().report.step_time;
  EXPECT_EQ(ends[1] - ends[0], normal);
  EXPECT_GT(ends[2] - ends[1], normal);
  EXPECT_GT(ends[3] - ends[2], normal);
  EXPECT_EQ(ends[5] - ends[4], normal);
}

TEST(Straggler, AWindowOverEveryStepIsNoWindow) {
  // A slowed last step ends later on slow ranks than on others, whose optimizers are faster; the
  // breakdown must not notice. Textbook costs have no optimizer time, so these are calibrated.
  for (const int steps : {1, 3}) {
    TinyScenario always = slow("3", 1.5);
    TinyScenario window = job();
    always.costs = window.costs = R"("calibrated")";
    window.more =
        R"(, "perturbations": [{"kind": "slow_gpu", "ranks": [3], "factor": 1.5, "steps": [0, )" +
        std::to_string(steps - 1) + "]}]";
    SimulateOptions options;
    options.steps = steps;
    const StepReport a = always.run(options).report;
    const StepReport b = window.run(options).report;
    // The first slowed step starts from an unslowed one: parameter gathers differ by less than a
    // thousandth of the step.
    EXPECT_NEAR(seconds(b.step_time) / seconds(a.step_time), 1.0, 1e-3);
    EXPECT_NEAR(seconds(b.breakdown.straggler) / seconds(a.breakdown.straggler), 1.0, 0.02);
    EXPECT_NEAR(seconds(b.breakdown.bubble) / seconds(a.breakdown.bubble), 1.0, 0.02);
  }
}

TEST(Straggler, UnequalReplicasAreImbalanceNotBubble) {
  // Ten GPUs on nodes of eight: one replica's tensor group crosses nodes. There is no pipeline, so
  // nothing may be called a bubble: the others wait for the slow replica.
  TinyScenario scenario;
  scenario.tp = 2;
  scenario.gpus = 10;
  scenario.batch = 10;
  scenario.order = "dp-tp-pp";
  const StepReport report = scenario.run().report;
  EXPECT_GT(report.breakdown.imbalance.count(), 0);
  EXPECT_LT(report.breakdown.bubble, report.step_time / 1000);
  ASSERT_EQ(report.network.front().group, "tp");
  EXPECT_FALSE(report.network.front().inside_node);
  EXPECT_NE(report.network.front().limiting_link.find("nic"), std::string::npos);
}

}  // namespace
}  // namespace foretrain
