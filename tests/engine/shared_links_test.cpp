#include "tests/support/account_parts.h"
#include "tests/support/clock_oracle.h"
#include "tests/support/random_links.h"
#include "tests/support/seeds.h"
#include "tests/support/tiny_program.h"

#include "foretrain/engine.h"

#include <algorithm>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

/// Transfers that share links: hand-computed cases, and properties of random programs.
namespace foretrain {
namespace {

constexpr double kWidth = 100e12;  // a byte per picosecond takes a hundredth

Timeline timeline_of(const Program& program, const RunOptions& options = {}) {
  EXPECT_EQ(program_faults(program), std::vector<std::string>{});
  RunResult result = run(program, options);
  EXPECT_TRUE(std::holds_alternative<Timeline>(result));
  return std::holds_alternative<Timeline>(result) ? std::get<Timeline>(result) : Timeline{};
}

std::int64_t cold_end(const Program& program) {
  return timeline_of(program).isolated_end.time_since_epoch().count();
}

/// Two senders with a receiver each; the second begins its send `later`. What follows a send.
struct TwoSends {
  std::int64_t first = 100, second = 100, later = 50;
  std::int64_t after_first = 0, after_second = 0;

  Program on_one_link() const {
    TinyProgram tiny;
    const std::int32_t a = tiny.list({send(0, first), compute(after_first, {0})});
    const std::int32_t b =
        tiny.list({compute(later), send(0, second, {0}), compute(after_second, {1})});
    const std::int32_t sink = tiny.list({receive(0), compute(0, {0})});
    for (const std::int32_t list : {a, b, sink, sink}) {
      tiny.instance(list);
    }
    tiny.connect(0, 2);
    tiny.connect(1, 3);
    tiny.program.links = {{"wire", kWidth, 1}};
    tiny.program.instances[0].paths[0] = {{{0, 1.0}}, kWidth};
    tiny.program.instances[1].paths[0] = {{{0, 1.0}}, kWidth};
    return tiny.program;
  }
};

TEST(SharedLinks, TwoSendsHalveEachOther) {
  // 50 alone, then both at half: the first has 50 left and takes 100, the second the rest alone.
  const TwoSends plain;
  EXPECT_EQ(cold_end(plain.on_one_link()), 200);
  TwoSends first = plain;
  first.after_first = 1000;
  EXPECT_EQ(cold_end(first.on_one_link()), 1150);
}

TEST(SharedLinks, NothingIsSharedOneAfterTheOther) {
  TwoSends sends;
  sends.later = 100;
  EXPECT_EQ(cold_end(sends.on_one_link()), 200);
  sends.later = 130;
  EXPECT_EQ(cold_end(sends.on_one_link()), 230);
}

TEST(SharedLinks, WhatMovesIsToldByTheTimeAlone) {
  const Program program = TwoSends{}.on_one_link();
  RunOptions options;
  options.measured_steps = 3;
  const Timeline timeline = timeline_of(program, options);
  ASSERT_EQ(timeline.link_bytes.size(), 1U);
  EXPECT_NEAR(timeline.link_bytes[0], 3 * 200e-12 * kWidth, 1e-6);
}

TEST(SharedLinks, LatencySharesNothing) {
  Program program = TwoSends{}.on_one_link();
  // The second send is 60 of latency and 40 on the wire: it gets there when the first is gone.
  Task& task = program.blocks[3].tasks[0];
  ASSERT_EQ(task.kind, TaskKind::kSend);
  task.work[static_cast<int>(Resource::kLink)] = 40;
  task.work[static_cast<int>(Resource::kLatency)] = 60;
  EXPECT_EQ(cold_end(program), 150);
  // 40 of latency: at 90 the first has 10 left, which takes 20; the second has 60 - 10 left.
  task.work[static_cast<int>(Resource::kLink)] = 60;
  task.work[static_cast<int>(Resource::kLatency)] = 40;
  EXPECT_EQ(cold_end(program), 110 + 50);
}

/// As folding leaves a program whose transfers are free: paths, but no link on them.
TEST(SharedLinks, PathsWithoutLinksHoldNobodyUp) {
  TinyProgram tiny;
  const std::int32_t list = tiny.list({collective(kTp, 100), compute(0, {0})});
  tiny.instance(list, {0, -1});
  tiny.instance(list, {0, -1});
  tiny.program.group_paths = {{{}}, {}};
  RunOptions options;
  options.evaluator = Evaluator::kEvent;
  EXPECT_EQ(timeline_of(tiny.program, options).isolated_end.time_since_epoch().count(), 100);
}

TEST(SharedLinks, AWideLinkHoldsNobodyUp) {
  Program program = TwoSends{}.on_one_link();
  program.links[0].capacity = 2 * kWidth;
  EXPECT_EQ(cold_end(program), 150);
}

TEST(SharedLinks, ASlowedTransferMovesTheSameBytesAndAsksForLess) {
  // Kernels halve the first send: it takes half the wire for 200, however much is left to it.
  // Beside it the second moves 75 of its 100 in the other half, and the rest alone.
  Program program = TwoSends{}.on_one_link();
  program.templates[0].calls[0].transfer_stretch = 2 * kUnitFactor;
  ASSERT_EQ(program.blocks[program.templates[0].calls[0].block].tasks[0].kind, TaskKind::kSend);
  EXPECT_EQ(cold_end(program), 225);
  const Timeline timeline = timeline_of(program);
  EXPECT_NEAR(timeline.link_bytes[0], 200e-12 * kWidth, 1e-6);
}

TEST(SharedLinks, ARingAndASendShareByTheirWeights) {
  // Two ranks reduce for 100; one of them sends for 100 beside it, over the same wire, of which the
  // ring takes but half when it runs alone.
  TinyProgram tiny;
  const std::int32_t a = tiny.list({collective(kTp, 100), send(0, 100), compute(0, {0, 1})});
  const std::int32_t b = tiny.list({collective(kTp, 100), compute(0, {0})});
  const std::int32_t sink = tiny.list({receive(0), compute(0, {0})});
  tiny.instance(a, {0, -1});
  tiny.instance(b, {0, -1});
  tiny.instance(sink);
  tiny.connect(0, 2);
  tiny.program.links = {{"wire", kWidth, 1}};
  tiny.program.group_paths = {{{{{0, 0.5}}, kWidth}}, {}};
  tiny.program.instances[0].paths[0] = {{{0, 1.0}}, kWidth};
  // Equal rates r: r/2 + r = 1, so both at 2/3 of their limits: both end at 150.
  EXPECT_EQ(cold_end(tiny.program), 150);
  // A ring that only takes 1/4 of the wire at its limit of half the width leaves 3/4 for the send.
  tiny.program.group_paths[0][0].limit = kWidth / 2;
  EXPECT_EQ(cold_end(tiny.program), 125);  // 75 when the ring ends at 100, then 25 alone
}

Program without_links(Program program) {
  program.links.clear();
  program.group_paths.clear();
  for (Instance& instance : program.instances) {
    instance.paths = {};
  }
  return program;
}

TEST(SharedLinks, AColdStepIsWhatAClockShows) {
  std::size_t slower = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(300); ++seed) {
    const Program program = random_program_with_links(seed);
    const std::int64_t end = cold_end(program);
    const std::int64_t shown = ClockOracle(program).latest();
    // Ends are rounded up to a picosecond, on either side of a rounding of doubles.
    ASSERT_NEAR(static_cast<double>(end), static_cast<double>(shown), 2.0) << "seed " << seed;
    slower += ClockOracle(without_links(program)).latest() < shown ? 1 : 0;
  }
  EXPECT_GT(slower, test::seeds(100));
}

RunOptions of_steps(int steps) {
  RunOptions options;
  options.measured_steps = steps;
  return options;
}

TEST(SharedLinks, FoldedProgramGivesEveryRankItsOwnNumbers) {
  std::size_t ranks = 0, classes = 0, slower = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(600); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgramOptions shape;
    shape.slow_share = 1 + static_cast<int>(seed % 20);
    shape.rotated_peers = seed % 3 == 0;
    const Program program = random_program_with_links(seed, shape);
    const FoldedProgram folded = fold(program);
    const Timeline full = timeline_of(program, of_steps(2));
    const Timeline small = timeline_of(folded.program, of_steps(2));
    ASSERT_EQ(full.step_ends, small.step_ends);
    ASSERT_EQ(full.isolated_end, small.isolated_end);
    for (std::size_t i = 0; i < program.instances.size(); ++i) {
      const std::int32_t own = folded.class_of[i];
      ASSERT_EQ(full.instance_step_ends[i], small.instance_step_ends[own]);
      ASSERT_TRUE(parts(full.accounts[i]) == parts(small.accounts[own])) << "instance " << i;
    }
    double sum = 0, of_classes = 0;
    for (std::size_t link = 0; link < program.links.size(); ++link) {
      sum += full.link_bytes[link];
    }
    for (std::size_t link = 0; link < folded.program.links.size(); ++link) {
      of_classes +=
          small.link_bytes[link] * static_cast<double>(folded.program.links[link].multiplicity);
    }
    ASSERT_NEAR(sum, of_classes, 1e-9 * sum);
    ranks += program.instances.size();
    classes += folded.program.instances.size();
    const Timeline apart = timeline_of(without_links(program), of_steps(2));
    slower += apart.isolated_end < full.isolated_end ? 1 : 0;
  }
  // The property would hold of a fold that does nothing and of links that never fill.
  EXPECT_LT(classes * 5, ranks * 4);
  EXPECT_GT(slower, test::seeds(200));
}

