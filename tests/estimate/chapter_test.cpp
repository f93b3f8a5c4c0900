// Golden figures: the printed output of the chapter "Combining and choosing 3D and 5D parallelism",
// every line of it. Layouts, utilisations to a tenth of a point, memory to a GiB, recomputed layers
// and shares to a percent.
#include "tests/estimate/jobs.h"

#include "sim/base/format.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain::test {
namespace {

struct Line {
  std::int64_t tp, cp, pp, dp;
  double mfu;  ///< percent
  std::int64_t gib;
  std::int64_t recomputed, layers;
  std::string shares;  ///< those of half a percent or more, keys as in JSON
};

struct Page {
  const char* model;
  std::int64_t sequence, batch, gpus;
  std::vector<Line> lines;
};

const std::vector<Page>& pages() {
  static const std::vector<Page> kPages = {
      {"llama3-70b",
       8192,
       512,
       64,
       {{4, 2, 2, 4, 53.7, 66, 0, 40, "compute 89 imbalance 1 tp 8 bubble 1"},
        {4, 2, 4, 2, 52.2, 50, 0, 20, "compute 87 imbalance 4 tp 8 bubble 1"},
        {4, 2, 8, 1, 49.6, 42, 0, 10, "compute 83 imbalance 8 tp 8 bubble 1"},
        {8, 1, 1, 8, 49.3, 66, 0, 80, "compute 82 tp 18"},
        {8, 1, 4, 2, 47.1, 42, 0, 20, "compute 78 imbalance 3 tp 17 bubble 1"}}},
      {"llama3-70b",
       131072,
       32,
       64,
       {{8, 4, 2, 1, 44.4, 66, 24, 40, "compute 74 recompute 15 imbalance 1 tp 8 bubble 3"},
        {4, 8, 2, 1, 44.2, 66, 32, 40, "compute 74 recompute 19 tp 3 bubble 3"},
        {8, 4, 1, 2, 43.8, 66, 64, 80, "compute 73 recompute 19 tp 8"},
        {8, 1, 1, 8, 41.8, 65, 80, 80, "compute 70 recompute 23 tp 7"}}},
      {"llama3-8b",
       8192,
       64,
       8,
       {{1, 2, 1, 4, 59.9, 58, 0, 32, "compute 100"},
        {2, 1, 1, 4, 56.9, 43, 0, 32, "compute 95 tp 5"},
        {2, 2, 1, 2, 56.9, 35, 0, 32, "compute 95 tp 5"},
        {1, 1, 1, 8, 55.0, 66, 9, 32, "compute 92 recompute 8"}}},
      {"llama3-70b",
       8192,
       512,
       1024,
       {{8, 1, 1, 128, 47.6, 55, 0, 80, "compute 79 tp 17 dp 4"},
        {4, 2, 2, 64, 46.5, 55, 0, 40, "compute 77 imbalance 1 tp 7 bubble 11 dp 3"},
        {4, 2, 4, 32, 43.7, 38, 0, 20, "compute 73 imbalance 3 tp 7 bubble 16 dp 2"}}},
      {"llama3-70b",
       8192,
       2048,
       1024,
       {{4, 2, 2, 64, 52.0, 55, 0, 40, "compute 87 imbalance 1 tp 8 bubble 3 dp 1"},
        {4, 2, 4, 32, 50.2, 38, 0, 20, "compute 84 imbalance 4 tp 8 bubble 4"},
        {8, 1, 1, 128, 48.9, 55, 0, 80, "compute 82 tp 18 dp 1"}}},
  };
  return kPages;
}

std::string shares(const Estimate& estimate) {
  std::string text;
  for (const EstimatePart& part : estimate_parts()) {
    const double share = estimate.parts.*part.member / estimate.step_time_s;
    if (share >= 0.005) {
      text += (text.empty() ? "" : " ") + std::string(part.key) + " " + fixed(100 * share, 0);
    }
  }
  return text;
}

TEST(Chapter, EveryPrintedLine) {
  for (const Page& page : pages()) {
    const Estimator estimator = chapter_estimator(page.model, page.sequence, page.batch);
    for (const Line& line : page.lines) {
      const Estimate estimate =
          estimator.estimate(Layout{.tp = line.tp, .cp = line.cp, .pp = line.pp, .dp = line.dp});
      SCOPED_TRACE(std::string(page.model) + " tp " + std::to_string(line.tp) + " cp " +
                   std::to_string(line.cp) + " pp " + std::to_string(line.pp));
      EXPECT_TRUE(estimate.fits);
      EXPECT_EQ(fixed(100 * estimate.mfu, 1), fixed(line.mfu, 1));
      EXPECT_EQ(std::llround(estimate.memory.total() / 1073741824.0), line.gib);
      EXPECT_EQ(estimate.recompute_layers, line.recomputed);
      EXPECT_EQ(estimate.stage_layers, static_cast<double>(line.layers));
      EXPECT_EQ(shares(estimate), line.shares);
    }
  }
}

// T_tp / T_compute = 16 (t - 1) h P e / (B f_layer), f_layer about 5.5e9 at 8K: .031 (t - 1).
TEST(Chapter, TensorTrafficOverComputeGrowsWithTheDegreeLessOne) {
  const Estimator estimator = chapter_estimator("llama3-70b", 8192, 512);
  const Assumptions& given = estimator.assumptions();
  const auto ratio = [&](std::int64_t tp) {
    const Estimate estimate = estimator.estimate(Layout{.tp = tp, .dp = 64 / tp});
    const double head = 6.0 * 128256 * 8192;  // the ratio is of layers: the head has no traffic
    const double layers = 1 - head * 512 * 8192 / estimate.model_flops;
    return estimate.parts.tp / (estimate.parts.compute * layers);
  };
  const double per_step = 16 * 8192 * given.peak * given.efficiency / (450e9 * 5.5e9);
  EXPECT_NEAR(per_step, 0.031, 0.0005);
  for (const std::int64_t tp : {2, 4, 8}) {
    EXPECT_NEAR(ratio(tp),
                per_step * static_cast<double>(tp - 1),
                0.02 * per_step * static_cast<double>(tp - 1));  // "about 5.5e9"
    EXPECT_NEAR(ratio(tp) / ratio(2), static_cast<double>(tp - 1), 1e-9);
  }
}

// The waterfall ends at the estimate, never rises, and starts at the kernels.
TEST(Chapter, WaterfallLeadsFromTheKernelsToTheEstimate) {
  const Estimator estimator = chapter_estimator("llama3-70b", 131072, 32);
  const Estimate estimate = estimator.estimate(Layout{.tp = 8, .cp = 4, .pp = 2});
  const std::vector<WaterfallStep> steps = waterfall(estimate, estimator.assumptions());
  ASSERT_GE(steps.size(), 5U);
  EXPECT_EQ(steps.front().after, "kernels");
  EXPECT_EQ(steps.front().mfu, 0.6);
  EXPECT_NEAR(steps.back().mfu, estimate.mfu, 1e-12);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    EXPECT_LE(steps[i].mfu, steps[i - 1].mfu) << steps[i].after;
  }
}

