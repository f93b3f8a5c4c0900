#include "foretrain/schedule.h"

#include <algorithm>

#include <gtest/gtest.h>

/// Rule: V-Half and V-Min are as long and hold as much as those of their authors' planner (sail-sg,
/// zero-bubble-pipeline-parallelism at 39f2c18, zbv_greedy.py), run with tF = tI = tW = 1. The
/// order inside may differ: equally good lists are many.
namespace foretrain {
namespace {

struct Planned {
  int pp, micro_batches;
  std::int64_t makespan;
  std::int32_t peak;  ///< chunks in flight, of the rank that holds most
};

// clang-format off
constexpr Planned kHalf[] = {
    {2, 3, 19, 4}, {2, 5, 31, 4}, {2, 6, 37, 4}, {2, 8, 49, 4},
    {3, 5, 35, 4}, {3, 8, 53, 4}, {3, 9, 59, 4}, {3, 12, 77, 4},
    {4, 7, 47, 6}, {4, 11, 71, 6}, {4, 12, 77, 6}, {4, 16, 101, 6},
    {5, 9, 65, 6}, {5, 14, 95, 6}, {5, 15, 101, 6}, {5, 20, 131, 6},
    {6, 11, 77, 8}, {6, 17, 113, 8}, {6, 18, 119, 8}, {6, 24, 155, 8},
    {7, 13, 95, 8}, {7, 20, 137, 8}, {7, 21, 143, 8}, {7, 28, 185, 8},
    {8, 15, 107, 10}, {8, 23, 155, 10}, {8, 24, 161, 10}, {8, 32, 209, 10},
    {9, 17, 125, 10}, {9, 26, 179, 10}, {9, 27, 185, 10}, {9, 36, 239, 10},
    {10, 19, 137, 12}, {10, 29, 197, 12}, {10, 30, 203, 12}, {10, 40, 263, 12}};

constexpr Planned kMin[] = {
    {2, 3, 21, 4}, {2, 5, 33, 4}, {2, 6, 39, 4}, {2, 8, 51, 4},
    {3, 5, 35, 4}, {3, 8, 53, 4}, {3, 9, 59, 4}, {3, 12, 77, 4},
    {4, 7, 53, 4}, {4, 11, 77, 4}, {4, 12, 83, 4}, {4, 16, 107, 4},
    {5, 9, 69, 6}, {5, 14, 99, 6}, {5, 15, 105, 6}, {5, 20, 135, 6},
    {6, 11, 83, 6}, {6, 17, 119, 6}, {6, 18, 125, 6}, {6, 24, 161, 6},
    {7, 13, 101, 6}, {7, 20, 143, 6}, {7, 21, 149, 6}, {7, 28, 191, 6},
    {8, 15, 117, 8}, {8, 23, 165, 8}, {8, 24, 171, 8}, {8, 32, 219, 8},
    {9, 17, 131, 8}, {9, 26, 185, 8}, {9, 27, 191, 8}, {9, 36, 245, 8},
    {10, 19, 149, 8}, {10, 29, 209, 8}, {10, 30, 215, 8}, {10, 40, 275, 8}};
// clang-format on

Schedule built(const char* name, int pp, int micro_batches) {
  const Expected<Schedule> schedule =
      make_schedule(name, {.pp = pp, .micro_batches = micro_batches, .vpp = 2});
  EXPECT_TRUE(schedule.has_value());
  return schedule ? *schedule : Schedule{};
}

std::int32_t most_in_flight(const Schedule& schedule) {
  const std::vector<std::int32_t> peaks = peak_in_flight(schedule);
  return *std::max_element(peaks.begin(), peaks.end());
}

void expect_planned(const char* name, std::span<const Planned> rows) {
  ScheduleCosts costs;
  costs.stages = {{Duration{1}, Duration{2}, Duration{1}, Duration{1}}};
  for (const Planned& row : rows) {
    SCOPED_TRACE(name + (" p " + std::to_string(row.pp)) + " m " +
                 std::to_string(row.micro_batches));
    const Schedule schedule = built(name, row.pp, row.micro_batches);
    const Expected<ScheduleTiming> timing = time_schedule(schedule, costs);
    ASSERT_TRUE(timing.has_value());
    EXPECT_EQ(timing->makespan.count(), row.makespan);
    EXPECT_EQ(most_in_flight(schedule), row.peak);
  }
}

TEST(Planner, VHalf) {
  expect_planned("v-half", kHalf);
}

TEST(Planner, VMin) {
  expect_planned("v-min", kMin);
}

// In units of a rank's two chunks: V-Half p/2 + 1 for even p, V-Min about a third of p. Fewer
// micro-batches never hold more.
TEST(Planner, PeaksOfLargerPipelines) {
  struct Peaks {
    int pp;
    std::int32_t half, least;
  };
  for (const Peaks& row : {Peaks{4, 3, 2},
                           Peaks{8, 5, 4},
                           Peaks{12, 7, 5},
                           Peaks{16, 9, 6},
                           Peaks{24, 13, 9},
                           Peaks{32, 17, 12}}) {
    for (const int m : {2 * row.pp - 1, 3 * row.pp, 5 * row.pp}) {
      EXPECT_EQ(most_in_flight(built("v-half", row.pp, m)), 2 * row.half) << row.pp << " " << m;
      EXPECT_EQ(most_in_flight(built("v-min", row.pp, m)), 2 * row.least) << row.pp << " " << m;
    }
    for (int m = 1; m < 2 * row.pp - 1; ++m) {
      EXPECT_LE(most_in_flight(built("v-half", row.pp, m)), 2 * row.half) << row.pp << " " << m;
      EXPECT_LE(most_in_flight(built("v-min", row.pp, m)), 2 * row.least) << row.pp << " " << m;
    }
  }
}

}  // namespace
}  // namespace foretrain
