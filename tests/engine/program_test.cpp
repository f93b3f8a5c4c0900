#include "foretrain/program.h"

#include "tests/support/random_program.h"
#include "tests/support/tiny_program.h"

#include "foretrain/engine.h"

#include <functional>
#include <numeric>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

/// dp x tp ranks that all run one list: compute, tp, compute, dp, optimizer; ranks of a tp group
/// are neighbours.
TinyProgram mesh(std::int32_t dp, std::int32_t tp) {
  TinyProgram tiny;
  const std::int32_t list = tiny.list({compute(10),
                                       collective(kTp, 4, {0}),
                                       compute(6, {1}),
                                       collective(kDp, 8, {2}),
                                       compute(1, {3})});
  for (std::int32_t rank = 0; rank < dp * tp; ++rank) {
    tiny.instance(list, {rank / tp, rank % tp});
  }
  return tiny;
}

// Ranks that cannot differ are one class.
TEST(Fold, EqualRanksAreOneClass) {
  const FoldedProgram folded = fold(mesh(4, 8).program);
  ASSERT_EQ(folded.program.instances.size(), 1U);
  EXPECT_EQ(folded.program.instances[0].multiplicity, 32);
  EXPECT_EQ(folded.program.instances[0].rank, 0);
  EXPECT_EQ(folded.program.groups[0], (std::vector<std::vector<std::int32_t>>{{0}}));
  EXPECT_EQ(program_faults(folded.program), std::vector<std::string>{});
}

// One slow rank in a dp x tp mesh, by hand: itself; its tp group; its dp group; the rest, which are
// in the tp groups of the ranks of its dp group, each of those holding one such rank.
TEST(Fold, OneSlowRankLeavesFourClasses) {
  TinyProgram tiny = mesh(4, 8);
  tiny.program.instances[19].factor_set = tiny.slowed(Resource::kTensor, 2);
  const FoldedProgram folded = fold(tiny.program);
  ASSERT_EQ(folded.program.instances.size(), 4U);
  for (std::int32_t rank = 0; rank < 32; ++rank) {
    const bool own_tp = rank / 8 == 19 / 8;
    const bool own_dp = rank % 8 == 19 % 8;
    const std::int32_t like = rank == 19 ? 19 : own_tp ? 16 : own_dp ? 3 : 0;
    EXPECT_EQ(folded.class_of[rank], folded.class_of[like]) << rank;
  }
  const auto multiplicity = [&](std::int32_t rank) {
    return folded.program.instances[folded.class_of[rank]].multiplicity;
  };
  EXPECT_EQ(multiplicity(19), 1);
  EXPECT_EQ(multiplicity(16), 7);
  EXPECT_EQ(multiplicity(3), 3);
  EXPECT_EQ(multiplicity(0), 21);
}

// Factor sets count by what they hold, not by their number.
TEST(Fold, EqualFactorSetsAreOne) {
  TinyProgram tiny = mesh(2, 2);
  tiny.program.instances[0].factor_set = tiny.slowed(Resource::kTensor, 2);
  tiny.program.instances[1].factor_set = tiny.slowed(Resource::kTensor, 2);
  tiny.program.instances[2].factor_set = tiny.slowed(Resource::kTensor, 2);
  tiny.program.instances[3].factor_set = tiny.slowed(Resource::kTensor, 2);
  EXPECT_EQ(fold(tiny.program).program.instances.size(), 1U);
}

// A group nobody meets in does not hold ranks apart.
TEST(Fold, UnusedGroupsDoNotCount) {
  TinyProgram tiny;
  const std::int32_t list = tiny.list({compute(10)});
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    tiny.instance(list, {rank / 2, 0});
  }
  tiny.program.instances[3].factor_set = tiny.slowed(Resource::kTensor, 2);
  const FoldedProgram folded = fold(tiny.program);
  EXPECT_EQ(folded.class_of, (std::vector<std::int32_t>{0, 0, 0, 1}));
}