TEST(SharedLinks, LinksWideEnoughChangeNothing) {
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program program = random_program_with_links(seed);
    for (SharedLink& link : program.links) {
      link.capacity *= 1000;
    }
    const Timeline shared = timeline_of(program, of_steps(2));
    const Timeline apart = timeline_of(without_links(program), of_steps(2));
    ASSERT_EQ(shared.step_ends, apart.step_ends);
    ASSERT_EQ(shared.isolated_end, apart.isolated_end);
  }
}

TEST(SharedLinks, NoLinkCarriesMoreThanItCan) {
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    const Program program = random_program_with_links(seed);
    RunOptions options;
    options.warm_up_limit = 1;
    const Timeline timeline = timeline_of(program, options);
    for (std::size_t link = 0; link < program.links.size(); ++link) {
      const double seconds =
          1e-12 * static_cast<double>(timeline.isolated_end.time_since_epoch().count());
      ASSERT_LE(timeline.link_bytes[link], program.links[link].capacity * seconds * (1 + 1e-9))
          << "seed " << seed;
    }
  }
}

TEST(SharedLinks, TwoRunsGiveTheSameBytes) {
  for (std::uint64_t seed = 0; seed < test::seeds(50); ++seed) {
    const Program program = random_program_with_links(seed);
    const Timeline once = timeline_of(program);
    const Timeline again = timeline_of(program);
    ASSERT_EQ(once.instance_step_ends, again.instance_step_ends);
    ASSERT_EQ(once.link_bytes, again.link_bytes);
  }
}

TEST(SharedLinks, DeadlocksAreSeenAsWithout) {
  std::size_t deadlocks = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgramOptions shape;
    shape.cross_dependencies = false;
    shape.shuffle_calls = true;
    const RunResult shared = run(random_program_with_links(seed, shape), {});
    const RunResult apart = run(random_program(seed, shape), {});
    ASSERT_EQ(shared.index(), apart.index());
    if (const auto* deadlock = std::get_if<Deadlock>(&shared)) {
      ++deadlocks;
      ASSERT_EQ(deadlock->blocked.size(), std::get<Deadlock>(apart).blocked.size());
    }
  }
  EXPECT_GT(deadlocks, test::seeds(10));
}

TEST(SharedLinks, FaultsAreNamed) {
  Program program = TwoSends{}.on_one_link();
  program.links[0].capacity = 0;
  program.instances[0].paths[0].uses[0].link = 7;
  program.instances[1].paths[0].limit = 0;
  program.group_paths.resize(1);
  EXPECT_EQ(program_faults(program).size(), 4U);
}

}  // namespace
}  // namespace foretrain
