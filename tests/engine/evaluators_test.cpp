#include "tests/support/account_parts.h"
#include "tests/support/cold_oracle.h"
#include "tests/support/random_program.h"
#include "tests/support/seeds.h"

#include "foretrain/engine.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

/// Properties of all programs, on random ones: the two evaluators agree to the picosecond on
/// everything they report, and both with what the rules alone imply.
namespace foretrain {
namespace {

RandomProgramOptions every_other_stretched(std::uint64_t seed) {
  RandomProgramOptions shape;
  shape.stretches = seed % 2 == 1;
  return shape;
}

RunOptions recording(const Program& program, Evaluator evaluator) {
  RunOptions options;
  options.evaluator = evaluator;
  options.measured_steps = 3;
  options.recorded_instances.resize(program.instances.size());
  std::iota(options.recorded_instances.begin(), options.recorded_instances.end(), 0);
  return options;
}

Timeline timeline_of(const Program& program, const RunOptions& options) {
  RunResult result = run(program, options);
  EXPECT_TRUE(std::holds_alternative<Timeline>(result));
  return std::holds_alternative<Timeline>(result) ? std::get<Timeline>(result) : Timeline{};
}

auto parts(const Span& s) {
  return std::tie(s.instance, s.step, s.call, s.task, s.start, s.transfer_start, s.end);
}

void expect_identity(const RankAccount& account) {
  Duration sum = account.host + account.idle;
  sum = std::accumulate(account.busy.begin(), account.busy.end(), sum);
  sum = std::accumulate(account.exposed.begin(), account.exposed.end(), sum);
  EXPECT_EQ(sum.count(), account.window.count());
  EXPECT_GE(account.idle.count(), 0);
}

void expect_equal(const Timeline& a, const Timeline& b) {
  EXPECT_EQ(a.step_ends, b.step_ends);
  EXPECT_EQ(a.instance_step_ends, b.instance_step_ends);
  EXPECT_EQ(a.isolated_end, b.isolated_end);
  EXPECT_EQ(a.tasks, b.tasks);
  ASSERT_EQ(a.accounts.size(), b.accounts.size());
  for (std::size_t i = 0; i < a.accounts.size(); ++i) {
    EXPECT_TRUE(parts(a.accounts[i]) == parts(b.accounts[i])) << "account of instance " << i;
  }
  ASSERT_EQ(a.spans.size(), b.spans.size());
  for (std::size_t s = 0; s < a.spans.size(); ++s) {
    ASSERT_TRUE(parts(a.spans[s]) == parts(b.spans[s])) << "span " << s;
  }
}

TEST(Evaluators, AgreeOnEverything) {
  for (std::uint64_t seed = 0; seed < test::seeds(600); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Program program = random_program(seed, every_other_stretched(seed));
    ASSERT_EQ(program_faults(program), std::vector<std::string>{});
    const Timeline relaxed = timeline_of(program, recording(program, Evaluator::kDataflow));
    const Timeline events = timeline_of(program, recording(program, Evaluator::kEvent));
    expect_equal(relaxed, events);
    for (const RankAccount& account : relaxed.accounts) {
      expect_identity(account);
    }
    if (HasFailure()) {
      return;
    }
  }
}

TEST(Evaluators, ColdStepTakesTheLeastTimesTheRulesAllow) {
  for (std::uint64_t seed = 0; seed < test::seeds(600); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Program program = random_program(seed, every_other_stretched(seed));
    const ColdOracle oracle(program);
    RunOptions options;
    options.warm_up_limit = 1;
    const Timeline timeline = timeline_of(program, options);
    ASSERT_EQ(timeline.isolated_end.time_since_epoch().count(), oracle.latest());
    ASSERT_GE(oracle.latest(), oracle.busiest_stream());
    for (std::size_t i = 0; i < program.instances.size(); ++i) {
      const auto& list = program.templates[program.instances[i].template_index];
      ASSERT_EQ(timeline.instance_step_ends[i][0].time_since_epoch().count(),
                oracle.ends(static_cast<std::int32_t>(i))[list.step_end_task]);
    }
  }
}

TEST(Evaluators, TasksOfAStreamNeverOverlapAndAllRun) {
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    const Program program = random_program(seed);
    const Timeline timeline = timeline_of(program, recording(program, Evaluator::kDataflow));
    std::int64_t tasks = 0;
    std::vector<std::vector<Instant>> clocks(program.instances.size(),
                                             std::vector<Instant>(program.streams.size()));
    std::vector<Span> spans = timeline.spans;
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return std::tie(a.instance, a.step, a.call, a.task) <
             std::tie(b.instance, b.step, b.call, b.task);
    });
    for (const Span& span : spans) {
      const auto& list = program.templates[program.instances[span.instance].template_index];
      const Task& task = program.blocks[list.calls[span.call].block].tasks[span.task];
      Instant& clock = clocks[span.instance][task.stream];
      ASSERT_LE(clock, span.start);
      ASSERT_LE(span.start, span.transfer_start);
      ASSERT_LE(span.transfer_start, span.end);
      clock = span.end;
    }
    for (const Instance& instance : program.instances) {
      tasks += program.templates[instance.template_index].task_count;
    }
    ASSERT_EQ(static_cast<std::int64_t>(spans.size()), 3 * tasks);
  }
}