// Stable: folding a folded program changes nothing. Multiplicities count every rank once.
TEST(Fold, IsStableAndCountsEveryRank) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Program program = random_program(seed);
    const FoldedProgram once = fold(program);
    const FoldedProgram twice = fold(once.program);
    ASSERT_EQ(twice.program.instances.size(), once.program.instances.size());
    std::int64_t ranks = 0;
    for (const Instance& instance : once.program.instances) {
      ranks += instance.multiplicity;
    }
    ASSERT_EQ(ranks, static_cast<std::int64_t>(program.instances.size()));
  }
}

std::int64_t work_on(const Program& program, std::int32_t list, std::int32_t stream) {
  std::int64_t sum = 0;
  for (const Call& call : program.templates[list].calls) {
    for (const Task& task : program.blocks[call.block].tasks) {
      if (task.stream == stream) {
        sum = std::accumulate(task.work.begin(), task.work.end(), sum);
      }
    }
  }
  return sum;
}

/// Every task of a tiny program is a call; all of them in one class.
void classify(Program& program) {
  for (Template& list : program.templates) {
    for (Call& call : list.calls) {
      call.work_class = 0;
    }
  }
}

// Three ranks with calls of 16 and 4, one with a call of 50 and one of 10: (3 x 20 + 60) / 8 = 15
// each. A call outside the class keeps its time, and so does a call without tasks on the stream.
TEST(Variants, EqualCallsCarryTheMeanOfTheirClass) {
  TinyProgram tiny;
  const std::int32_t a = tiny.list({compute(16), compute(4), collective(kTp, 4, {1}), compute(7)});
  const std::int32_t b = tiny.list({compute(50), compute(10), collective(kTp, 8, {1}), compute(9)});
  classify(tiny.program);
  for (Template& list : tiny.program.templates) {
    list.calls[2].work_class = 1;
    list.calls[3].work_class = -1;
  }
  tiny.instance(a, {0, -1});
  tiny.program.instances[0].multiplicity = 3;
  tiny.instance(b, {1, -1});
  const Program equal = with_equal_calls(tiny.program);
  EXPECT_EQ(work_on(equal, a, kCompute), 2 * 15 + 7);
  EXPECT_EQ(work_on(equal, b, kCompute), 2 * 15 + 9);
  EXPECT_EQ(work_on(equal, a, kTp), 5);  // (3 x 4 + 8) / 4
  EXPECT_EQ(work_on(equal, b, kTp), 5);
  EXPECT_EQ(program_faults(equal), std::vector<std::string>{});
}

TEST(Variants, EqualCallsStayAsTheyAre) {
  TinyProgram tiny;
  const std::int32_t a = tiny.list({compute(13), compute(13)});
  const std::int32_t b = tiny.list({compute(13)});
  classify(tiny.program);
  tiny.instance(a);
  tiny.instance(b);
  const Program equal = with_equal_calls(tiny.program);
  EXPECT_EQ(work_on(equal, a, kCompute), 26);
  EXPECT_EQ(work_on(equal, b, kCompute), 13);
}

// Rule: what calls carry counts as stretched. Kernels of 10 at 1.5 and 25: 20 each; transfers of 8
// at 1.25 and 10 carry the mean already and stay, their stretch too.
TEST(Variants, EqualCallsCarryTheMeanOfWhatIsStretched) {
  TinyProgram tiny;
  const std::int32_t a = tiny.list({compute(10), collective(kTp, 8, {0}), compute(1)});
  const std::int32_t b = tiny.list({compute(25), collective(kTp, 10, {0}), compute(1)});
  for (const std::int32_t list : {a, b}) {
    std::vector<Call>& calls = tiny.program.templates[list].calls;
    calls[0].work_class = 0;
    calls[1].work_class = 1;
    tiny.instance(list, {list, -1});
  }
  tiny.program.templates[a].calls[0].kernel_stretch = 3 * kUnitFactor / 2;
  tiny.program.templates[a].calls[1].transfer_stretch = 5 * kUnitFactor / 4;
  const Program equal = with_equal_calls(tiny.program);
  EXPECT_EQ(work_on(equal, a, kCompute), 20 + 1);
  EXPECT_EQ(work_on(equal, b, kCompute), 20 + 1);
  EXPECT_EQ(equal.templates[a].calls[0].kernel_stretch, kUnitFactor);
  EXPECT_EQ(work_on(equal, a, kTp), 8);
  EXPECT_EQ(equal.templates[a].calls[1].transfer_stretch, 5 * kUnitFactor / 4);
  EXPECT_EQ(std::get<Timeline>(run(equal, {})).isolated_end.time_since_epoch().count(), 30);
}

