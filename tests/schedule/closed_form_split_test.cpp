#include "tests/schedule/closed_form.h"

#include <algorithm>

#include <gtest/gtest.h>

/// Rule: on whole grids of sizes, time and memory of schedules with split backwards follow the
/// published closed forms exactly, or the exact forms where the published ones hold for some costs
/// only.
namespace foretrain::closed_form {
namespace {

constexpr SplitCosts kOnes{1, 1, 1};
constexpr SplitCosts kCosts[] = {kOnes,
                                 {10, 12, 8},
                                 {10, 10, 10},
                                 {3, 5, 4},
                                 {4, 5, 3},
                                 {2, 7, 1},
                                 {7, 2, 1},
                                 {1, 2, 7},
                                 {2, 1, 7},
                                 {1, 7, 2},
                                 {7, 1, 2}};

// ZB-H1 (Qi et al., 2023). Published is (p-1)(tF + tI - tW), which holds while tW is the least.
TEST(ClosedForm, ZbH1) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 24; ++m) {
      const Schedule schedule = built("zb-h1", {.pp = p, .micro_batches = m});
      for (const SplitCosts& t : kCosts) {
        if (m >= p) {
          const std::int64_t step = std::max({t.forward + t.input - t.weight, t.forward, t.input});
          expect_bubble(schedule, costs_of(t), (p - 1) * step);
        }
      }
      EXPECT_EQ(peak_in_flight(schedule),
                each_peak(schedule.size, [&](int) { return std::min(m, p); }));
      EXPECT_EQ(message_count(schedule), 2LL * m * (p - 1));
    }
  }
}

// ZB-H2: from m = 2p - 1 on. The ranks start and end skewed: without a barrier the span counts;
// with one (p-1) tF at least is lost.
TEST(ClosedForm, ZbH2) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 2 * p - 1; m <= 24; ++m) {
      const Schedule schedule = built("zb-h2", {.pp = p, .micro_batches = m});
      for (const SplitCosts& t : kCosts) {
        const std::int64_t middle = t.forward + t.input - 2 * t.weight;
        const std::int64_t drain = t.input - t.forward;
        expect_bubble(schedule, costs_of(t), (p - 1) * std::max({t.forward, middle, drain}));
        EXPECT_EQ(figures(schedule, costs_of(t)).most_span_bubble,
                  (p - 1) * std::max({std::int64_t{0}, middle, drain}));
      }
      EXPECT_EQ(peak_in_flight(schedule), each_peak(schedule.size, [&](int) { return 2 * p - 1; }));
    }
  }
}

// PyTorch's InterleavedZeroBubble in full rounds: p v chunks in flight on every rank.
TEST(ClosedForm, ZbInterleaved) {
  for (int p = 1; p <= 8; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = p; m <= 4 * p; m += p) {
        const Schedule schedule = built("zb-interleaved", {.pp = p, .micro_batches = m, .vpp = v});
        expect_bubble(schedule, costs_of(kOnes), p - 1);
        EXPECT_EQ(peak_in_flight(schedule), each_peak(schedule.size, [&](int) { return p * v; }));
      }
    }
  }
}

// One chunk makes it ZB-H1.
TEST(ClosedForm, ZbInterleavedWithOneChunk) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = p; m <= 4 * p; m += p) {
      const ScheduleSize size{.pp = p, .micro_batches = m};
      EXPECT_EQ(built("zb-interleaved", size).ranks, built("zb-h1", size).ranks);
    }
  }
}

