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

// Breadth first, as PyTorch runs it: the backwards are the forwards from behind. By hand.
TEST(Lists, LoopedBfs) {
  EXPECT_EQ(csv_of("looped-bfs", {.pp = 2, .micro_batches = 2, .vpp = 2}),
            "0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0\n1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0\n");
}

// By hand: 2 (p-1-r) forwards ahead, and one more before overlapped units begin.
TEST(Lists, EagerAndOverlapped) {
  EXPECT_EQ(csv_of("eager-1f1b", {.pp = 2, .micro_batches = 4}),
            "0F0,0F1,0F2,0B0,0F3,0B1,0B2,0B3\n1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n");
  EXPECT_EQ(csv_of("1f1b-overlap", {.pp = 2, .micro_batches = 4}),
            "0F0,0F1,0F2,(0F3;0B0)OVERLAP_F_B,0B1,0B2,0B3\n"
            "1F0,(1F1;1B0)OVERLAP_F_B,(1F2;1B1)OVERLAP_F_B,(1F3;1B2)OVERLAP_F_B,1B3\n");
}

// Megatron's combined 1F1B without a pipeline: the forward of a micro-batch hides the backward of
// the one before.
TEST(Lists, InterleavedOverlapOnOneRank) {
  EXPECT_EQ(csv_of("interleaved-overlap", {.pp = 1, .micro_batches = 3}),
            "0F0,(0F1;0B0)OVERLAP_F_B,(0F2;0B1)OVERLAP_F_B,0B2\n");
}

// Three micro-batches on four ranks are one round of three, by hand: the warm-up is 3 + 2 (3 - r).
TEST(Lists, InterleavedPyTorchWithFewMicroBatches) {
  EXPECT_EQ(csv_of("interleaved-pytorch", {.pp = 4, .micro_batches = 3, .vpp = 2}),
            "0F0,0F1,0F2,4F0,4F1,4F2,4B0,4B1,4B2,0B0,0B1,0B2\n"
            "1F0,1F1,1F2,5F0,5F1,5F2,5B0,5B1,5B2,1B0,1B1,1B2\n"
            "2F0,2F1,2F2,6F0,6F1,6F2,6B0,6B1,6B2,2B0,2B1,2B2\n"
            "3F0,3F1,3F2,7F0,7B0,7F1,7B1,7F2,7B2,3B0,3B1,3B2\n");
}

// The list of the ZB-H1 definition: weight gradients lag r backwards behind.
TEST(Lists, ZbH1) {
  EXPECT_EQ(csv_of("zb-h1", {.pp = 3, .micro_batches = 5}),
            "0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0F4,0I2,0W2,0I3,0W3,0I4,0W4\n"
            "1F0,1F1,1I0,1F2,1I1,1W0,1F3,1I2,1W1,1F4,1I3,1W2,1I4,1W3,1W4\n"
            "2F0,2I0,2F1,2I1,2F2,2I2,2W0,2F3,2I3,2W1,2F4,2I4,2W2,2W3,2W4\n");
}

// By hand: 2 (p-r) - 1 forwards, weight gradients 2r behind.
TEST(Lists, ZbH2) {
  EXPECT_EQ(csv_of("zb-h2", {.pp = 2, .micro_batches = 4}),
            "0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3\n"
            "1F0,1I0,1F1,1I1,1F2,1I2,1W0,1F3,1I3,1W1,1W2,1W3\n");
}

// By hand from the seven steps. With one micro-batch what belongs to the other two is left out.
TEST(Lists, ZbV) {
  EXPECT_EQ(csv_of("zb-v", {.pp = 2, .micro_batches = 3, .vpp = 2}),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,3I1,3W1,0I0,0W0,3F2,3I2,3W2,0I1,0W1,0I2,0W2\n"
            "1F0,2F0,1F1,2F1,2I0,2W0,1F2,1I0,1W0,2F2,2I1,2W1,1I1,2I2,1I2,1W1,2W2,1W2\n");
  EXPECT_EQ(csv_of("zb-v", {.pp = 2, .micro_batches = 1, .vpp = 2}),
            "0F0,3F0,3I0,3W0,0I0,0W0\n1F0,2F0,2I0,2W0,1I0,1W0\n");
}

// As DeepSeek's step() runs it for two ranks and four micro-batches.
TEST(Lists, DualPipeV) {
  EXPECT_EQ(csv_of("dualpipev", {.pp = 2, .micro_batches = 4, .vpp = 2}),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,"
            "(3F3;0B1)OVERLAP_F_B,3B3,0I2,0W2,0I3,0W3\n"
            "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,"
            "(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n");
}

