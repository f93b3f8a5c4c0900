#include "tests/schedule/longest_path.h"

#include <gtest/gtest.h>

/// Rule: makespan, both bubbles, peaks and messages are those of published schedules. The figures
/// were computed by a separate program and agree with the closed forms (C), with the lists that
/// Megatron-LM and PyTorch generate (O) and with another public simulator (V).
namespace foretrain {
namespace {

struct Golden {
  const char* name;
  ScheduleSize size;
  std::int64_t forward, backward, p2p;
  std::int64_t makespan;
  std::int64_t bubble;                    ///< the same on every rank
  std::vector<std::int64_t> span_bubble;  ///< per rank
  std::vector<std::int32_t> peak;         ///< per rank
  std::int64_t messages;
};

template <typename T>
std::vector<T> falling(T first, T last, T step) {
  std::vector<T> values;
  for (T value = first; value >= last; value -= step) {
    values.push_back(value);
  }
  return values;
}

template <typename T>
std::vector<T> equal(T value, std::size_t count) {
  return std::vector<T>(count, value);
}

std::vector<Golden> rows() {
  using Times = std::int64_t;
  using Count = std::int32_t;
  const ScheduleSize small{.pp = 4, .micro_batches = 8};
  const ScheduleSize large{.pp = 8, .micro_batches = 32};
  return {
      {"gpipe", small, 1, 2, 0, 33, 9, {9, 6, 3, 0}, equal<Count>(8, 4), 48},     // C
      {"gpipe", small, 1, 2, 1, 39, 15, {15, 10, 5, 0}, equal<Count>(8, 4), 48},  // C
      {"gpipe", large, 1, 2, 0, 117, 21, falling<Times>(21, 0, 3), equal<Count>(32, 8), 448},
      {"1f1b", small, 1, 2, 0, 33, 9, {9, 6, 3, 0}, {4, 3, 2, 1}, 48},  // O V C
      {"1f1b", large, 1, 2, 0, 117, 21, falling<Times>(21, 0, 3), falling<Count>(8, 1, 1), 448},
      {"1f1b", {.pp = 4, .micro_batches = 2}, 1, 2, 0, 15, 9, {9, 6, 3, 0}, {2, 2, 2, 1}, 12},
      {"1f1b", small, 1, 2, 1, 49, 25, {25, 20, 15, 10}, {4, 3, 2, 1}, 48},  // O C
      {"1f1b", large, 4, 8, 1, 536, 152, falling<Times>(152, 54, 14), falling<Count>(8, 1, 1), 448},
      {"interleaved",
       {.pp = 4, .micro_batches = 8, .vpp = 2, .group = 4},
       1,
       2,
       0,
       57,
       9,
       {9, 6, 3, 0},
       {11, 9, 7, 5},
       112},  // O V C
      {"interleaved",
       {.pp = 8, .micro_batches = 32, .vpp = 4, .group = 8},
       1,
       2,
       0,
       405,
       21,
       falling<Times>(21, 0, 3),
       falling<Count>(39, 25, 2),
       1984},  // O C
      {"interleaved",
       {.pp = 4, .micro_batches = 4, .vpp = 2, .group = 4},
       1,
       2,
       0,
       33,
       9,
       {9, 6, 3, 0},
       {8, 8, 7, 5},
       56},  // O C
      {"interleaved",
       {.pp = 4, .micro_batches = 8, .vpp = 2, .group = 4},
       1,
       2,
       1,
       71,
       23,
       {23, 18, 13, 8},
       {11, 9, 7, 5},
       112},  // O
  };
}

std::vector<std::int64_t> counts(const std::vector<Duration>& durations) {
  std::vector<std::int64_t> values;
  for (const Duration duration : durations) {
    values.push_back(duration.count());
  }
  return values;
}

TEST(Golden, PublishedRows) {
  for (const Golden& row : rows()) {
    SCOPED_TRACE(std::string(row.name) + " p " + std::to_string(row.size.pp) + " m " +
                 std::to_string(row.size.micro_batches) + " c " + std::to_string(row.p2p));
    const Expected<Schedule> schedule = make_schedule(row.name, row.size);
    ASSERT_TRUE(schedule.has_value());
    const Expected<ScheduleTiming> timing = time_schedule(
        *schedule, {{{Duration{row.forward}, Duration{row.backward}}}, Duration{row.p2p}});
    ASSERT_TRUE(timing.has_value());
    EXPECT_EQ(timing->makespan.count(), row.makespan);
    EXPECT_EQ(counts(timing->bubble),
              equal<std::int64_t>(row.bubble, static_cast<std::size_t>(row.size.pp)));
    EXPECT_EQ(counts(timing->span_bubble), row.span_bubble);
    EXPECT_EQ(peak_in_flight(*schedule), row.peak);
    EXPECT_EQ(message_count(*schedule), row.messages);
    EXPECT_EQ(reference::longest_path(*schedule, row.forward, row.backward, row.p2p).makespan,
              row.makespan);
  }
}

// DualPipe's README and its issue 15 count the 1F1B bubble of p = 8, m = 20, F = 1, B = 2 as
// (p-1)(F+B) = 21 of 60 busy.
TEST(Golden, DualPipeTableRow) {
  const Expected<Schedule> schedule = make_schedule("1f1b", {.pp = 8, .micro_batches = 20});
  ASSERT_TRUE(schedule.has_value());
  const Expected<ScheduleTiming> timing = time_schedule(*schedule, {});
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->bubble[0].count(), 21);
  EXPECT_EQ(timing->busy[0].count(), 60);
}

}  // namespace
}  // namespace foretrain