// A call without work takes the mean all the same: a stage without layers would have some.
TEST(Variants, AnEmptyCallTakesTheMean) {
  TinyProgram tiny;
  const std::int32_t a = tiny.list({compute(0), compute(11)});
  classify(tiny.program);
  tiny.instance(a);
  const Program equal = with_equal_calls(tiny.program);
  EXPECT_EQ(work_on(equal, a, kCompute), 10);  // two calls of 11 / 2, rounded down
}

// Free messages take no time of their own but still order sender before receiver.
TEST(Variants, FreePointToPointKeepsTheOrder) {
  TinyProgram tiny;
  const std::int32_t first = tiny.list({compute(10), send(0, 3, {0})});
  const std::int32_t second = tiny.list({receive(0), compute(4, {0})});
  const std::int32_t sender = tiny.instance(first);
  tiny.connect(sender, tiny.instance(second));
  const RunResult result = run(with_free_point_to_point(tiny.program), {});
  EXPECT_EQ(std::get<Timeline>(result).isolated_end.time_since_epoch().count(), 14);
}

TEST(Variants, WithoutFactorsNobodyIsSlow) {
  TinyProgram tiny = mesh(2, 2);
  tiny.program.instances[1].factor_set = tiny.slowed(Resource::kTensor, 2);
  const RunResult result = run(without_factors(tiny.program), {});
  EXPECT_EQ(std::get<Timeline>(result).isolated_end.time_since_epoch().count(), 29);
}

struct FaultCase {
  const char* expected;
  std::function<void(Program&)> breaks;
};

Program sound_program() {
  TinyProgram tiny = mesh(2, 2);
  const std::int32_t first = tiny.list({compute(10), send(0, 3, {0})});
  const std::int32_t second = tiny.list({receive(0), compute(4, {0})});
  const std::int32_t sender = tiny.instance(first);  // instances 4 and 5, templates 1 and 2
  tiny.connect(sender, tiny.instance(second));
  return tiny.program;
}

