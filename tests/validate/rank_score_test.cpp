#include "sim/validate/rank_score.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

/// Rule: tau, regret and errors are the textbook's, checked by counting.
namespace foretrain {
namespace {

// Kendall, Rank Correlation Methods: with b = sum over pairs of the product of signs, tau-b is the
// cosine between the two vectors of signs of all ordered pairs.
TEST(KendallTau, IsTheCosineOfSigns) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<StepPair> pairs(2 + random() % 12);
    for (StepPair& pair : pairs) {
      pair = {static_cast<double>(random() % 6), static_cast<double>(random() % 6)};
    }
    double dot = 0, left = 0, right = 0;
    for (const StepPair& a : pairs) {
      for (const StepPair& b : pairs) {
        const double x = (a.measured > b.measured) - (a.measured < b.measured);
        const double y = (a.simulated > b.simulated) - (a.simulated < b.simulated);
        dot += x * y;
        left += x * x;
        right += y * y;
      }
    }
    const std::optional<double> tau = kendall_tau(pairs);
    ASSERT_EQ(tau.has_value(), left > 0 && right > 0);
    if (tau) {
      EXPECT_NEAR(*tau, dot / std::sqrt(left * right), 1e-12);
    }
  }
}

TEST(KendallTau, OrderReversedAndTied) {
  const std::vector<StepPair> same = {{1, 10}, {2, 20}, {3, 30}};
  const std::vector<StepPair> reversed = {{1, 30}, {2, 20}, {3, 10}};
  const std::vector<StepPair> tied = {{1, 5}, {2, 5}};
  EXPECT_EQ(kendall_tau(same), 1.0);
  EXPECT_EQ(kendall_tau(reversed), -1.0);
  EXPECT_EQ(kendall_tau(tied), std::nullopt);
}

TEST(Regret, OfThePickOverTheBest) {
  const std::vector<StepPair> wrong = {{2.0, 1.0}, {1.6, 1.1}, {5.0, 9.0}};
  EXPECT_DOUBLE_EQ(pick_regret(wrong), 2.0 / 1.6 - 1);
  const std::vector<StepPair> right = {{2.0, 3.0}, {1.6, 1.1}};
  EXPECT_EQ(pick_regret(right), 0.0);
  const std::vector<StepPair> equal = {{3.0, 1.0}, {1.5, 1.0}};
  EXPECT_EQ(pick_regret(equal), 1.0);  // the first of equals
}

ValidatedRow row(double measured, double simulated, const char* sweep, const char* layout) {
  ValidatedRow result;
  result.measured_s = measured;
  result.simulated_s = simulated;
  result.sweep = sweep;
  result.layout = layout;
  return result;
}

std::vector<const ValidatedRow*> pointers(const std::vector<ValidatedRow>& rows) {
  std::vector<const ValidatedRow*> list;
  for (const ValidatedRow& one : rows) {
    list.push_back(&one);
  }
  return list;
}

// By hand: sweep a has 3 pairs and tau 1, sweep b has 6 pairs and tau -1; regrets 0 and 3. Too few
// rows, one layout only, and rows without a measurement make no sweep.
TEST(RankScore, SweepsWeighByTheirPairs) {
  std::vector<ValidatedRow> rows = {row(1, 1, "a", "x"),
                                    row(2, 2, "a", "y"),
                                    row(3, 3, "a", "z"),
                                    row(1, 4, "b", "x"),
                                    row(2, 3, "b", "y"),
                                    row(3, 2, "b", "z"),
                                    row(4, 1, "b", "w"),
                                    row(1, 2, "few", "x"),
                                    row(2, 1, "few", "y"),
                                    row(1, 3, "alike", "x"),
                                    row(2, 2, "alike", "x"),
                                    row(3, 1, "alike", "x"),
                                    row(9, 9, "few", "z")};
  rows.back().measured_s.reset();
  const RankScore score = rank_score(pointers(rows));
  EXPECT_EQ(score.sweeps, 2);
  EXPECT_DOUBLE_EQ(*score.kendall_tau, (3.0 - 6.0) / 9.0);
  EXPECT_DOUBLE_EQ(*score.mean_regret, (0.0 + 3.0) / 2);
  EXPECT_EQ(rank_score({}).kendall_tau, std::nullopt);
}

TEST(ErrorScore, MeanMedianAndBias) {
  const std::vector<ValidatedRow> rows = {
      row(1, 1.1, "", ""), row(1, 0.8, "", ""), row(2, 2.8, "", ""), row(1, 1, "", "")};
  const ErrorScore score = error_score(pointers(rows));
  EXPECT_EQ(score.n, 4);
  EXPECT_NEAR(score.mape, (0.1 + 0.2 + 0.4 + 0) / 4, 1e-12);
  EXPECT_NEAR(score.bias, (0.1 - 0.2 + 0.4 + 0) / 4, 1e-12);
  EXPECT_NEAR(score.median_ape, 0.15, 1e-12);
}

}  // namespace
}  // namespace foretrain