TEST(Evaluators, FoldedProgramGivesEveryRankItsOwnNumbers) {
  std::size_t ranks = 0;
  std::size_t classes = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(600); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgramOptions shape = every_other_stretched(seed);
    shape.slow_share = 1 + static_cast<int>(seed % 20);
    shape.rotated_peers = seed % 3 == 0;
    const Program program = random_program(seed, shape);
    const FoldedProgram folded = fold(program);
    ASSERT_EQ(program_faults(folded.program), std::vector<std::string>{});
    RunOptions options;
    options.measured_steps = 2;
    const Timeline full = timeline_of(program, options);
    const Timeline small = timeline_of(folded.program, options);
    ASSERT_EQ(full.step_ends, small.step_ends);
    ASSERT_EQ(full.isolated_end, small.isolated_end);
    for (std::size_t i = 0; i < program.instances.size(); ++i) {
      const std::int32_t own = folded.class_of[i];
      ASSERT_EQ(full.instance_step_ends[i], small.instance_step_ends[own]);
      ASSERT_TRUE(parts(full.accounts[i]) == parts(small.accounts[own])) << "instance " << i;
    }
    ranks += program.instances.size();
    classes += folded.program.instances.size();
  }
  // The property would hold of a fold that does nothing; this one does something.
  EXPECT_LT(classes * 4, ranks * 3);
}

TEST(Evaluators, SlowerIsNeverEarlier) {
  for (std::uint64_t seed = 0; seed < test::seeds(300); ++seed) {
    Program program = random_program(seed);
    RunOptions options;
    options.warm_up_limit = 1;
    const Timeline before = timeline_of(program, options);
    Draw draw(seed + 1000000);
    auto& set =
        program.factor_sets[draw.below(static_cast<std::int64_t>(program.factor_sets.size()))];
    set.base[draw.below(kResourceCount)] += draw.below(kUnitFactor);
    for (Template& list : program.templates) {
      Call& call = list.calls[draw.below(static_cast<std::int64_t>(list.calls.size()))];
      call.kernel_stretch += draw.below(kUnitFactor);
      call.transfer_stretch += draw.below(kUnitFactor);
    }
    const Timeline after = timeline_of(program, options);
    for (std::size_t step = 0; step < before.step_ends.size(); ++step) {
      ASSERT_LE(before.step_ends[step], after.step_ends[step]) << "seed " << seed;
    }
    ASSERT_LE(before.isolated_end, after.isolated_end);
  }
}

Program stretched(const Program& program, std::int64_t by) {
  Program result = program;
  for (Block& block : result.blocks) {
    for (Task& task : block.tasks) {
      for (std::int64_t& work : task.work) {
        work *= by;
      }
      task.launch_offset *= by;
    }
  }
  for (Template& list : result.templates) {
    for (Call& call : list.calls) {
      call.launch_offset *= by;
    }
  }
  return result;
}

TEST(Evaluators, AllDurationsTimesKMakeAllTimesTimesK) {
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    const Program program = without_factors(random_program(seed));
    const Timeline once = timeline_of(program, {});
    const Timeline often = timeline_of(stretched(program, 1000), {});
    ASSERT_EQ(once.step_ends.size(), often.step_ends.size());
    for (std::size_t step = 0; step < once.step_ends.size(); ++step) {
      ASSERT_EQ(once.step_ends[step].time_since_epoch() * 1000,
                often.step_ends[step].time_since_epoch());
    }
    for (std::size_t i = 0; i < program.instances.size(); ++i) {
      ASSERT_EQ(once.accounts[i].idle * 1000, often.accounts[i].idle);
    }
  }
}

TEST(Evaluators, SeeTheSameDeadlocks) {
  std::size_t deadlocks = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(300); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgramOptions shape;
    shape.cross_dependencies = false;
    shape.shuffle_calls = true;
    const Program program = random_program(seed, shape);
    ASSERT_EQ(program_faults(program), std::vector<std::string>{});
    const RunResult relaxed = run(program, recording(program, Evaluator::kDataflow));
    const RunResult events = run(program, recording(program, Evaluator::kEvent));
    ASSERT_EQ(relaxed.index(), events.index());
    if (std::holds_alternative<Timeline>(relaxed)) {
      expect_equal(std::get<Timeline>(relaxed), std::get<Timeline>(events));
      continue;
    }
    ++deadlocks;
    const auto& a = std::get<Deadlock>(relaxed).blocked;
    const auto& b = std::get<Deadlock>(events).blocked;
    ASSERT_EQ(a.size(), b.size());
    ASSERT_FALSE(a.empty());
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(std::tie(a[i].instance, a[i].task, a[i].waiting_for),
                std::tie(b[i].instance, b[i].task, b[i].waiting_for));
      ASSERT_FALSE(a[i].waiting_for.empty());
    }
  }
  EXPECT_GT(deadlocks, test::seeds(20));
  EXPECT_LT(deadlocks, 280);
}

}  // namespace
}  // namespace foretrain
