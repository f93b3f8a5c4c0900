#include "sim/validate/measured.h"

#include "tests/validate/published_table.h"

#include <cmath>

#include <gtest/gtest.h>

/// Rule: a step is what was published, or what a published rate makes of the batch, by hand.
namespace foretrain {
namespace {

MeasuredStep measured(const PublishedRow& row) {
  return measured_step(row, source_of(row), hardware_of(row));
}

MeasuredStep without_step(const char* id) {
  PublishedRow row = test::shipped_row(id);
  row.step_time_s.reset();
  return measured(row);
}

// Rows that give a rate and a step: the rate alone gives the same step. Each by arithmetic:
// 512 x 8192 tokens at 9.4897 s x 8 GPUs x 13,812 tokens/s, and so on.
TEST(MeasuredStep, RatesGiveTheStepThatIsPrinted) {
  EXPECT_NEAR(*without_step("mlm-llama-fp8-1").seconds, 128.0 * 8192 / (8 * 13812), 1e-9);
  EXPECT_NEAR(*without_step("mosaic-0001").seconds, 4096.0 * 2048 / 515636, 1e-9);
  EXPECT_NEAR(*without_step("zb-0001").seconds, 144.0 / (8 * 14.5), 1e-9);
  // 96 B s l h^2 (1 + s/6h + V/16lh) / (n X), Narayanan et al. 2021, Table 1: 138 TFLOP/s.
  const double narayanan = 96.0 * 512 * 2048 * 30 * 3072 * 3072 *
                           (1 + 2048 / (6.0 * 3072) + 51200 / (16.0 * 30 * 3072)) / (64 * 138e12);
  EXPECT_NEAR(*without_step("sc21-t1-02").seconds, narayanan, 1e-6);
  EXPECT_NEAR(narayanan, 3.697, 0.001);
}

// MegaScale prints 53.0 % and 40.0 s for one run: with 72 B s l h^2 (1 + s/6h + V/12lh) and the
// data sheet's 312 TFLOP/s the one gives the other.
TEST(MeasuredStep, UtilisationOfAKnownConvention) {
  PublishedRow row = test::shipped_row("megascale-0001");
  row.step_time_s.reset();
  row.measured_metric = "mfu";
  row.measured_value = 53.0;
  row.unit = "%";
  EXPECT_NEAR(*measured(row).seconds, 40.0, 0.05);
}

// BigScience's older formula: rows that print the step and the rate of it agree within 0.2 %.
TEST(MeasuredStep, OlderFormulaIsCorrected) {
  PublishedRow row = test::shipped_row("bloom-0043");
  const double printed = *row.step_time_s;
  row.step_time_s.reset();
  row.measured_metric = "hardware_tflops_per_gpu";
  row.measured_value = 120.05;  // of the same row
  EXPECT_NEAR(*measured(row).seconds / printed, 1.0, 0.002);
}

TEST(MeasuredStep, WhatSaysNoStepSaysWhy) {
  const auto why = [](const char* id) { return measured(test::shipped_row(id)).why; };
  EXPECT_EQ(why("kor22-t4-1-fwd"), "layer_fwd_time is no time of a step");
  EXPECT_EQ(why("nanotron-0002"), "mfu, but not which FLOPs it counts");
  EXPECT_EQ(why("fa2-0001"), "model_tflops_per_gpu, but not of how large a step");
  EXPECT_FALSE(measured(test::shipped_row("fa2-0001")).seconds.has_value());
  PublishedRow empty = test::shipped_row("fa2-0001");
  empty.measured_value.reset();
  EXPECT_EQ(measured(empty).why, "nothing is published");
}

}  // namespace
}  // namespace foretrain
