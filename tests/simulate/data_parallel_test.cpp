#include "tests/support/scenarios.h"

#include <gtest/gtest.h>

/// Rule: gradient and parameter traffic costs what the wire says, less what compute hides.
namespace foretrain {
namespace {

using test::TinyScenario;

TinyScenario replicas(std::int64_t dp, const std::string& sharding, bool overlapped) {
  TinyScenario scenario;
  scenario.gpus = dp;
  scenario.batch = dp * 2;
  scenario.sharding = sharding;
  const std::string flag = overlapped ? "true" : "false";
  scenario.more = R"(, "overlap": {"dp_grad": )" + flag + R"(, "dp_param": )" + flag + "}";
  return scenario;
}

TEST(DataParallel, WithoutOverlapTheWholeTransferIsExposed) {
  // fp32 gradients all-reduced in a node of 8: 2 * 7/8 * 4 N / 450 GB/s; with ZeRO-1 the second
  // half moves 16-bit parameters: 7/8 * (4 + 2) N / 450 GB/s. The norm's 4 bytes do not show.
  const StepReport plain = replicas(8, "none", false).run().report;
  const auto parameters = static_cast<double>(plain.parameters);
  const double all_reduce = 2 * 7.0 / 8 * 4 * parameters / 450e9;
  EXPECT_NEAR(seconds(plain.breakdown.dp), all_reduce, 1e-5 * all_reduce);
  const StepReport sharded = replicas(8, "zero1", false).run().report;
  const double halves = 7.0 / 8 * 6 * parameters / 450e9;
  EXPECT_NEAR(seconds(sharded.breakdown.dp), halves, 1e-5 * halves);
  EXPECT_EQ(plain.step_time, plain.breakdown.compute + plain.breakdown.dp);
}

TEST(DataParallel, OverlapHidesTrafficAndNeverAddsAny) {
  for (const char* sharding : {"none", "zero1", "zero2"}) {
    const StepReport serial = replicas(8, sharding, false).run().report;
    const StepReport overlapped = replicas(8, sharding, true).run().report;
    EXPECT_LT(overlapped.step_time, serial.step_time) << sharding;
    EXPECT_GE(overlapped.step_time, serial.breakdown.compute) << sharding;
    EXPECT_EQ(overlapped.network.front().group, "dp");
    EXPECT_EQ(overlapped.network.front().bytes, serial.network.front().bytes) << sharding;
  }
}

TEST(DataParallel, ParametersAreGatheredUnderTheNextForward) {
  // A step alone ends with its gathers exposed; in the steady state forwards hide part of them.
  const StepReport report = replicas(8, "zero1", true).run().report;
  EXPECT_GT(report.isolated_step, report.step_time);
}

TEST(DataParallel, TrafficIsTheSameForEveryReplicaCountButForTheShare) {
  for (const std::int64_t dp : {2, 4, 8}) {
    const StepReport report = replicas(dp, "zero1", true).run().report;
    const double expected = static_cast<double>(report.parameters) * 6 *
                            static_cast<double>(dp - 1) / static_cast<double>(dp);
    EXPECT_NEAR(static_cast<double>(report.network.front().bytes), expected, 1e-5 * expected);
  }
}

TEST(DataParallel, PerMicroBatchReductionMovesGradientsOncePerMicroBatch) {
  TinyScenario once = replicas(4, "zero2", true);
  TinyScenario each = once;
  each.more += R"(, "stack": {"gradient_reduction": "micro_batch"})";
  const StepReport few = once.run().report;
  const StepReport many = each.run().report;
  const double gradients = 4.0 * static_cast<double>(few.parameters) * 3 / 4;
  EXPECT_NEAR(static_cast<double>(many.network.front().bytes - few.network.front().bytes),
              gradients,
              1e-5 * gradients);
}

TEST(DataParallel, OverlapDoesNotChangeWhatIsMoved) {
  // Reduced after each micro-batch or not, hidden or not: the bytes are the same, and without
  // overlap all of the transfer is exposed.
  for (const char* when : {"micro_batch", "run"}) {
    TinyScenario hidden = replicas(4, "zero2", true);
    TinyScenario shown = replicas(4, "zero2", false);
    const std::string stack = std::string(R"(, "stack": {"gradient_reduction": ")") + when + "\"}";
    hidden.more += stack;
    shown.more += stack;
    const NetworkReport under = hidden.run().report.network.front();
    const NetworkReport open = shown.run().report.network.front();
    EXPECT_EQ(under.bytes, open.bytes) << when;
    EXPECT_EQ(open.hidden.count(), 0) << when;
    EXPECT_GT(under.hidden.count(), 0) << when;
  }
}

}  // namespace
}  // namespace foretrain
