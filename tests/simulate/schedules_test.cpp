#include "tests/support/pipelines.h"

#include <fstream>

#include <gtest/gtest.h>

/// Rule: with free transfers and equal chunks a run takes what its schedule takes alone.
namespace foretrain {
namespace {

using test::pipeline_text;
using test::PipelineSize;
using test::read_with;

constexpr const char* kStated = R"({"model": "stated", "forward": "10 ms", "backward": "23 ms",
    "dgrad": "12 ms", "wgrad": "8 ms", "overlapped": "31 ms"})";
constexpr const char* kTextbook =
    R"({"model": "constant", "communication": "free", "embedding_and_head": "free"})";

class Schedules : public testing::TestWithParam<ScheduleEntry> {};

Simulation run(const std::string& text) {
  Expected<Simulation> simulation = simulate(read_with(text, {}));
  if (!simulation) {
    ADD_FAILURE() << simulation.error().list.front().message;
    return {};
  }
  return std::move(*simulation);
}

/// What the schedule alone takes; every stage costs the same.
ScheduleTiming alone(const Simulation& simulation, const ScheduleCosts& costs) {
  Expected<ScheduleTiming> timing = time_schedule(simulation.schedule, costs);
  EXPECT_TRUE(timing.has_value());
  return timing ? *std::move(timing) : ScheduleTiming{};
}