// The same in both directions. Ranks 3 and 2 mirror ranks 0 and 1: the other copy, and
// micro-batches 4 to 7 for 0 to 3.
TEST(Lists, DualPipe) {
  EXPECT_EQ(csv_of("dualpipe", {.pp = 4, .micro_batches = 8}),
            "0F0@0,0F1@0,0F2@0,3F4@1,3I4@1,3W4@1,3F5@1,(0F3@0;3B5@1)OVERLAP_F_B,"
            "(3F6@1;0B0@0)OVERLAP_F_B,3B6@1,(3F7@1;0B1@0)OVERLAP_F_B,3B7@1,0I2@0,0W2@0,0I3@0,"
            "0W3@0\n"
            "1F0@0,2F4@1,1F1@0,2F5@1,1F2@0,2B4@1,(2F6@1;1B0@0)OVERLAP_F_B,"
            "(1F3@0;2B5@1)OVERLAP_F_B,(2F7@1;1B1@0)OVERLAP_F_B,2B6@1,1B2@0,2I7@1,1I3@0,2W7@1,"
            "1W3@0\n"
            "1F4@1,2F0@0,1F5@1,2F1@0,1F6@1,2B0@0,(2F2@0;1B4@1)OVERLAP_F_B,"
            "(1F7@1;2B1@0)OVERLAP_F_B,(2F3@0;1B5@1)OVERLAP_F_B,2B2@0,1B6@1,2I3@0,1I7@1,2W3@0,"
            "1W7@1\n"
            "0F4@1,0F5@1,0F6@1,3F0@0,3I0@0,3W0@0,3F1@0,(0F7@1;3B1@0)OVERLAP_F_B,"
            "(3F2@0;0B4@1)OVERLAP_F_B,3B2@0,(3F3@0;0B5@1)OVERLAP_F_B,3B3@0,0I6@1,0W6@1,0I7@1,"
            "0W7@1\n");
}

// By hand: p - 2 - r + k slices ahead, and a micro-batch's last slice goes back first.
TEST(Lists, Seq1F1B) {
  EXPECT_EQ(csv_of("seq1f1b", {.pp = 2, .micro_batches = 2, .slices = 2}),
            "0F0.0,0F0.1,0F1.0,0B0.1,0F1.1,0B0.0,0B1.1,0B1.0\n"
            "1F0.0,1F0.1,1B0.1,1F1.0,1B0.0,1F1.1,1B1.1,1B1.0\n");
}

// By hand, on the one rank there is. V-Half: each micro-batch takes slots 0, 1, 2 and 4 of a period
// of six, 3 and 5 are left to the weight gradients; after the last forward of stage 0 the last
// gradient moves up to slot 3. V-Min: slots 0 to 3, nothing to move.
TEST(Lists, VHalfAndVMinOnOneRank) {
  EXPECT_EQ(csv_of("v-half", {.pp = 1, .micro_batches = 2, .vpp = 2}),
            "0F0,1F0,1I0,1W0,0I0,0W0,0F1,1F1,1I1,0I1,1W1,0W1\n");
  EXPECT_EQ(csv_of("v-min", {.pp = 1, .micro_batches = 2, .vpp = 2}),
            "0F0,1F0,1I0,0I0,1W0,0W0,0F1,1F1,1I1,0I1,1W1,0W1\n");
}

// The order in which their authors' planner (sail-sg, zbv_greedy.py) runs the passes; which weight
// gradient takes an idle slot is ours: first in, first out.
TEST(Lists, VHalfAndVMin) {
  EXPECT_EQ(csv_of("v-half", {.pp = 2, .micro_batches = 4, .vpp = 2}),
            "0F0,0F1,0F2,3F0,3I0,3W0,3F1,0I0,3I1,0W0,3F2,3W1,0F3,0I1,3I2,0W1,3F3,3I3,0I2,3W2,"
            "0I3,3W3,0W2,0W3\n"
            "1F0,2F0,1F1,2F1,2I0,2W0,1I0,1W0,1F2,2F2,2I1,1I1,2W1,1F3,1W1,2F3,2I2,1I2,2I3,1I3,"
            "2W2,1W2,2W3,1W3\n");
  EXPECT_EQ(csv_of("v-min", {.pp = 3, .micro_batches = 6, .vpp = 2}),
            "0F0,0F1,0F2,5F0,5I0,5W0,5F1,0I0,5I1,0W0,5W1,5F2,0F3,0I1,5I2,0W1,5W2,5F3,0F4,0I2,"
            "5I3,0W2,5W3,5F4,0F5,0I3,5I4,0W3,5W4,5F5,5I5,0I4,5W5,0W4,0I5,0W5\n"
            "1F0,1F1,4F0,4F1,4I0,4W0,1I0,1F2,1W0,4I1,4F2,4W1,1I1,1F3,1W1,4I2,4F3,4W2,1I2,1F4,"
            "1W2,4I3,4F4,4W3,1I3,1F5,1W3,4I4,4F5,4W4,1I4,4I5,1W4,4W5,1I5,1W5\n"
            "2F0,3F0,2F1,3F1,3I0,2I0,3W0,2W0,2F2,3F2,3I1,2I1,3W1,2W1,2F3,3F3,3I2,2I2,3W2,2W2,"
            "2F4,3F4,3I3,2I3,3W3,2W3,2F5,3F5,3I4,2I4,3W4,2W4,3I5,2I5,3W5,2W5\n");
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