// Each way of breaking a sound program is found and named.
TEST(ProgramFaults, NameWhatIsWrong) {
  const std::vector<FaultCase> cases = {
      {"stream 0 is not the primary one",
       [](Program& p) { p.streams[0].role = StreamRole::kOther; }},
      {"block 0 task 0: stream 9", [](Program& p) { p.blocks[0].tasks[0].stream = 9; }},
      {"group kind 7", [](Program& p) { p.blocks[1].tasks[0].group_kind = 7; }},
      {"peer slot -1", [](Program& p) { p.blocks[6].tasks[0].peer_slot = -1; }},
      {"negative work", [](Program& p) { p.blocks[0].tasks[0].work[2] = -1; }},
      {"template 0 call 1: first task is not 1",
       [](Program& p) { p.templates[0].calls[1].first_task = 2; }},
      {"producer of a dependency 99",
       [](Program& p) { p.templates[0].dependencies[0].producer = 99; }},
      {"step end task -1", [](Program& p) { p.templates[0].step_end_task = -1; }},
      {"step end task is not on stream 0", [](Program& p) { p.templates[0].step_end_task = 1; }},
      {"dependencies form a cycle",
       [](Program& p) { p.templates[0].dependencies[0].producer = 2; }},
      {"5 bytes more allocated", [](Program& p) { p.templates[0].calls[0].allocated_bytes = 5; }},
      {"factor is not positive", [](Program& p) { p.factor_sets[0].base[1] = 0; }},
      {"instance 0: factor set 3", [](Program& p) { p.instances[0].factor_set = 3; }},
      {"multiplicity below 1", [](Program& p) { p.instances[2].multiplicity = 0; }},
      {"tp group disagrees", [](Program& p) { p.instances[0].groups[0] = 1; }},
      {"in a group already", [](Program& p) { p.groups[0][0].push_back(3); }},
      {"collectives without a group",
       [](Program& p) {
         p.groups[0].pop_back();
         p.instances[2].groups[0] = p.instances[3].groups[0] = -1;
       }},
      {"collectives, instance",
       [](Program& p) {
         p.groups[0][0].push_back(4);
         p.instances[4].groups[0] = 0;
       }},
      {"no counterpart", [](Program& p) { p.templates[1].calls[1].message = 3; }},
      {"no peer", [](Program& p) { p.instances[5].peers[0] = -1; }},
      {"no counterpart", [](Program& p) { p.instances[5].peers[0] = 0; }},
      {"its counterpart 8", [](Program& p) { p.blocks[6].tasks[0].bytes = 9; }},
      {"without a number", [](Program& p) { p.templates[1].calls[1].message = -1; }},
      {"template 0 call 2: a stretch is not in [1, 64]",
       [](Program& p) { p.templates[0].calls[2].kernel_stretch = kUnitFactor - 1; }},
      {"template 0 call 1: a stretch is not in [1, 64]",
       [](Program& p) { p.templates[0].calls[1].transfer_stretch = 64 * kUnitFactor + 1; }},
      {"outlast the range",
       [](Program& p) { p.blocks[0].tasks[0].work[0] = std::int64_t{1} << 61; }},
  };
  ASSERT_EQ(program_faults(sound_program()), std::vector<std::string>{});
  for (const FaultCase& one : cases) {
    Program program = sound_program();
    one.breaks(program);
    const std::vector<std::string> faults = program_faults(program);
    bool named = false;
    for (const std::string& fault : faults) {
      named = named || fault.find(one.expected) != std::string::npos;
    }
    EXPECT_TRUE(named) << one.expected << "; found: " << (faults.empty() ? "nothing" : faults[0]);
  }
}

// Rounding up, once, exactly: (2^50 + 1) ps at a factor of 1 + 2^-20 is 2^50 + 2^30 + 1 + 2^-20.
TEST(DurationOf, IsExactInWideArithmetic) {
  Work work{};
  work[0] = (std::int64_t{1} << 50) + 1;
  Factors factors = kUnitFactors;
  factors[0] += 1;
  EXPECT_EQ(duration_of(work, factors).count(),
            (std::int64_t{1} << 50) + (std::int64_t{1} << 30) + 2);
  EXPECT_EQ(duration_of(Work{}, factors).count(), 0);
}

TEST(FactorsAt, WindowsMultiplyAndHoldNoWarmUpStep) {
  FactorSet set;
  set.base[0] = 2 * kUnitFactor;
  set.windows = {{kUnitFactors, 0, 1}, {kUnitFactors, 1, 3}};
  set.windows[0].factors[0] = 3 * kUnitFactor;
  set.windows[1].factors[0] = 5 * kUnitFactor;
  EXPECT_EQ(factors_at(set, -1)[0], 2 * kUnitFactor);
  EXPECT_EQ(factors_at(set, 0)[0], 6 * kUnitFactor);
  EXPECT_EQ(factors_at(set, 1)[0], 30 * kUnitFactor);
  EXPECT_EQ(factors_at(set, 3)[0], 10 * kUnitFactor);
  EXPECT_EQ(factors_at(set, 4)[0], 2 * kUnitFactor);
}

}  // namespace
}  // namespace foretrain
