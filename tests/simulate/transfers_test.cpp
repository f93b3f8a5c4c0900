#include "tests/support/pipelines.h"

#include <set>

#include <gtest/gtest.h>

/// Rule: transfers that block, meet or share a stream cost what a second evaluator, which walks the
/// lists rank by rank, says they cost; and hang where it says they hang.
namespace foretrain {
namespace {

using test::pipeline_text;
using test::PipelineSize;
using test::read_with;

constexpr const char* kCosts = R"({"model": "stated", "forward": "10 ms", "backward": "21 ms",
    "dgrad": "12 ms", "wgrad": "8 ms", "p2p": "1 ms"})";

StepReport run(const std::string& schedule,
               const PipelineSize& size,
               const std::string& keys,
               bool blocking) {
  const Scenario scenario = read_with(pipeline_text(schedule, size, kCosts, keys),
                                      {blocking ? "overlap.pp=false" : "overlap.pp=true"});
  return test::report_of(scenario);
}

Duration ms(std::int64_t value) {
  return Duration{value * 1'000'000'000};
}

ScheduleCosts stated() {
  ScheduleCosts costs;
  costs.stages = {{ms(10), ms(21), ms(12), ms(8)}};
  costs.p2p = ms(1);
  return costs;
}

class Transfers : public testing::TestWithParam<ScheduleEntry> {};

TEST_P(Transfers, BlockingRendezvousIsThatOfTheLists) {
  for (const PipelineSize& size : test::sizes_of(GetParam())) {
    for (const bool batched : {true, false}) {
      SCOPED_TRACE("pp " + std::to_string(size.pp) + " m " + std::to_string(size.micro_batches) +
                   (batched ? " batched" : ""));
      ScheduleCosts costs = stated();
      costs.mode = PointToPoint::kRendezvous;
      costs.batched = batched;
      const std::string keys =
          std::string(R"(, "p2p": "rendezvous", "batched": )") + (batched ? "true" : "false");
      const StepReport report = run(std::string(GetParam().name), size, keys, true);
      const Scenario scenario =
          read_with(pipeline_text(std::string(GetParam().name), size, kCosts), {});
      const Expected<Schedule> schedule = schedule_of(scenario);
      ASSERT_TRUE(schedule.has_value());
      const bool hangs = find_deadlock(*schedule, costs).has_value();
      ASSERT_EQ(report.deadlock, hangs);
      if (!hangs) {
        EXPECT_EQ(report.isolated_step, time_schedule(*schedule, costs)->makespan);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table,
                         Transfers,
                         testing::ValuesIn(schedule_table().begin(), schedule_table().end()),
                         test::entry_name);

// Eager sends and receives posted early cost a window of 1F1B 2 c [(p - 1)(1 + m / p) - 1].
TEST(Transfers, OneForwardOneBackwardExposesItsLatency) {
  EXPECT_EQ(run("1f1b", {4, 8}, "", false).isolated_step, ms(11 * 31 + 2 * (3 * 3 - 1)));
  EXPECT_EQ(run("eager-1f1b", {4, 8}, "", false).isolated_step, ms(11 * 31 + 2 * 3));
}

// A rank that waits for its sends loses one more transfer in every round trip than one that does
// not; batched pairs of an asynchronous rendezvous hide it again.
TEST(Transfers, WhatEachSemanticsCosts) {
  const auto step = [](const std::string& keys, bool blocking) {
    return run("zb-h1", {4, 12}, keys, blocking).isolated_step;
  };
  const Duration eager = step("", false);
  EXPECT_EQ(step(R"(, "p2p": "rendezvous")", false), eager);
  EXPECT_GT(step("", true), eager);
  EXPECT_GT(step(R"(, "streams": "pair")", false), eager);
  EXPECT_GE(step(R"(, "streams": "shared")", false), step(R"(, "streams": "pair")", false));
  EXPECT_GT(step(R"(, "p2p": "rendezvous")", true), step("", true));
}

// A pair of ranks exchanges messages of both model copies. NCCL matches them in order, so an output
// waits until the receiver wants it; then an asynchronous rendezvous costs what eager sends do.
TEST(Transfers, RendezvousKeepsTheOrderOfThePair) {
  for (const char* schedule : {"dualpipe", "dualpipev", "zb-v", "interleaved"}) {
    const PipelineSize size{8, 24, std::string(schedule) == "dualpipe" ? 1 : 2};
    const StepReport eager = run(schedule, size, "", false);
    const StepReport meeting = run(schedule, size, R"(, "p2p": "rendezvous")", false);
    ASSERT_FALSE(meeting.deadlock) << schedule;
    EXPECT_EQ(meeting.isolated_step, eager.isolated_step) << schedule;
  }
}

// A receive posted early blocks the sends behind it on a serialised stream: with one stream for all
// and rendezvous, 1F1B hangs, and the report says who waits for whom.
TEST(Transfers, ADeadlockIsAResultThatNamesWhoWaits) {
  const StepReport report =
      run("1f1b", {3, 4}, R"(, "p2p": "rendezvous", "streams": "shared")", false);
  ASSERT_TRUE(report.deadlock);
  EXPECT_FALSE(report.blocked.empty());
  EXPECT_EQ(report.deadlock_grid,
            "deadlock after 7 of 24 actions; [ ] marks what cannot start:\n"
            "  rank 0: 0F0 0F1 0F2 [0B0] 0F3 0B1 0B2 ...   sends 0F2 to rank 1\n"
            "  rank 1: 1F0 1F1 [1B0] 1F2 1B1 1F3 ...   sends 1F1 to rank 2\n"
            "  rank 2: 2F0 2B0 [2F1] 2B1 2F2 2B2 ...   sends 2B0 to rank 1\n"
            "  circle: rank 1 sends 1F1 to rank 2, which sends 2B0 to rank 1");
}

// However many ranks run, and whichever evaluator, the story of a deadlock is the same.
TEST(Transfers, ADeadlockIsToldAlikeWithAllRanks) {
  const Scenario scenario =
      read_with(pipeline_text("1f1b", {3, 4}, kCosts, R"(, "p2p": "rendezvous", "batched": false)"),
                {"overlap.pp=false", "cluster.gpus=6", "training.global_batch_size=8"});
  SimulateOptions options;
  const StepReport folded = simulate(scenario, options)->report;
  ASSERT_TRUE(folded.deadlock);
  options.all_ranks = true;
  for (const Evaluator evaluator : {Evaluator::kDataflow, Evaluator::kEvent}) {
    options.evaluator = evaluator;
    const StepReport all = simulate(scenario, options)->report;
    EXPECT_EQ(all.deadlock_grid, folded.deadlock_grid);
    ASSERT_EQ(all.blocked.size(), folded.blocked.size());
    for (std::size_t i = 0; i < all.blocked.size(); ++i) {
      EXPECT_EQ(all.blocked[i].task, folded.blocked[i].task);
      EXPECT_EQ(all.blocked[i].waiting_for, folded.blocked[i].waiting_for);
    }
  }
}

// What is sent is named as the lists name it: the half of a backward, the copy, the slice.
TEST(Transfers, AGridNamesTheActionsOfTheLists) {
  for (const char* schedule : {"dualpipe", "zb-v", "zb-h2", "seq1f1b"}) {
    const PipelineSize size{
        4, 12, std::string(schedule) == "zb-v" ? 2 : 1, std::string(schedule) == "seq1f1b" ? 2 : 1};
    const StepReport report =
        run(schedule, size, R"(, "p2p": "rendezvous", "batched": false)", true);
    ASSERT_TRUE(report.deadlock) << schedule;
    const Expected<Schedule> lists =
        schedule_of(read_with(pipeline_text(schedule, size, kCosts), {}));
    std::set<std::string> actions;
    for (const std::vector<Action>& list : lists->ranks) {
      for (const Action& action : list) {
        actions.insert(to_string(action));
      }
    }
    int named = 0;
    for (const std::string word : {"sends ", "receives "}) {
      std::size_t at = 0;
      while ((at = report.deadlock_grid.find(word, at)) != std::string::npos) {
        at += word.size();
        const std::string action =
            report.deadlock_grid.substr(at, report.deadlock_grid.find(' ', at) - at);
        EXPECT_EQ(actions.count(action), 1U) << schedule << " has no " << action;
        ++named;
      }
    }
    EXPECT_GE(named, 2) << report.deadlock_grid;
  }
}

// Both evaluators show the same grid where transfers block one by one.
TEST(Transfers, TheGridIsThatOfTheLists) {
  ScheduleCosts costs = stated();
  costs.mode = PointToPoint::kRendezvous;
  costs.batched = false;
  const std::string keys = R"(, "p2p": "rendezvous", "batched": false)";
  for (const PipelineSize& size : {PipelineSize{2, 4},
                                   PipelineSize{3, 4},
                                   PipelineSize{4, 3},
                                   PipelineSize{3, 4, 1, 2},
                                   PipelineSize{4, 8, 1, 4}}) {
    const char* const schedule = size.slices > 1 ? "seq1f1b" : "1f1b";
    const StepReport report = run(schedule, size, keys, true);
    ASSERT_TRUE(report.deadlock);
    const Expected<Schedule> lists =
        schedule_of(read_with(pipeline_text(schedule, size, kCosts), {}));
    EXPECT_EQ(report.deadlock_grid, find_deadlock(*lists, costs));
  }
}

}  // namespace
}  // namespace foretrain