// Groups that leave the node are slower; the order decides which do.
TEST(Chapter, TheOrderDecidesWhichGroupsLeaveTheNode) {
  const Estimator estimator = chapter_estimator("llama3-8b", 8192, 64);
  Layout layout{.tp = 2, .pp = 2, .dp = 8, .order = "tp-cp-ep-dp-pp"};
  const Estimate pipeline_outside = estimator.estimate(layout);
  layout.order = "tp-pp-cp-ep-dp";
  const Estimate data_outside = estimator.estimate(layout);
  // 4 ranks of tp x pp stay inside: messages at 450 instead of 50 GB/s.
  EXPECT_NEAR(pipeline_outside.parts.pp / data_outside.parts.pp, 9.0, 1e-9);
  layout.order = "dp-tp-pp-cp-ep";
  EXPECT_NEAR(data_outside.parts.dp / estimator.estimate(layout).parts.dp, 9.0, 1e-9);
  EXPECT_NEAR(estimator.estimate(layout).parts.tp / data_outside.parts.tp, 9.0, 1e-9);
}

TEST(Chapter, WhatDoesNotFitRecomputesEverythingAndSaysSo) {
  const Estimator estimator = chapter_estimator("llama3-70b", 8192, 512);
  const Estimate estimate = estimator.estimate(Layout{.dp = 8});
  EXPECT_FALSE(estimate.fits);
  EXPECT_EQ(estimate.recompute_layers, 80);
  EXPECT_GT(estimate.memory.total(), estimate.memory_limit);
}

}  // namespace
}  // namespace foretrain::test
