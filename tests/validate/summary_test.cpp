#include "sim/validate/summary.h"

#include <string>

#include <gtest/gtest.h>

/// Rule: what is told of a table follows from its rows; each figure here by hand.
namespace foretrain {
namespace {

ValidatedRow simulated_row(const char* source, double measured, double simulated) {
  ValidatedRow row;
  row.source = source;
  row.gpu = "A100";
  row.dtype = "bf16";
  row.complete = true;
  row.measured_s = measured;
  row.simulated_s = simulated;
  return row;
}

ValidatedRow skipped_row(SkipReason reason, bool complete) {
  ValidatedRow row;
  row.complete = complete;
  row.skipped = reason;
  return row;
}

ValidationResult summarised(std::vector<ValidatedRow> rows, int worst = 10) {
  ValidationResult result;
  result.rows = std::move(rows);
  summarise(worst, result);
  return result;
}

TEST(Summary, GroupsSourcesAndTheirMean) {
  ValidationResult result = summarised({simulated_row("b", 1, 1.1),
                                        simulated_row("a", 1, 0.7),
                                        simulated_row("a", 1, 0.9),
                                        simulated_row("a", 1, 0.9)});
  ASSERT_EQ(result.groups.size(), 2U);
  EXPECT_EQ(result.groups[0].source, "a");
  EXPECT_NEAR(result.groups[0].error.mape, 0.5 / 3, 1e-12);
  EXPECT_NEAR(result.overall.mape, 0.6 / 4, 1e-12);
  EXPECT_EQ(result.source_averaged.n, 2);
  EXPECT_NEAR(result.source_averaged.mape, (0.5 / 3 + 0.1) / 2, 1e-12);
  EXPECT_NEAR(result.source_averaged.bias, (-0.5 / 3 + 0.1) / 2, 1e-12);
  EXPECT_NEAR(result.source_averaged.median_ape, 0.1, 1e-12);
}

TEST(Summary, RowsWithNothingAssumedStandApart) {
  std::vector<ValidatedRow> rows = {simulated_row("a", 1, 1.5), simulated_row("a", 1, 1.1)};
  rows.front().assumed = {"bf16"};
  const ValidationResult result = summarised(rows);
  EXPECT_EQ(result.nothing_assumed.n, 1);
  EXPECT_NEAR(result.nothing_assumed.mape, 0.1, 1e-12);
}

TEST(Summary, CoverageAndReasons) {
  const ValidationResult result = summarised({simulated_row("a", 1, 1),
                                              simulated_row("a", 1, 1),
                                              skipped_row(SkipReason::kModel, true),
                                              skipped_row(SkipReason::kIncomplete, false),
                                              skipped_row(SkipReason::kIncomplete, false)});
  EXPECT_EQ(result.simulated, 2);
  EXPECT_EQ(result.skipped(), 3);
  EXPECT_DOUBLE_EQ(result.coverage(), 0.4);
  EXPECT_DOUBLE_EQ(result.coverage_of_complete(), 2.0 / 3);
  ASSERT_EQ(result.reasons.size(), 2U);
  EXPECT_EQ(result.reasons[0].reason, SkipReason::kIncomplete);
  EXPECT_EQ(result.reasons[0].rows, 2);
  EXPECT_EQ(summarised({}).coverage(), 1.0);
}

TEST(Summary, WorstByTheSizeOfTheirError) {
  const ValidationResult result = summarised({simulated_row("a", 1, 1.2),
                                              simulated_row("a", 1, 0.5),
                                              skipped_row(SkipReason::kModel, true),
                                              simulated_row("a", 1, 1.9)},
                                             2);
  ASSERT_EQ(result.worst.size(), 2U);
  EXPECT_EQ(result.worst[0].row, 3U);
  EXPECT_EQ(result.worst[1].row, 1U);
}

TEST(Summary, VerdictsOnMemory) {
  const auto verdict = [](Fit ours, bool label) {
    ValidatedRow row = simulated_row("a", 1, 1);
    row.measured_s.reset();
    row.fits = ours;
    row.fits_label = label;
    return row;
  };
  const ValidationResult result = summarised({verdict(Fit::kYes, true),
                                              verdict(Fit::kBorderline, true),
                                              verdict(Fit::kBorderline, false),
                                              verdict(Fit::kNo, false),
                                              verdict(Fit::kNo, true)});
  ASSERT_TRUE(result.memory.has_value());
  EXPECT_EQ(result.memory->n, 5);
  EXPECT_EQ(result.memory->right, 3);
  EXPECT_EQ(result.memory->false_fit, 1);
  EXPECT_EQ(result.memory->false_oom, 1);
  EXPECT_EQ(result.memory->borderline, 2);
  EXPECT_FALSE(summarised({simulated_row("a", 1, 1)}).memory.has_value());
}

}  // namespace
}  // namespace foretrain