// ZB-V (Qi et al., 2024): no bubble but skew, in the memory of 1F1B: 2p half-sized chunks.
TEST(ClosedForm, ZbV) {
  for (int p = 1; p <= 16; ++p) {
    for (int m = 2 * p - 1; m <= 40; ++m) {
      const Schedule schedule = built("zb-v", {.pp = p, .micro_batches = m, .vpp = 2});
      const Figures got = figures(schedule, costs_of(kOnes));
      EXPECT_EQ(got.makespan, 6 * m + p - 1);
      EXPECT_EQ(got.most_span_bubble, 0);
      EXPECT_EQ(peak_in_flight(schedule), each_peak(schedule.size, [&](int) { return 2 * p; }));
      EXPECT_EQ(message_count(schedule), 4LL * m * (p - 1));
    }
  }
}

// DeepSeek's table: (p/2 - 1)(tFB + tB - 3 tW), exact where tF = tI = tW. It is the bubble of the
// middle ranks; those nearer to the ends have fewer overlapped units, and a gain of each to miss.
TEST(ClosedForm, DualPipe) {
  for (int p = 2; p <= 12; p += 2) {
    for (int m = 2 * p; m <= 4 * p + 4; m += 2) {
      const Schedule schedule = built("dualpipe", {.pp = p, .micro_batches = m});
      for (const SplitCosts& t : {SplitCosts{1, 1, 1},
                                  SplitCosts{2, 2, 2, 4},
                                  SplitCosts{2, 2, 2, 5},
                                  SplitCosts{10, 10, 10, 28}}) {
        const std::int64_t bubble = (p / 2 - 1) * (t.unit() + t.backward() - 3 * t.weight);
        const Figures got = figures(schedule, costs_of(t));
        EXPECT_EQ(got.bubble[static_cast<std::size_t>(p / 2)], bubble) << p << " " << m;
        EXPECT_EQ(*std::max_element(got.bubble.begin(), got.bubble.end()), bubble);
        if (t.overlapped < 0) {
          expect_bubble(schedule, costs_of(t), bubble);
        }
      }
      EXPECT_EQ(peak_in_flight(schedule), each_peak(schedule.size, [&](int) { return p + 1; }));
      EXPECT_EQ(message_count(schedule), 2LL * m * (p - 1));
    }
  }
}

// For unequal costs the table is off in either direction; the figures of two worked cases.
TEST(ClosedForm, DualPipeTableHoldsForEqualCostsOnly) {
  const Schedule schedule = built("dualpipe", {.pp = 4, .micro_batches = 16});
  const auto middle = [&](const SplitCosts& t) { return figures(schedule, costs_of(t)).bubble[1]; };
  EXPECT_EQ(middle({10, 12, 8, 30}), 24);  // the table: 26
  EXPECT_EQ(middle({10, 9, 11, 30}), 20);  // the table: 17
}

// Folded back, the same on half of the ranks with half of the micro-batches: rank r of the V does
// what ranks r and p-1-r each do.
TEST(ClosedForm, DualPipeVIsDualPipeFolded) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 2 * p; m <= 4 * p + 3; ++m) {
      const Schedule folded = built("dualpipev", {.pp = p, .micro_batches = m, .vpp = 2});
      const Schedule flat = built("dualpipe", {.pp = 2 * p, .micro_batches = 2 * m});
      for (const SplitCosts& t :
           {kOnes, SplitCosts{10, 11, 9, 26}, SplitCosts{10, 12, 8, 30}, SplitCosts{3, 1, 5, 7}}) {
        const Figures v = figures(folded, costs_of(t));
        const Figures two_way = figures(flat, costs_of(t));
        EXPECT_EQ(v.makespan, two_way.makespan);
        for (std::size_t rank = 0; rank < v.bubble.size(); ++rank) {
          EXPECT_EQ(v.bubble[rank], two_way.bubble[rank]);
          EXPECT_EQ(v.span_bubble[rank], two_way.span_bubble[rank]);
        }
      }
      expect_bubble(folded, costs_of(kOnes), (p - 1) * (3 + 2 - 3));
      EXPECT_EQ(peak_in_flight(folded), each_peak(folded.size, [&](int) { return 2 * p + 1; }));
    }
  }
}

}  // namespace
}  // namespace foretrain::closed_form
