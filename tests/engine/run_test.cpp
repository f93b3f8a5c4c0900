#include "tests/support/tiny_program.h"

#include "foretrain/engine.h"

#include <string>

#include <gtest/gtest.h>

/// Every number here is computed by hand from the rules in program.h and timeline.h; each test runs
/// on both evaluators.
namespace foretrain {
namespace {

class Run : public testing::TestWithParam<Evaluator> {
 protected:
  RunResult result_of(const Program& program, int measured_steps = 1) {
    EXPECT_EQ(program_faults(program), std::vector<std::string>{});
    RunOptions options;
    options.evaluator = GetParam();
    options.measured_steps = measured_steps;
    for (std::size_t i = 0; i < program.instances.size(); ++i) {
      options.recorded_instances.push_back(static_cast<std::int32_t>(i));
    }
    return run(program, options);
  }

  Timeline run_all(const Program& program, int measured_steps = 1) {
    RunResult result = result_of(program, measured_steps);
    EXPECT_TRUE(std::holds_alternative<Timeline>(result));
    return std::get<Timeline>(result);
  }
};

std::int64_t period(const Timeline& timeline) {
  return (timeline.step_ends[1] - timeline.step_ends[0]).count();
}

std::int64_t since_window(const Timeline& timeline, const Span& span, Instant at) {
  return (at - timeline.instance_step_ends[span.instance][0]).count();
}

const Span& span_of(const Timeline& timeline, std::int32_t instance, std::int32_t call) {
  for (const Span& span : timeline.spans) {
    if (span.instance == instance && span.call == call) {
      return span;
    }
  }
  ADD_FAILURE() << "no span of instance " << instance << " call " << call;
  return timeline.spans.front();
}

void expect_identity(const Timeline& timeline) {
  for (const RankAccount& account : timeline.accounts) {
    Duration sum = account.host + account.idle;
    for (const Duration& part : account.busy) {
      sum += part;
    }
    for (const Duration& part : account.exposed) {
      sum += part;
    }
    EXPECT_EQ(sum.count(), account.window.count());
  }
}

TEST_P(Run, StreamRunsItsTasksInOrder) {
  TinyProgram tiny;
  tiny.instance(tiny.list({compute(10), compute(7), compute(5)}));
  const Timeline timeline = run_all(tiny.program);
  EXPECT_EQ(timeline.isolated_end.time_since_epoch().count(), 22);
  EXPECT_EQ(period(timeline), 22);
  EXPECT_EQ(timeline.accounts[0].busy[0].count(), 22);
  EXPECT_EQ(since_window(timeline, timeline.spans[1], timeline.spans[1].start), 10);
  expect_identity(timeline);
}

TEST_P(Run, GapBehindATransferIsExposed) {
  // compute 10 | tp 6 (10..16) | compute 4 (16..20)
  TinyProgram tiny;
  tiny.instance(tiny.list({compute(10), collective(kTp, 6, {0}), compute(4, {1})}), {0, -1});
  const Timeline timeline = run_all(tiny.program);
  EXPECT_EQ(period(timeline), 20);
  EXPECT_EQ(timeline.accounts[0].exposed[0].count(), 6);
  EXPECT_EQ(timeline.accounts[0].idle.count(), 0);
  EXPECT_EQ(timeline.accounts[0].transfer[0].count(), 6);
  expect_identity(timeline);
}

TEST_P(Run, OnlyThePartOfATransferThatIsWaitedForIsExposed) {
  // compute 10 | tp 6 (10..16) beside compute 4 (10..14) | compute 4 (16..20): 2 exposed
  TinyProgram tiny;
  tiny.instance(tiny.list({compute(10), collective(kTp, 6, {0}), compute(4), compute(4, {1})}),
                {0, -1});
  const Timeline timeline = run_all(tiny.program);
  EXPECT_EQ(period(timeline), 20);
  EXPECT_EQ(timeline.accounts[0].exposed[0].count(), 2);
  EXPECT_EQ(timeline.accounts[0].transfer[0].count(), 6);
  expect_identity(timeline);
}

TEST_P(Run, WaitingForALateMemberIsIdleNotExposed) {
  // Instance 0 computes 10, instance 1 (factor 3/2) 15; tp 6 from 15 to 21; compute 4 or 6.
  TinyProgram tiny;
  const std::int32_t list = tiny.list({compute(10), collective(kTp, 6, {0}), compute(4, {1})});
  tiny.instance(list, {0, -1});
  const std::int32_t slow = tiny.instance(list, {0, -1});
  tiny.program.instances[slow].factor_set = tiny.slowed(Resource::kTensor, 3, 2);
  const Timeline timeline = run_all(tiny.program);
  // The slow one never waits: its period, hence everybody's, is 15 + 6 + 6.
  EXPECT_EQ(period(timeline), 27);
  EXPECT_EQ(timeline.accounts[0].window.count(), 27);
  EXPECT_EQ(timeline.accounts[0].exposed[0].count(), 6);
  // The fast one ends 2 earlier each step, so it waits 2 + 5 for the slow one.
  EXPECT_EQ(timeline.accounts[0].idle.count(), 7);
  EXPECT_EQ(timeline.accounts[0].member_wait[0].count(), 7);
  EXPECT_EQ(timeline.accounts[1].idle.count(), 0);
  EXPECT_EQ(timeline.accounts[1].member_wait[0].count(), 0);
  const Span& span = span_of(timeline, 0, 1);
  EXPECT_EQ((span.transfer_start - span.start).count(), 7);
  EXPECT_EQ((span.end - span.transfer_start).count(), 6);
  expect_identity(timeline);
}

TEST_P(Run, CollectiveTakesTheLongestDurationOfItsMembers) {
  TinyProgram tiny;
  const std::int32_t list = tiny.list({collective(kTp, 6), compute(1, {0})});
  tiny.instance(list, {0, -1});
  const std::int32_t slow = tiny.instance(list, {0, -1});
  tiny.program.instances[slow].factor_set = tiny.slowed(Resource::kLink, 2);
  const Timeline timeline = run_all(tiny.program);
  EXPECT_EQ(timeline.isolated_end.time_since_epoch().count(), 13);
}

TEST_P(Run, ReceiveEndsWithItsSend) {
  // Stage 0: compute 10, send 3 (10..13). Stage 1: receive, compute 4 (13..17).
  TinyProgram tiny;
  const std::int32_t first = tiny.list({compute(10), send(0, 3, {0})});
  const std::int32_t second = tiny.list({receive(0), compute(4, {0})});
  const std::int32_t sender = tiny.instance(first);
  tiny.connect(sender, tiny.instance(second));
  const Timeline timeline = run_all(tiny.program);
  EXPECT_EQ(timeline.isolated_end.time_since_epoch().count(), 17);
  // In the steady state stage 0 sends every 10 ps: stage 1 waits 6 of them.
  EXPECT_EQ(period(timeline), 10);
  EXPECT_EQ(timeline.accounts[1].idle.count(), 6);
  EXPECT_EQ(timeline.accounts[0].point_to_point.count(), 3);
  EXPECT_EQ(timeline.accounts[0].point_to_point_bytes, 8);
  EXPECT_EQ(timeline.accounts[1].received_bytes, 8);
  expect_identity(timeline);
}

TEST_P(Run, HostLaunchesHoldTasksBack) {
  // The host syncs on the last task; launches 0, 30 and 35 ps after: 10 | gap 20 | 4 | gap 1 | 5.
  TinyProgram tiny;
  TinyTask late = compute(4);
  late.launch = 30;
  TinyTask later = compute(5);
  later.launch = 35;
  tiny.instance(tiny.list({compute(10), late, later}));
  tiny.program.templates[0].host_sync_task = 2;
  const Timeline timeline = run_all(tiny.program);
  EXPECT_EQ(timeline.isolated_end.time_since_epoch().count(), 40);
  EXPECT_EQ(period(timeline), 40);
  EXPECT_EQ(timeline.accounts[0].host.count(), 21);
  expect_identity(timeline);
}

TEST_P(Run, WithoutSyncTheHostRunsAhead) {
  TinyProgram tiny;
  TinyTask late = compute(4);
  late.launch = 30;
  tiny.instance(tiny.list({compute(10), late}));
  const Timeline timeline = run_all(tiny.program);
  EXPECT_EQ(timeline.isolated_end.time_since_epoch().count(), 34);
  EXPECT_EQ(period(timeline), 14);
}

TEST_P(Run, ParameterGatherOverlapsTheNextStep) {
  // Forward 10, backward waits for last step's gather too: forward 0..10, backward 10..30,
  // optimizer 30..31, gather 31..49. Next step: forward 31..41, gather ends at 49, backward 49..69,
  // optimizer ..70: period 39 of which 8 exposed, while one cold step ends with its gather at 49.
  TinyProgram tiny;
  TinyTask backward = compute(20);
  backward.after_previous = {3};
  TinyTask optimizer = compute(1);
  optimizer.account = 1;
  tiny.instance(tiny.list({compute(10), backward, optimizer, collective(kDp, 18, {2})}), {-1, 0});
  const Timeline timeline = run_all(tiny.program, 2);
  EXPECT_EQ(timeline.isolated_end.time_since_epoch().count(), 49);
  EXPECT_EQ(period(timeline), 39);
  EXPECT_EQ((timeline.step_ends[2] - timeline.step_ends[1]).count(), 39);
  EXPECT_EQ(timeline.accounts[0].window.count(), 78);
  EXPECT_EQ(timeline.accounts[0].exposed[1].count(), 16);
  EXPECT_EQ(timeline.accounts[0].busy[1].count(), 2);
  EXPECT_EQ(timeline.accounts[0].transfer[1].count(), 36);
  expect_identity(timeline);
}

TEST_P(Run, FactorWindowCountsMeasuredSteps) {
  TinyProgram tiny;
  const std::int32_t one = tiny.instance(tiny.list({compute(10)}));
  FactorSet set;
  set.windows.push_back({kUnitFactors, 1, 1});
  set.windows[0].factors[0] = 3 * kUnitFactor;
  tiny.program.factor_sets.push_back(set);
  tiny.program.instances[one].factor_set = 1;
  const Timeline timeline = run_all(tiny.program, 3);
  EXPECT_EQ(period(timeline), 10);
  EXPECT_EQ((timeline.step_ends[2] - timeline.step_ends[1]).count(), 30);
  EXPECT_EQ((timeline.step_ends[3] - timeline.step_ends[2]).count(), 10);
}

TEST_P(Run, DurationsRoundUpOnce) {
  // 10 ps at 4/3 and 10 ps at 1/3: 16.67 together, one rounding: 17.
  TinyProgram tiny;
  const std::int32_t one = tiny.instance(tiny.list({compute(10)}));
  tiny.program.blocks[0].tasks[0].work[1] = 10;
  FactorSet set;
  set.base[0] = kUnitFactor * 4 / 3;
  set.base[1] = kUnitFactor / 3;
  tiny.program.factor_sets.push_back(set);
  tiny.program.instances[one].factor_set = 1;
  EXPECT_EQ(period(run_all(tiny.program)), 17);
}

TEST_P(Run, InstancesOfOneTemplateMayFormAChain) {
  // Three ranks share a list that receives then sends; the first and last have their own. Taking
  // the template as one would see it wait for itself.
  TinyProgram tiny;
  const std::int32_t first = tiny.list({compute(5), send(0, 1, {0})});
  std::vector<std::int32_t> ranks = {tiny.instance(first)};
  // Odd and even hops have different message numbers: 0 in, 1 out; then 1 in, 0 out.
  const std::int32_t odd = tiny.list({receive(0), compute(5, {0}), send(1, 1, {1}, 1)});
  const std::int32_t even = tiny.list({receive(1), compute(5, {0}), send(0, 1, {1}, 1)});
  for (int hop = 0; hop < 4; ++hop) {
    ranks.push_back(tiny.instance(hop % 2 == 0 ? odd : even));
    tiny.connect(ranks[ranks.size() - 2], ranks.back(), hop == 0 ? 0 : 1, 0);
  }
  const std::int32_t last = tiny.instance(tiny.list({receive(0), compute(5, {0})}));
  tiny.connect(ranks.back(), last, 1, 0);
  const Timeline timeline = run_all(tiny.program);
  EXPECT_EQ(timeline.isolated_end.time_since_epoch().count(), 6 * 5 + 5 * 1);
}

TEST_P(Run, DeadlockNamesWhoWaitsForWhat) {
  // Both ranks receive before they send.
  TinyProgram tiny;
  const std::int32_t a = tiny.list({receive(0), compute(1, {0}), send(1, 1, {1})});
  const std::int32_t b = tiny.list({receive(1), compute(1, {0}), send(0, 1, {1})});
  const std::int32_t one = tiny.instance(a);
  tiny.connect(one, tiny.instance(b));
  const RunResult result = result_of(tiny.program);
  ASSERT_TRUE(std::holds_alternative<Deadlock>(result));
  const auto& blocked = std::get<Deadlock>(result).blocked;
  ASSERT_EQ(blocked.size(), 6U);
  EXPECT_EQ(blocked[0].task, "T1 task");
  EXPECT_EQ(blocked[0].waiting_for, "T0 task");
  EXPECT_EQ(blocked[2].rank, 0);
  EXPECT_EQ(blocked[2].waiting_for, "send of message 0 by rank 1");
  EXPECT_EQ(blocked[5].waiting_for, "send of message 1 by rank 0");
}

TEST_P(Run, CollectivesInOppositeOrderDeadlock) {
  TinyProgram tiny;
  tiny.instance(tiny.list({collective(kTp, 1), collective(kDp, 1, {0}), compute(1, {0, 1})}),
                {0, 0});
  tiny.instance(tiny.list({collective(kDp, 1), collective(kTp, 1, {0}), compute(1, {0, 1})}),
                {0, 0});
  const RunResult result = result_of(tiny.program);
  ASSERT_TRUE(std::holds_alternative<Deadlock>(result));
  EXPECT_EQ(std::get<Deadlock>(result).blocked[1].waiting_for, "tp collective 0 of rank 1");
}

INSTANTIATE_TEST_SUITE_P(Evaluators,
                         Run,
                         testing::Values(Evaluator::kDataflow, Evaluator::kEvent),
                         [](const auto& tested) {
                           return tested.param == Evaluator::kEvent ? "Event" : "Dataflow";
                         });

}  // namespace
}  // namespace foretrain
