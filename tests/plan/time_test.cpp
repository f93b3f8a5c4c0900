// Days and GPUs, against published sums: 15T tokens on 1,024 H100s at 51 % of 989 TFLOP/s take
// about 150 days (golodiuk.com, 449.2e9 FLOPs a token); 10T tokens at 11,879, 1,444 and 697
// tokens/s per GPU take 9.5, 78.3 and 162 days (the day columns of NeMo's performance tables); 3e24
// FLOPs in 90 days at 40 % of 989 TFLOP/s take 975 GPUs.
#include "tests/plan/jobs.h"

#include "foretrain/model.h"

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