TEST_P(Schedules, ARunOfStatedTimesTakesTheMakespan) {
  const auto ms = [](int value) { return Duration{std::int64_t{1'000'000'000} * value}; };
  ScheduleCosts costs;
  costs.stages = {{ms(10), ms(23), ms(12), ms(8), ms(31)}};
  for (const PipelineSize& size : test::sizes_of(GetParam())) {
    for (const bool sequential : {false, true}) {
      SCOPED_TRACE("pp " + std::to_string(size.pp) + " m " + std::to_string(size.micro_batches));
      costs.sequential = sequential;
      const Simulation simulation =
          run(pipeline_text(std::string(GetParam().name),
                            size,
                            kStated,
                            sequential ? R"(, "overlap_semantics": "sequential")" : ""));
      const ScheduleTiming timing = alone(simulation, costs);
      EXPECT_EQ(simulation.report.isolated_step, timing.makespan);
      EXPECT_EQ(simulation.report.step_time, timing.makespan);
      Duration busy{};
      for (const Duration rank : timing.busy) {
        busy += rank;
      }
      EXPECT_EQ(simulation.report.breakdown.compute, busy / size.pp);
      EXPECT_EQ(simulation.report.breakdown.imbalance, Duration{});
    }
  }
}

TEST_P(Schedules, ARunOfTextbookKernelsTakesTheMakespan) {
  for (const PipelineSize& size : test::sizes_of(GetParam())) {
    SCOPED_TRACE("pp " + std::to_string(size.pp) + " m " + std::to_string(size.micro_batches));
    const Simulation simulation = run(pipeline_text(std::string(GetParam().name), size, kTextbook));
    if (size.slices > 1) {
      continue;  // later slices attend to more
    }
    const ScheduleCosts& costs = simulation.chunk_costs;
    for (const ChunkCosts& chunk : costs.stages) {
      EXPECT_EQ(chunk.forward, costs.stages.front().forward);
    }
    EXPECT_EQ(simulation.report.isolated_step, alone(simulation, costs).makespan);
    EXPECT_EQ(simulation.report.step_time, alone(simulation, costs).makespan);
  }
}

TEST_P(Schedules, TheListsFromAFileAreTheSchedule) {
  const std::string path = testing::TempDir() + "lists-" + std::string(GetParam().name) + ".csv";
  for (const PipelineSize& size : test::sizes_of(GetParam())) {
    const Simulation named = run(pipeline_text(std::string(GetParam().name), size, kStated));
    std::ofstream(path) << schedule_csv(named.schedule);
    std::string text = pipeline_text("", {size.pp, size.micro_batches, size.vpp}, kStated);
    const std::string by_name = R"("name": "", "slices": 1)";
    text.replace(text.find(by_name), by_name.size(), R"("csv": ")" + path + "\"");
    const Simulation listed = run(text);
    EXPECT_EQ(listed.report.step_time, named.report.step_time);
    EXPECT_EQ(listed.report.breakdown, named.report.breakdown);
    EXPECT_EQ(listed.report.memory_peak, named.report.memory_peak);
  }
}

INSTANTIATE_TEST_SUITE_P(Table,
                         Schedules,
                         testing::ValuesIn(schedule_table().begin(), schedule_table().end()),
                         test::entry_name);

// A backward's halves are its kernels, each once: their times add up under textbook costs.
TEST(SplitBackward, HalvesAddUpToTheWhole) {
  const PipelineSize size{4, 8};
  const ChunkCosts split = run(pipeline_text("zb-h1", size, kTextbook)).chunk_costs.stages.front();
  const ChunkCosts whole = run(pipeline_text("1f1b", size, kTextbook)).chunk_costs.stages.front();
  EXPECT_EQ(split.input_gradient + split.weight_gradient, whole.backward);
  EXPECT_EQ(split.forward, whole.forward);
}

// A unit may be stated to take less than its halves, also where kernels are priced.
TEST(OverlappedUnits, AStatedTimeTakesTheirPlace) {
  const PipelineSize size{4, 12};
  Simulation simulation =
      run(pipeline_text("dualpipe", size, kTextbook, R"(, "overlapped": "1 ms")"));
  for (ChunkCosts& chunk : simulation.chunk_costs.stages) {
    EXPECT_EQ(chunk.overlapped, Duration{1'000'000'000});
  }
  EXPECT_EQ(simulation.report.isolated_step, alone(simulation, simulation.chunk_costs).makespan);
  EXPECT_NE(simulation.report.isolated_step,
            run(pipeline_text("dualpipe", size, kTextbook)).report.isolated_step);
  const Expected<Scenario> plain =
      parse_scenario(pipeline_text("1f1b", size, kTextbook, R"(, "overlapped": "1 ms")"));
  ASSERT_FALSE(plain.has_value());
  EXPECT_EQ(plain.error().list.front().pointer, "/schedule/overlapped");
}

// Embedding and head make stages unequal. What of the idle time is left when every stage takes the
// mean is the closed form's, also where forwards and backwards run in pairs: ranks have other
// numbers of pairs, stages count alike.
TEST(Bubble, OfEqualStagesIsTheClosedForm) {
  const PipelineSize size{4, 8};
  const char* const ends = R"({"model": "constant", "communication": "free"})";
  for (const char* schedule : {"1f1b", "eager-1f1b", "1f1b-overlap"}) {
    const StepReport report = run(pipeline_text(schedule, size, ends)).report;
    EXPECT_GT(report.breakdown.imbalance, Duration{}) << schedule;
    const double share = seconds(report.breakdown.bubble) / seconds(report.breakdown.compute);
    EXPECT_NEAR(share, 3.0 / 8, 1e-6) << schedule;
  }
}

// A rank of two chunks may accumulate both: zero2 then reduces each once a step, as zero1 does.
TEST(Sharding, TwoChunksAreReducedOnceAStep) {
  const auto sent = [](const char* sharding) {
    const Expected<Simulation> simulation =
        simulate(read_with(pipeline_text("zb-v", {4, 8}, kTextbook),
                           {"parallelism.vpp=2",
                            "cluster.gpus=8",
                            "training.global_batch_size=16",
                            std::string("parallelism.sharding=") + sharding}));
    for (const NetworkReport& row : simulation->report.network) {
      if (row.group == "dp") {
        return row.bytes;
      }
    }
    return std::int64_t{0};
  };
  EXPECT_GT(sent("zero1"), 0);
  EXPECT_EQ(sent("zero2"), sent("zero1"));
}

// On the last rank of ZB-H1 three micro-batches wait for their weight gradients while the head runs
// the fourth: of those three 16 bits a logit are left, of the fourth 16 and 32.
TEST(SplitBackward, OfTheLogitsOnlyTheirGradientStays) {
  const std::int64_t logits = 512 * 1024;
  const auto last = [](const char* schedule) {
    return run(pipeline_text(schedule, {4, 12}, kTextbook)).report.stages.back().memory.logits;
  };
  EXPECT_EQ(last("1f1b"), 6 * logits);
  EXPECT_EQ(last("zb-h1"), 6 * logits + 3 * 2 * logits);
}

// Without a barrier every rank updates when it is done: ranks that start and end skewed lose
// nothing, and the next step follows at once. With one ZB-H2 loses (p - 1) forwards.
TEST(Barrier, PostValidationLetsZeroBubbleBeZero) {
  const auto step = [](const std::string& keys) {
    return run(pipeline_text("zb-h2",
                             {4, 12},
                             R"({"model": "stated", "forward": "10 ms", "dgrad": "10 ms",
                                 "wgrad": "10 ms"})",
                             keys))
        .report.step_time;
  };
  EXPECT_EQ(step(R"(, "barrier": false)"), Duration{std::int64_t{360'000'000'000}});
  EXPECT_EQ(step(""), Duration{std::int64_t{390'000'000'000}});
}

// The step's optimizer comes on top where somebody states it.
TEST(Stated, OptimizerEndsTheStep) {
  const std::string costs =
      R"({"model": "stated", "forward": "10 ms", "backward": "20 ms", "optimizer": "5 ms"})";
  const StepReport report = run(pipeline_text("1f1b", {4, 8}, costs)).report;
  EXPECT_EQ(report.step_time, Duration{std::int64_t{335'000'000'000}});
  EXPECT_EQ(report.breakdown.optimizer, Duration{std::int64_t{5'000'000'000}});
}

TEST(Stated, ASplitScheduleNeedsBothHalves) {
  const Expected<Scenario> scenario = parse_scenario(pipeline_text(
      "zb-h1", {4, 8}, R"({"model": "stated", "forward": "1 ms", "backward": "2 ms"})"));
  ASSERT_FALSE(scenario.has_value());
  EXPECT_EQ(scenario.error().list.front().pointer, "/costs/dgrad");
}

TEST(Slices, AreEqualAndTheNearestThatAreAreNamed) {
  const auto hint = [](std::int64_t slices, const char* tp) {
    const Expected<Scenario> scenario = parse_scenario(
        pipeline_text("seq1f1b", {2, 4, 1, slices}, kTextbook),
        ".",
        {std::string("parallelism.tp=") + tp, "cluster.gpus=16", "training.global_batch_size=32"});
    return scenario ? std::string("legal") : scenario.error().list.front().hint;
  };
  EXPECT_EQ(hint(3, "1"), "2 or 4 slices");  // of 512 tokens
  EXPECT_EQ(hint(4, "1"), "legal");
  EXPECT_EQ(hint(100, "4"), "64 slices");  // 128 groups of four tokens, cut into 128 at most
  EXPECT_EQ(hint(5, "4"), "4 or 8 slices");
}

// Slices of a sequence attend to those before: together they do the work of the whole.
TEST(Slices, TogetherTheyAreTheSequence) {
  const Simulation whole = run(pipeline_text("seq1f1b", {2, 4, 1, 1}, kTextbook));
  const Simulation cut = run(pipeline_text("seq1f1b", {2, 4, 1, 4}, kTextbook));
  EXPECT_EQ(whole.report.flops_per_token, cut.report.flops_per_token);
  const Duration difference = cut.report.breakdown.compute - whole.report.breakdown.compute;
  EXPECT_GE(difference, Duration{});
  EXPECT_LE(difference, Duration{4 * 4 * 200});  // each kernel rounds up to the picosecond
  EXPECT_LT(cut.report.step_time, whole.report.step_time);
  EXPECT_LT(cut.report.memory_peak, whole.report.memory_peak);
}

}  // namespace
}  // namespace foretrain
