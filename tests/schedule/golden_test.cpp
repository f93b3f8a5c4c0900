#include "foretrain/schedule.h"

#include <algorithm>

#include <gtest/gtest.h>

/// Rule: makespan, both bubbles, peaks and messages are those of published schedules. The figures
/// were computed by a separate program and agree with the closed forms (C), with the lists that
/// Megatron-LM, PyTorch, sail-sg and DeepSeek generate (O), with sail-sg's planners (R) and with
/// another public simulator (V).
namespace foretrain {
namespace {

using Times = std::vector<std::int64_t>;
using Counts = std::vector<std::int32_t>;

/// Costs in half units, so that 2.5 is a whole number.
struct Halves {
  std::int64_t forward = 0, backward = 0, input = 0, weight = 0, overlapped = 0, p2p = 0;
};
constexpr Halves whole(std::int64_t forward, std::int64_t backward, std::int64_t p2p = 0) {
  return {2 * forward, 2 * backward, 0, 0, 2 * (forward + backward), 2 * p2p};
}
constexpr Halves split(std::int64_t forward,
                       std::int64_t input,
                       std::int64_t weight,
                       std::int64_t p2p = 0) {
  const std::int64_t backward = input + weight;
  return {2 * forward, 2 * backward, 2 * input, 2 * weight, 2 * (forward + backward), 2 * p2p};
}
constexpr Halves overlapped(Halves costs, std::int64_t halves) {
  costs.overlapped = halves;
  return costs;
}

struct Golden {
  const char* name;
  ScheduleSize size;
  Halves costs;
  std::int64_t makespan;
  Times bubble;       ///< per rank; one value: the same on every rank
  Times span_bubble;  ///< likewise
  Counts peak;        ///< likewise
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

Times fall(std::int64_t first, std::int64_t last, std::int64_t step) {
  return falling<std::int64_t>(first, last, step);
}

/// p, m, v, g, k.
constexpr ScheduleSize sized(int p, int m, int v = 1, int g = 0, int k = 1) {
  return {.pp = p, .micro_batches = m, .vpp = v, .group = g, .slices = k};
}

// GPipe, 1F1B and its kin: one chunk a rank, whole backwards.
std::vector<Golden> one_chunk_rows() {
  const ScheduleSize small = sized(4, 8);
  const ScheduleSize large = sized(8, 32);
  return {
      {"gpipe", small, whole(1, 2), 33, {9}, {9, 6, 3, 0}, {8}, 48},          // C
      {"gpipe", small, whole(1, 2, 1), 39, {15}, {15, 10, 5, 0}, {8}, 48},    // C
      {"gpipe", large, whole(1, 2), 117, {21}, fall(21, 0, 3), {32}, 448},    // C
      {"1f1b", small, whole(1, 2), 33, {9}, {9, 6, 3, 0}, {4, 3, 2, 1}, 48},  // O V C
      {"1f1b", large, whole(1, 2), 117, {21}, fall(21, 0, 3), falling(8, 1, 1), 448},
      {"1f1b", sized(4, 2), whole(1, 2), 15, {9}, {9, 6, 3, 0}, {2, 2, 2, 1}, 12},    // O C
      {"1f1b", small, whole(1, 2, 1), 49, {25}, {25, 20, 15, 10}, {4, 3, 2, 1}, 48},  // O C
      {"1f1b", large, whole(4, 8, 1), 536, {152}, fall(152, 54, 14), falling(8, 1, 1), 448},
      {"eager-1f1b", small, whole(1, 2, 1), 39, {15}, {15, 10, 5, 0}, {7, 5, 3, 1}, 48},  // C
      {"1f1b-overlap", small, whole(1, 2), 33, {9}, {9, 6, 3, 0}, {8, 6, 4, 2}, 48},      // V C
      {"seq1f1b",
       sized(4, 8, 1, 0, 2),
       whole(1, 2),
       57,
       {9},
       {9, 6, 3, 0},
       {5, 4, 3, 2},
       96},  // O C
      {"seq1f1b",
       sized(8, 16, 1, 0, 2),
       whole(1, 2),
       117,
       {21},
       fall(21, 0, 3),
       falling(9, 2, 1),
       448},  // O C
  };
}

// Chunks in a loop, whole backwards.
std::vector<Golden> loop_rows() {
  const ScheduleSize four = sized(4, 8, 2, 4);
  const Times steps{9, 6, 3, 0};
  return {
      {"interleaved", four, whole(1, 2), 57, {9}, steps, {11, 9, 7, 5}, 112},  // O V C
      {"interleaved",
       sized(8, 32, 4, 8),
       whole(1, 2),
       405,
       {21},
       fall(21, 0, 3),
       falling(39, 25, 2),
       1984},                                                                                // O C
      {"interleaved", sized(4, 4, 2, 4), whole(1, 2), 33, {9}, steps, {8, 8, 7, 5}, 56},     // O C
      {"interleaved", four, whole(1, 2, 1), 71, {23}, {23, 18, 13, 8}, {11, 9, 7, 5}, 112},  // O
      {"interleaved-pytorch", sized(4, 10, 2), whole(1, 2), 69, {9}, steps, {12, 10, 8, 6}, 140},
      {"interleaved-overlap", four, whole(1, 2), 57, {9}, steps, {12, 10, 8, 6}, 112},  // O V C
      {"looped-bfs", sized(4, 8, 2), whole(1, 2), 57, {9}, steps, {16}, 112},           // O C
      {"looped-bfs", sized(8, 32, 4), whole(1, 2), 405, {21}, fall(21, 0, 3), {128}, 1984},
      {"looped-bfs", sized(4, 2, 2), whole(1, 2), 27, {15}, {15, 12, 9, 6}, {4}, 28},  // O C
  };
}

// Split backwards, linear or in a loop.
std::vector<Golden> zero_bubble_rows() {
  const ScheduleSize small = sized(4, 12);
  const ScheduleSize large = sized(8, 32);
  const Halves ones = split(1, 1, 1);
  const Halves unequal = split(10, 12, 8);
  return {
      {"zb-h1", small, ones, 39, {3}, {3, 2, 1, 0}, {4}, 72},                      // O R V C
      {"zb-h1", large, ones, 103, {7}, fall(7, 0, 1), {8}, 448},                   // O R V C
      {"zb-h1", small, unequal, 402, {42}, {42, 28, 14, 0}, {4}, 72},              // O R V C
      {"zb-h1", small, split(1, 1, 1, 1), 56, {20}, {20, 17, 14, 11}, {4}, 72},    // O
      {"zb-interleaved", sized(4, 8, 2), ones, 51, {3}, {3, 2, 1, 0}, {8}, 112},   // O C
      {"zb-interleaved", sized(4, 16, 2), ones, 99, {3}, {3, 2, 1, 0}, {8}, 224},  // O C
      {"zb-h2", small, ones, 39, {3}, {0}, {7}, 72},                               // R C
      {"zb-h2", large, ones, 103, {7}, {0}, {15}, 448},                            // R C
      {"zb-h2", small, unequal, 390, {30}, {18, 12, 6, 0}, {7}, 72},               // R C
  };
}

// Two chunks in a V.
std::vector<Golden> v_rows() {
  const Halves ones = split(1, 1, 1);
  return {
      {"zb-v", sized(4, 12, 2), ones, 75, {3}, {0}, {8}, 144},                            // O R C
      {"zb-v", sized(8, 32, 2), ones, 199, {7}, {0}, {16}, 896},                          // O R C
      {"zb-v", sized(4, 4, 2), ones, 30, {6}, {6, 4, 2, 0}, {5, 6, 7, 8}, 48},            // O
      {"zb-v", sized(4, 12, 2), split(10, 12, 8), 756, {36}, {24, 18, 12, 6}, {8}, 144},  // O
      {"v-half", sized(4, 12, 2), ones, 77, {5}, {5, 3, 3, 2}, {6}, 144},                 // R
      {"v-half", sized(8, 32, 2), ones, 209, {17}, {17, 15, 13, 11, 9, 7, 7, 6}, {10}, 896},
      {"v-half", sized(5, 15, 2), ones, 101, {11}, {11, 9, 7, 5, 4}, {6}, 240},  // R
      {"v-min", sized(4, 12, 2), ones, 83, {11}, {11, 9, 7, 6}, {4}, 144},       // R
      {"v-min",
       sized(8, 32, 2),
       ones,
       219,
       {27},
       {27, 25, 23, 21, 19, 17, 15, 14},
       {7, 8, 8, 8, 8, 8, 8, 8},
       896},                                                                          // R
      {"v-min", sized(6, 18, 2), ones, 125, {17}, {17, 15, 13, 11, 9, 8}, {6}, 360},  // R
  };
}

std::vector<Golden> dualpipe_rows() {
  const Halves ones = overlapped(split(1, 1, 1), 6);
  const Halves unequal = overlapped(split(10, 11, 9), 52);
  const Times mirrored{46, 50, 54, 54, 54, 54, 50, 46};
  const Times spans{46, 38, 30, 18, 18, 30, 38, 46};
  return {
      {"dualpipe", sized(4, 8), ones, 26, {2}, {2, 1, 1, 2}, {5}, 48},                // O V C
      {"dualpipe", sized(8, 20), ones, 66, {6}, {6, 5, 4, 3, 3, 4, 5, 6}, {9}, 280},  // O V C
      {"dualpipe", sized(8, 20), unequal, 610, mirrored, spans, {9}, 280},            // O V
      {"dualpipev", sized(2, 4, 2), ones, 26, {2}, {2, 1}, {5}, 16},                  // O C
      {"dualpipev", sized(4, 10, 2), ones, 66, {6}, {6, 5, 4, 3}, {9}, 120},          // O C
      {"dualpipev", sized(4, 10, 2), unequal, 610, {46, 50, 54, 54}, {46, 38, 30, 18}, {9}, 120},
      {"dualpipev", sized(8, 20, 2), ones, 134, {14}, fall(14, 7, 1), {17}, 560},  // O V C
  };
}

template <typename T>
std::vector<T> on_every_rank(const std::vector<T>& values, int pp) {
  return values.size() == 1 ? std::vector<T>(static_cast<std::size_t>(pp), values[0]) : values;
}

Times halved(const std::vector<Duration>& durations) {
  Times values;
  for (const Duration duration : durations) {
    EXPECT_EQ(duration.count() % 2, 0);
    values.push_back(duration.count() / 2);
  }
  return values;
}

ScheduleCosts costs_of(const Halves& t) {
  ScheduleCosts costs;
  costs.stages = {{Duration{t.forward},
                   Duration{t.backward},
                   Duration{t.input},
                   Duration{t.weight},
                   Duration{t.overlapped}}};
  costs.p2p = Duration{t.p2p};
  return costs;
}

class PublishedRow : public testing::TestWithParam<Golden> {};

TEST_P(PublishedRow, IsMetExactly) {
  const Golden& row = GetParam();
  const int pp = row.size.pp;
  const Expected<Schedule> schedule = make_schedule(row.name, row.size);
  ASSERT_TRUE(schedule.has_value());
  const ScheduleCosts costs = costs_of(row.costs);
  const Expected<ScheduleTiming> timing = time_schedule(*schedule, costs);
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(halved({timing->makespan}), Times{row.makespan});
  EXPECT_EQ(halved(timing->bubble), on_every_rank(row.bubble, pp));
  EXPECT_EQ(halved(timing->span_bubble), on_every_rank(row.span_bubble, pp));
  EXPECT_EQ(peak_in_flight(*schedule), on_every_rank(row.peak, pp));
  EXPECT_EQ(message_count(*schedule), row.messages);
}

const auto kRowName = [](const testing::TestParamInfo<Golden>& row) {
  std::string name = row.param.name + ("_" + std::to_string(row.index));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
};
INSTANTIATE_TEST_SUITE_P(OneChunk, PublishedRow, testing::ValuesIn(one_chunk_rows()), kRowName);
INSTANTIATE_TEST_SUITE_P(Loop, PublishedRow, testing::ValuesIn(loop_rows()), kRowName);
INSTANTIATE_TEST_SUITE_P(ZeroBubble, PublishedRow, testing::ValuesIn(zero_bubble_rows()), kRowName);
INSTANTIATE_TEST_SUITE_P(V, PublishedRow, testing::ValuesIn(v_rows()), kRowName);
INSTANTIATE_TEST_SUITE_P(DualPipe, PublishedRow, testing::ValuesIn(dualpipe_rows()), kRowName);

// The one row that is not whole: tFB = 2.5 on 16 ranks. Ranks near the ends have fewer overlapped
// units, whose gain they miss, and idle less. O C
TEST(Golden, DualPipeOnSixteenRanks) {
  const Expected<Schedule> schedule = make_schedule("dualpipe", sized(16, 64));
  ASSERT_TRUE(schedule.has_value());
  const Expected<ScheduleTiming> timing =
      time_schedule(*schedule, costs_of(overlapped(split(1, 1, 1), 5)));
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->makespan.count(), 2 * 179);
  const Times bubble{15, 16, 17, 18, 19, 20, 21, 21};  // in halves, of ranks 0 to 7 and 15 to 8
  const Times span{15, 14, 13, 12, 11, 10, 9, 7};
  for (std::size_t rank = 0; rank < 8; ++rank) {
    for (const std::size_t at : {rank, 15 - rank}) {
      EXPECT_EQ(timing->bubble[at].count(), bubble[rank]) << at;
      EXPECT_EQ(timing->span_bubble[at].count(), span[rank]) << at;
    }
  }
  EXPECT_EQ(peak_in_flight(*schedule), Counts(16, 17));
  EXPECT_EQ(message_count(*schedule), 1920);
}

// PyTorch's runtime runs the two halves of an overlapped unit one after the other: the forward need
// not wait for the gradient.
TEST(Golden, DualPipeVWithSequentialUnits) {
  const Expected<Schedule> schedule = make_schedule("dualpipev", sized(4, 10, 2));
  ASSERT_TRUE(schedule.has_value());
  ScheduleCosts costs = costs_of(split(1, 1, 1));
  costs.sequential = true;
  const Expected<ScheduleTiming> timing = time_schedule(*schedule, costs);
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->makespan.count(), 2 * 63);
}

// DualPipe's README and its issue 15 count the 1F1B bubble of p = 8, m = 20, F = 1, B = 2 as
// (p-1)(F+B) = 21 of 60 busy.
TEST(Golden, DualPipeTableRow) {
  const Expected<Schedule> schedule = make_schedule("1f1b", sized(8, 20));
  ASSERT_TRUE(schedule.has_value());
  const Expected<ScheduleTiming> timing = time_schedule(*schedule, {});
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->bubble[0].count(), 21);
  EXPECT_EQ(timing->busy[0].count(), 60);
}

}  // namespace
}  // namespace foretrain
