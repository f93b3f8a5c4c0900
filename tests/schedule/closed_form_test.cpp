#include "foretrain/schedule.h"

#include <algorithm>

#include <gtest/gtest.h>

/// Rule: on whole grids of sizes, time and memory follow the published closed forms exactly.
/// T = tF + tB of one chunk; every rank is busy m v T.
namespace foretrain {
namespace {

struct Costs {
  std::int64_t forward, backward;
};
constexpr Costs kCosts[] = {{1, 2}, {3, 3}, {10, 17}, {5, 1}};

/// Checks the bubble of every rank and the makespan against busy + bubble.
void expect_bubble(const Schedule& schedule, const ScheduleCosts& costs, std::int64_t bubble) {
  const Expected<ScheduleTiming> timing = time_schedule(schedule, costs);
  ASSERT_TRUE(timing.has_value());
  const std::int64_t busy = std::int64_t{schedule.size.micro_batches} * schedule.size.vpp *
                            (costs.stages.front().forward + costs.stages.front().backward).count();
  EXPECT_EQ(timing->makespan.count(), busy + bubble);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    EXPECT_EQ(timing->busy[rank].count(), busy);
    EXPECT_EQ(timing->bubble[rank].count(), bubble);
  }
}

Schedule built(const char* name, const ScheduleSize& size) {
  Expected<Schedule> schedule = make_schedule(name, size);
  EXPECT_TRUE(schedule.has_value()) << name << " " << size.pp << " " << size.micro_batches;
  return schedule ? *schedule : Schedule{};
}

// GPipe (Huang et al., 2019): fill and drain cost (p-1) T, and each of the 2 (p-1) hops adds c
// once.
TEST(ClosedForm, Gpipe) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 20; ++m) {
      const Schedule schedule = built("gpipe", {.pp = p, .micro_batches = m});
      for (const Costs& t : kCosts) {
        for (const std::int64_t c : {0, 1, 7}) {
          expect_bubble(schedule,
                        {{{Duration{t.forward}, Duration{t.backward}}}, Duration{c}},
                        (p - 1) * (t.forward + t.backward + 2 * c));
        }
      }
      EXPECT_EQ(peak_in_flight(schedule),
                std::vector<std::int32_t>(static_cast<std::size_t>(p), m));
      EXPECT_EQ(message_count(schedule), 2LL * m * (p - 1));
    }
  }
}

// PipeDream-flush (Narayanan et al., 2021): the bubble of GPipe, also for m < p, with p - r in
// flight.
TEST(ClosedForm, OneForwardOneBackward) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 20; ++m) {
      const Schedule schedule = built("1f1b", {.pp = p, .micro_batches = m});
      for (const Costs& t : kCosts) {
        expect_bubble(schedule,
                      {{{Duration{t.forward}, Duration{t.backward}}}, Duration{0}},
                      (p - 1) * (t.forward + t.backward));
      }
      const std::vector<std::int32_t> peak = peak_in_flight(schedule);
      for (int rank = 0; rank < p; ++rank) {
        EXPECT_EQ(peak[static_cast<std::size_t>(rank)], std::min(m, p - rank));
      }
      EXPECT_EQ(message_count(schedule), 2LL * m * (p - 1));
    }
  }
}

// 1F1B shows its latency: rank 0 may run p micro-batches ahead, and a round trip takes p-1 hops
// each way, so every further window of p micro-batches pays 2 c (p-1): in all 2c [(p-1)(1 + m/p) -
// 1] for m a multiple of p and c small against tF and tB (here c <= tF / 4).
TEST(ClosedForm, OneForwardOneBackwardWithLatency) {
  for (int p = 2; p <= 8; ++p) {
    for (int m = p; m <= 4 * p; m += p) {
      const Schedule schedule = built("1f1b", {.pp = p, .micro_batches = m});
      const std::int64_t c = 1;
      const std::int64_t latency = 2 * c * ((p - 1) * (1 + m / p) - 1);
      expect_bubble(schedule, {{{Duration{4}, Duration{8}}}, Duration{c}}, (p - 1) * 12 + latency);
    }
  }
}

// Interleaved (Narayanan et al., 2021): the bubble is (p-1) T of one chunk whatever v and the
// group; in flight (v-1) g + 2 (p-1-r) + 1 chunks.
TEST(ClosedForm, Interleaved) {
  int sizes = 0;
  for (int p = 1; p <= 6; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = p; m <= 14; ++m) {
        for (int g = p; g <= m; ++g) {
          if (m % g != 0 && m % g < p) {
            continue;
          }
          ++sizes;
          const Schedule schedule =
              built("interleaved", {.pp = p, .micro_batches = m, .vpp = v, .group = g});
          for (const Costs& t : kCosts) {
            expect_bubble(schedule,
                          {{{Duration{t.forward}, Duration{t.backward}}}, Duration{0}},
                          (p - 1) * (t.forward + t.backward));
          }
          const std::vector<std::int32_t> peak = peak_in_flight(schedule);
          for (int rank = 0; rank < p; ++rank) {
            EXPECT_EQ(peak[static_cast<std::size_t>(rank)],
                      std::min(m * v, (v - 1) * g + 2 * (p - 1 - rank) + 1));
          }
          EXPECT_EQ(message_count(schedule), p > 1 ? 2LL * m * (p * v - 1) : 0);
        }
      }
    }
  }
  EXPECT_GT(sizes, 700);
}

}  // namespace
}  // namespace foretrain
