// Days and GPUs, against published sums: 15T tokens on 1,024 H100s at 51 % of 989 TFLOP/s take
// about 150 days (golodiuk.com, 449.2e9 FLOPs a token); 10T tokens at 11,879, 1,444 and 697
// tokens/s per GPU take 9.5, 78.3 and 162 days (the day columns of NeMo's performance tables); 3e24
// FLOPs in 90 days at 40 % of 989 TFLOP/s take 975 GPUs.
#include "tests/plan/jobs.h"

#include "foretrain/model.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace foretrain::test {
namespace {

TrainingTime time_of(const std::string& model, std::int64_t gpus, const PlanOptions& options) {
  const PlannedJob planned =
      plan_of(model, gpus, 8192, gpus == 64 ? 512 : 1024, "dgx-h100-ndr400", options);
  EXPECT_TRUE(planned.plan.time);
  return planned.plan.time.value_or(TrainingTime{});
}

TEST(PlanTime, FifteenTrillionTokensOfThe70BModel) {
  PlanOptions options;
  options.tokens = 15e12;
  options.mfu = 0.51;
  const TrainingTime time = time_of("llama3-70b", 1024, options);
  EXPECT_NEAR(time.flops_per_token, 449.2e9, 0.05e9);  // printed to four figures
  EXPECT_NEAR(time.days, 150, 1.5);                    // "about"
  EXPECT_NEAR(time.days, 15e12 * 449.2e9 / (1024 * 989e12 * 0.51 * 86400), 0.05);
}

TEST(PlanTime, MeasuredRatesNeedNoMfu) {
  PlanOptions options;
  options.tokens = 10e12;
  const struct {
    const char* model;
    double rate, days;
  } rows[] = {{"llama3-8b", 11879, 9.5}, {"llama3-70b", 1444, 78.3}, {"gpt3-175b", 697, 162}};
  for (const auto& row : rows) {
    options.tokens_per_s_per_gpu = row.rate;
    const PlannedJob planned = plan_of(row.model, 1024, 2048, 1024, "dgx-h100-ndr400", options);
    ASSERT_TRUE(planned.plan.time) << row.model;
    EXPECT_NEAR(planned.plan.time->days, row.days, 0.006 * row.days) << row.model;
  }
}

TEST(PlanTime, ADeadlineTakesGpus) {
  PlanOptions options;
  options.flops = 3e24;
  options.days = 90;
  options.mfu = 0.4;
  const PlannedJob planned = plan_of("llama3-70b", 1024, 8192, 1024, "dgx-h100-ndr400", options);
  ASSERT_TRUE(planned.plan.time && planned.plan.time->gpus_needed);
  EXPECT_NEAR(*planned.plan.time->gpus_needed, 975.2, 0.05);
  const PlanStep days = step_named(planned.plan, "Days");
  EXPECT_TRUE(says(days, "= 975.2 GPUs"));
  EXPECT_NE(days.decision.find("976 GPUs, 122 nodes of 8"), std::string::npos) << days.decision;
  EXPECT_NE(days.otherwise.find("failures"), std::string::npos);
}

// 64 sequences of 32,768 tokens: ranks are tp (8 in a node) x cp (8 of 4,096 tokens) x pp (16 of 80
// layers) x dp (a divisor of 64), all powers of two, so the next number from 2,049 is 4,096.
TEST(PlanTime, ADeadlineIsKeptByGpusThatShareTheBatch) {
  PlanOptions options;
  options.tokens = 15e12;
  options.days = 90;
  const auto time_with = [&](std::int64_t batch) {
    const std::int64_t gpus = batch < 128 ? batch * 8 : 128;
    return plan_of("llama3-70b", gpus, 32768, batch, "hgx-h200-ndr400", options).plan.time;
  };
  const auto shared = time_with(64);
  ASSERT_TRUE(shared && shared->deadline_layout);
  EXPECT_GT(*shared->gpus_needed, 1024);
  const Layout& layout = shared->deadline_layout->layout;
  const std::int64_t gpus = layout.tp * layout.cp * layout.pp * layout.dp;
  EXPECT_GE(static_cast<double>(gpus), *shared->gpus_needed);
  EXPECT_LT(static_cast<double>(gpus), 2 * *shared->gpus_needed);
  EXPECT_EQ(gpus & (gpus - 1), 0);  // a power of two
  EXPECT_EQ(64 % layout.dp, 0);
}

// One sequence of 8,192 tokens goes over tp 8 x cp 2 x pp 16 = 256 GPUs at most.
TEST(PlanTime, WhereNoNumberOfGpusSharesTheBatchOneThatWouldIsNamed) {
  PlanOptions options;
  options.tokens = 15e12;
  options.days = 30;
  options.mfu = 0.4;
  const Plan plan = plan_of("llama3-70b", 64, 8192, 1, "dgx-h100-ndr400", options).plan;
  ASSERT_TRUE(plan.feasible && plan.time);
  EXPECT_GT(*plan.time->gpus_needed, 256);
  EXPECT_FALSE(plan.time->deadline_layout);
  const Layout& layout = plan.estimate.layout;
  const double ranks = static_cast<double>(layout.tp * layout.cp * layout.pp);
  EXPECT_EQ(plan.time->deadline_batch, std::ceil(std::ceil(*plan.time->gpus_needed) / ranks));
  const PlanStep days = step_named(plan, "Days");
  EXPECT_NE(days.decision.find("no number of GPUs"), std::string::npos) << days.decision;
  EXPECT_NE(days.decision.find("if MFU stays equal"), std::string::npos) << days.decision;
}

// Tokens over the plan's own rate: tokens / day = GPUs x peak x MFU / FLOPs a token.
TEST(PlanTime, ThePlansOwnMfuIsTakenWhereNoneIsGiven) {
  PlanOptions options;
  options.tokens = 1e12;
  const PlannedJob planned = plan_of("llama3-70b", 64, 8192, 512, "dgx-h100-ndr400", options);
  ASSERT_TRUE(planned.plan.time);
  EXPECT_EQ(planned.plan.time->mfu, planned.plan.estimate.mfu);
  const double tokens_a_day =
      64 * 989e12 * planned.plan.estimate.mfu / planned.plan.time->flops_per_token * 86400;
  EXPECT_NEAR(planned.plan.time->days, 1e12 / tokens_a_day, 1e-6);
}

TEST(PlanTime, WhereNothingFitsDaysNeedAGivenMfu) {
  PlanOptions options;
  options.tokens = 15e12;
  const Plan without = plan_of("llama3-70b", 8, 8192, 512, "dgx-h100-ndr400", options).plan;
  EXPECT_FALSE(without.time);
  EXPECT_NE(without.steps.back().decision.find("no MFU was given"), std::string::npos);
  options.mfu = 0.4;
  EXPECT_TRUE(plan_of("llama3-70b", 8, 8192, 512, "dgx-h100-ndr400", options).plan.time);
}

TEST(PlanTime, ContradictionsAreToldAllAtOnce) {
  PlanOptions options;
  EXPECT_TRUE(plan_faults(options).empty());
  options.days = 90;
  options.mfu = 1.5;
  std::vector<std::string> pointers;
  for (const Diagnostic& fault : plan_faults(options)) {
    pointers.push_back(fault.pointer);
  }
  EXPECT_EQ(pointers, (std::vector<std::string>{"/mfu", "/days", "/mfu"}));
  options.tokens = 1e12;
  options.flops = 3e24;
  options.mfu = 0.4;
  options.tokens_per_s_per_gpu = 1444;
  pointers.clear();
  for (const Diagnostic& fault : plan_faults(options)) {
    pointers.push_back(fault.pointer);
  }
  EXPECT_EQ(pointers, (std::vector<std::string>{"/flops", "/mfu"}));
}

}  // namespace
}  // namespace foretrain::test
