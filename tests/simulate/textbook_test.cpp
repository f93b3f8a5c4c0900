#include "tests/support/scenarios.h"

#include "sim/base/random.h"

#include <algorithm>

#include <gtest/gtest.h>

/// Rule: under textbook costs a run has exactly the textbook's times.
namespace foretrain {
namespace {

/// Each kernel's time is rounded up to the picosecond: at most this much per kernel.
constexpr double kPicosecond = 1e-12;

using test::kFreeEnds;
using test::TinyScenario;

/// Forward + backward of `layers` layers for one micro-batch, from a run without any parallelism.
Duration layers_alone(std::int64_t layers) {
  TinyScenario alone;
  alone.layers = layers;
  alone.gpus = 1;
  alone.batch = 1;
  alone.costs = kFreeEnds;
  return alone.run().report.step_time;
}

TEST(Textbook, LayersTakeTheirFlopsOverTheRate) {
  // 24 h^2 + ... written out for the tiny model: per token and layer 2 (4 h^2 + 3 h f) + 2 s h / 2
  // * 2 causal attention, norms 2 * 2 h; backward twice that. At 60 % of 989 TFLOP/s.
  const double h = 1024;
  const double f = 4096;
  const double s = 2048;
  const double forward = 2 * (4 * h * h + 3 * h * f) + 2 * s * h + 2 * 2 * h;
  const double expected = 3 * forward * s * 4 / (0.6 * 989e12);
  constexpr double kKernels = 4 * 40;  // a layer runs about 14 forward and 26 backward kernels
  EXPECT_GE(seconds(layers_alone(4)), expected * (1 - 1e-15));
  EXPECT_LE(seconds(layers_alone(4)), expected + kKernels * kPicosecond);
}

TEST(Textbook, PipelinesHaveTheirClosedFormMakespan) {
  // GPipe and 1F1B: (m + p - 1) (F + B); interleaved: (m v + p - 1) (F + B) per chunk.
  const Duration layer = layers_alone(1);
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    const auto draw = [trial](std::uint64_t purpose, std::int64_t low, std::int64_t high) {
      return low + static_cast<std::int64_t>(random_bits(11, purpose, trial) %
                                             static_cast<std::uint64_t>(high - low + 1));
    };
    TinyScenario scenario;
    scenario.pp = draw(0, 1, 8);
    scenario.gpus = scenario.pp;
    scenario.batch = draw(1, 1, 24);
    const std::int64_t layers_per_chunk = draw(2, 1, 3);
    const std::int64_t kind = draw(3, 0, 2);
    scenario.schedule = kind == 0 ? "gpipe" : kind == 1 ? "1f1b" : "interleaved";
    if (kind == 2) {
      scenario.pp = std::max<std::int64_t>(scenario.pp, 2);
      scenario.gpus = scenario.pp;
      scenario.vpp = draw(4, 2, 4);
      scenario.batch = scenario.pp * draw(5, 1, 4);
    }
    scenario.layers = scenario.pp * scenario.vpp * layers_per_chunk;
    scenario.costs = kFreeEnds;
    SCOPED_TRACE(scenario.json());
    const StepReport report = scenario.run().report;
    const Duration chunk = layer * layers_per_chunk;
    const Duration makespan = chunk * (scenario.batch * scenario.vpp + scenario.pp - 1);
    EXPECT_EQ(report.step_time.count(), makespan.count());
    EXPECT_EQ(report.isolated_step.count(), makespan.count());
    EXPECT_EQ(report.breakdown.compute.count(), (chunk * scenario.batch * scenario.vpp).count());
    EXPECT_EQ(report.breakdown.bubble.count(), (chunk * (scenario.pp - 1)).count());
    EXPECT_EQ(report.breakdown.imbalance.count(), 0);
  }
}

TEST(Textbook, WithoutParallelismUtilisationIsTheKernels) {
  // Every FLOP the convention counts runs at 60 % of peak and nothing else takes time.
  TinyScenario scenario;
  scenario.gpus = 1;
  const StepReport report = scenario.run().report;
  constexpr double kKernels = 8 * (8 * 40 + 20);  // 8 micro-batches of 8 layers and the ends
  EXPECT_LE(report.mfu, 0.6);
  EXPECT_GE(report.mfu, 0.6 * (1 - kKernels * kPicosecond / seconds(report.step_time)));
}

TEST(Textbook, TensorParallelStepIsTheSumOfItsOperators) {
  // Per layer and pass two all-gathers and two reduce-scatters of s b h elements, (t - 1) / t of
  // the bytes over NVLink each; embedding and head one of each per step more; three all-reduces of
  // one 4-byte number per token in the loss.
  TinyScenario scenario;
  scenario.tp = 8;
  scenario.gpus = 8;
  scenario.batch = 2;
  const StepReport report = scenario.run().report;
  const double bytes = 2048.0 * 1024 * 2;
  const double nvlink = 450e9;
  const double half = 7.0 / 8 * bytes / nvlink;
  const double loss = 3 * 2 * 7.0 / 8 * (2048 * 4) / nvlink;
  const double tensor = 2 * ((8 * 8 + 4) * half + loss);
  EXPECT_NEAR(seconds(report.breakdown.tp), tensor, 1e-6 * tensor);
  // The gradient norm's 4 bytes: 2 * 7/8 * 4 / 450e9 s = 15.6 ps, rounded up.
  EXPECT_EQ(report.breakdown.dp.count(), 16);
  EXPECT_EQ(report.step_time, report.breakdown.compute + report.breakdown.tp + report.breakdown.dp);
  const double compute = report.flops_per_token * 2 * 2048 / (8 * 0.6 * 989e12);
  constexpr double kKernels = 2 * (8 * 40 + 20);
  EXPECT_GE(seconds(report.breakdown.compute), compute * (1 - 1e-15));
  EXPECT_LE(seconds(report.breakdown.compute), compute + kKernels * kPicosecond);
}

TEST(Textbook, DegreeOneOfAnythingIsItsAbsence) {
  TinyScenario plain;
  plain.gpus = 1;
  const StepReport base = plain.run().report;
  for (const char* sharding : {"zero1", "zero2"}) {
    TinyScenario sharded = plain;
    sharded.sharding = sharding;
    EXPECT_EQ(sharded.run().report.step_time, base.step_time);
  }
  TinyScenario chunks = plain;
  chunks.schedule = "gpipe";
  EXPECT_EQ(chunks.run().report.step_time, base.step_time);
}

TEST(Textbook, UnequalStagesSplitIdleIntoImbalanceAndBubble) {
  // 1 + 2 + 2 + 3 layers on four stages, m micro-batches: the last stage is never starved, so the
  // step is the fill (1 + 2 + 2 forwards), m (F + B) of 3 layers, and the drain. With every stage
  // at the mean of 2 layers the step would be (m + p - 1) (F + B) of 2 layers: bubble 3 x 2, the
  // rest imbalance.
  const Duration layer = layers_alone(1);
  for (const std::int64_t m : {4, 8, 16}) {
    TinyScenario scenario;
    scenario.pp = 4;
    scenario.gpus = 4;
    scenario.batch = m;
    scenario.costs = kFreeEnds;
    const Expected<Scenario> uneven =
        parse_scenario(scenario.json(), ".", {"parallelism.layers_per_stage=[1,2,2,3]"});
    ASSERT_TRUE(uneven.has_value());
    const Expected<Simulation> simulation = simulate(*uneven);
    ASSERT_TRUE(simulation.has_value());
    const StepReport& report = simulation->report;
    EXPECT_EQ(report.step_time.count(), (layer * (3 * m + 5)).count());
    EXPECT_EQ(report.breakdown.compute.count(), (layer * (2 * m)).count());
    EXPECT_EQ(report.breakdown.bubble.count(), (layer * 6).count());
    EXPECT_EQ(report.breakdown.imbalance.count(), (layer * (m - 1)).count());
  }
}

}  // namespace
}  // namespace foretrain
