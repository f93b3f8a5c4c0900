#include "tests/support/pipelines.h"

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

/// The actions that a grid marks.
std::vector<std::string> marks(const std::string& grid) {
  std::vector<std::string> marked;
  for (std::size_t at = grid.find(": "); (at = grid.find('[', at)) != std::string::npos; ++at) {
    marked.push_back(grid.substr(at, grid.find(']', at) - at));
  }
  return marked;
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
      if (hangs) {
        EXPECT_EQ(marks(report.deadlock_grid), marks(*find_deadlock(*schedule, costs)));
      } else {
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

// A receive posted early blocks the sends behind it on a serialised stream: with one stream for all
// and rendezvous, 1F1B hangs, and the report says who waits for whom.
TEST(Transfers, ADeadlockIsAResultThatNamesWhoWaits) {
  const StepReport report =
      run("1f1b", {4, 8}, R"(, "p2p": "rendezvous", "streams": "shared")", false);
  ASSERT_TRUE(report.deadlock);
  EXPECT_FALSE(report.blocked.empty());
  EXPECT_NE(report.deadlock_grid.find("[ ] marks what cannot start"), std::string::npos);
  EXPECT_NE(report.deadlock_grid.find("circle: rank"), std::string::npos);
}

}  // namespace
}  // namespace foretrain
