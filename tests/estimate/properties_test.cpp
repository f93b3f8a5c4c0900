// Rules of the closed form over many layouts: what every estimate must satisfy whatever the
// numbers.
#include "tests/estimate/jobs.h"

#include "foretrain/schedule.h"
#include "sim/estimate/sizes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain::test {
namespace {

/// Every layout of powers of two on `gpus`.
std::vector<Layout> layouts(std::int64_t gpus) {
  std::vector<Layout> all;
  for (std::int64_t tp = 1; tp <= 8; tp *= 2) {
    for (std::int64_t cp = 1; cp <= 8; cp *= 2) {
      for (std::int64_t pp = 1; pp <= 16; pp *= 2) {
        if (gpus % (tp * cp * pp) == 0) {
          all.push_back(Layout{.tp = tp, .cp = cp, .pp = pp, .dp = gpus / (tp * cp * pp)});
        }
      }
    }
  }
  return all;
}

std::vector<Estimator> estimators() {
  std::vector<Estimator> all;
  for (const ClosedForm form : {ClosedForm::kChapter, ClosedForm::kWorkshop}) {
    for (const char* model : {"llama3-8b", "llama3-70b", "gpt3-175b", "mixtral-8x7b"}) {
      all.push_back(estimator_of(form, model, 8192, 512));
    }
  }
  return all;
}

void for_each(const std::function<void(const Estimator&, const Layout&)>& check) {
  for (const Estimator& estimator : estimators()) {
    for (const Layout& layout : layouts(128)) {
      check(estimator, layout);
    }
  }
}

TEST(ClosedFormRules, PartsAreNotNegativeAndSumToTheStep) {
  for_each([](const Estimator& estimator, const Layout& layout) {
    const Estimate estimate = estimator.estimate(layout);
    double sum = 0;
    for (const EstimatePart& part : estimate_parts()) {
      // A difference of two equal sums may be off by the last bits.
      EXPECT_GE(estimate.parts.*part.member, -1e-12 * estimate.step_time_s) << part.key;
      sum += estimate.parts.*part.member;
    }
    EXPECT_DOUBLE_EQ(sum, estimate.step_time_s);
  });
}

// The kernels' share of the peak is what compute alone would reach.
TEST(ClosedFormRules, UtilisationIsTheKernelsTimesTheShareOfCompute) {
  for_each([](const Estimator& estimator, const Layout& layout) {
    const Estimate estimate = estimator.estimate(layout);
    const double share = estimate.parts.compute / estimate.step_time_s;
    EXPECT_NEAR(estimate.mfu, 0.6 * share, 1e-12);
    EXPECT_NEAR(waterfall(estimate, estimator.assumptions()).back().mfu, estimate.mfu, 1e-12);
  });
}

// Sharding more of the states never takes more memory; without data parallelism it changes nothing.
TEST(ClosedFormRules, ShardingOnlySavesMemory) {
  for_each([](const Estimator& estimator, Layout layout) {
    layout.recompute_layers = 0;
    double before = 0;
    for (const Sharding sharding :
         {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3}) {
      layout.sharding = sharding;
      const double bytes = estimator.estimate(layout).memory.total();
      if (sharding != Sharding::kNone) {
        EXPECT_LE(bytes, before);
        const bool alone =
            layout.dp == 1 && layout.cp == 1 && estimator.assumptions().expert_parameters == 0;
        EXPECT_EQ(bytes == before, alone);
      }
      before = bytes;
    }
  });
}

// One recomputed layer fewer would not fit; and none is recomputed where none must be.
TEST(ClosedFormRules, RecomputesNoMoreThanItTakes) {
  for_each([](const Estimator& estimator, Layout layout) {
    if (estimator.assumptions().form != ClosedForm::kChapter) {
      return;
    }
    const Estimate estimate = estimator.estimate(layout);
    if (!estimate.fits || estimate.recompute_layers == 0) {
      return;
    }
    layout.recompute_layers = estimate.recompute_layers - 1;
    EXPECT_FALSE(estimator.estimate(layout).fits);
    layout.recompute_layers = estimate.recompute_layers;
    EXPECT_EQ(estimator.estimate(layout).step_time_s, estimate.step_time_s);
  });
}

// Twice the batch is twice the work but not twice the bubble.
TEST(ClosedFormRules, ALargerBatchNeverLowersUtilisation) {
  for (const char* model : {"llama3-8b", "llama3-70b"}) {
    const Estimator small = chapter_estimator(model, 8192, 512);
    const Estimator large = chapter_estimator(model, 8192, 1024);
    for (Layout layout : layouts(128)) {
      layout.recompute_layers = 0;
      EXPECT_GE(large.estimate(layout).mfu, small.estimate(layout).mfu * (1 - 1e-12));
    }
  }
}

// The count of micro-batches in flight is that of the schedule's own list of actions.
TEST(ClosedFormRules, InFlightIsWhatTheScheduleHolds) {
  for (const char* name : {"gpipe", "1f1b", "interleaved"}) {
    const bool chunks = std::string(name) == "interleaved";
    for (const std::int64_t pp : {2, 4, 8}) {
      for (const std::int64_t vpp :
           chunks ? std::vector<std::int64_t>{2, 3, 8} : std::vector<std::int64_t>{1}) {
        for (const std::int64_t rounds : {1, 2, 5}) {
          const Layout layout{.pp = pp, .vpp = vpp, .schedule = name};
          const std::int64_t m = rounds * pp;
          const Expected<Schedule> schedule =
              make_schedule(name,
                            ScheduleSize{.pp = static_cast<std::int32_t>(pp),
                                         .micro_batches = static_cast<std::int32_t>(m),
                                         .vpp = static_cast<std::int32_t>(vpp)});
          ASSERT_TRUE(schedule) << name << " " << pp << " " << vpp << " " << m;
          EXPECT_NEAR(ScheduleShapes().of(layout, m).in_flight * static_cast<double>(vpp),
                      static_cast<double>(peak_in_flight(*schedule).front()),
                      1e-9)
              << name << " pp " << pp << " vpp " << vpp << " m " << m;
        }
      }
    }
  }
}

}  // namespace
}  // namespace foretrain::test
