#include "foretrain/schedule.h"

#include <gtest/gtest.h>

/// Rule: a schedule is its published list, action by action.
namespace foretrain {
namespace {

std::string csv_of(std::string_view name, const ScheduleSize& size) {
  const Expected<Schedule> schedule = make_schedule(name, size);
  return schedule ? schedule_csv(*schedule) : "refused: " + schedule.error().list[0].message;
}

// The list PyTorch prints for its interleaved schedule (pull request 172833), communication left
// out.
TEST(Lists, InterleavedIsThePrintedOne) {
  EXPECT_EQ(csv_of("interleaved", {.pp = 2, .micro_batches = 4, .vpp = 2}),
            "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n");
}

// By hand from the definition of PipeDream-flush: 3, 2, 1, 0 forwards ahead, then pairs.
TEST(Lists, OneForwardOneBackwardByDefinition) {
  EXPECT_EQ(csv_of("1f1b", {.pp = 4, .micro_batches = 8}),
            "0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7\n"
            "1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7\n"
            "2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7\n"
            "3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7\n");
}

// Fewer micro-batches than ranks: the warm-up is capped at m.
TEST(Lists, OneForwardOneBackwardWithFewMicroBatches) {
  EXPECT_EQ(csv_of("1f1b", {.pp = 4, .micro_batches = 1}), "0F0,0B0\n1F0,1B0\n2F0,2B0\n3F0,3B0\n");
  EXPECT_EQ(csv_of("1f1b", {.pp = 3, .micro_batches = 2}),
            "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n2F0,2B0,2F1,2B1\n");
}

TEST(Lists, GpipeRunsBackwardsInOrder) {
  EXPECT_EQ(csv_of("gpipe", {.pp = 2, .micro_batches = 3}),
            "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1F2,1B0,1B1,1B2\n");
}

// A group of m and a short last group (5 = 3 + 2), by hand: p = 2, v = 2, warm-up g + 2 (p-1-r).
TEST(Lists, InterleavedGroups) {
  EXPECT_EQ(csv_of("interleaved", {.pp = 2, .micro_batches = 5, .vpp = 2, .group = 3}),
            "0F0,0F1,0F2,2F0,2F1,2F2,2B0,0F3,2B1,0F4,2B2,2F3,0B0,2F4,0B1,0B2,2B3,2B4,0B3,0B4\n"
            "1F0,1F1,1F2,3F0,3B0,3F1,3B1,3F2,3B2,1F3,1B0,1F4,1B1,3F3,1B2,3F4,3B3,3B4,1B3,1B4\n");
}

// One chunk a rank leaves the warm-up of 2 (p-1-r): eager 1F1B's window.
TEST(Lists, InterleavedWithOneChunk) {
  EXPECT_EQ(csv_of("interleaved", {.pp = 2, .micro_batches = 4}),
            "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n");
}

TEST(Lists, OneRank) {
  EXPECT_EQ(csv_of("gpipe", {.pp = 1, .micro_batches = 2}), "0F0,0F1,0B0,0B1\n");
  EXPECT_EQ(csv_of("1f1b", {.pp = 1, .micro_batches = 2}), "0F0,0B0,0F1,0B1\n");
  EXPECT_EQ(csv_of("interleaved", {.pp = 1, .micro_batches = 2, .vpp = 2}),
            "0F0,1F0,1B0,0F1,0B0,1F1,1B1,0B1\n");
}

// What is printed reads back, and nothing else does.
TEST(Action, PrintsAndParses) {
  for (const ActionKind kind : {ActionKind::kForward,
                                ActionKind::kBackward,
                                ActionKind::kInputGradient,
                                ActionKind::kWeightGradient}) {
    const Action action{12, kind, 345};
    EXPECT_EQ(parse_action(to_string(action)), action);
  }
  EXPECT_EQ(to_string(Action{2, ActionKind::kForward, 0}), "2F0");
  for (const char* text : {"",
                           "F",
                           "2F",
                           "F0",
                           "2X0",
                           "2F0 ",
                           " 2F0",
                           "-1F0",
                           "2F-1",
                           "2F0B1",
                           "99999999999F0",
                           "2f0",
                           "1F0.",
                           "1F0@2"}) {
    EXPECT_EQ(parse_action(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace foretrain
