// The decisions of the whiteboard, against worked examples: the 175B model on 1,024 A100s (16 bytes
// a parameter, tp 8, the ladder of p, 54 GB, bubble 7/96, ZeRO-1's 13 GB), and the layouts that the
// chapter "Combining and choosing 3D and 5D parallelism" prints.
#include "tests/plan/jobs.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain::test {
namespace {

TEST(PlanSteps, The175BModelOn1024A100s) {
  const Plan plan = plan_of("gpt3-175b", 1024, 2048, 1536, "dgx-a100-hdr200").plan;
  ASSERT_TRUE(plan.feasible);
  EXPECT_EQ(degrees(plan.estimate.layout), "8 1 8 16");
  const PlanStep states = step_named(plan, "Model states");
  EXPECT_TRUE(says(states, "16 x 175e9 = 2.8e12 bytes = 2.8 TB"));
  EXPECT_TRUE(says(states, "18 x 175e9 = 3.15e12 bytes"));
  EXPECT_TRUE(
      says(step_named(plan, "Smallest replica"), "2.8e12 / 80e9 = 35, so at least 35 GPUs"));
  const PlanStep pipeline = step_named(plan, "Pipeline");
  EXPECT_TRUE(says(pipeline, "p 1: 2.8e12 / 8 = 350 GB, too much"));
  EXPECT_TRUE(says(pipeline, "p 4: 2.8e12 / (8 x 4) = 87.5 GB, too much"));
  EXPECT_TRUE(says(pipeline, "p 8: 2.8e12 / (8 x 8) = 43.75 GB"));
  EXPECT_TRUE(says(pipeline, "34 x 2048 x 12288 x 96 / 8 = 10.3 GB"));
  EXPECT_TRUE(says(pipeline, "43.75 GB + 10.27 GB = 54 GB, fits"));
  EXPECT_FALSE(says(pipeline, "p 16"));
  const PlanStep data = step_named(plan, "Data parallelism");
  EXPECT_TRUE(says(data, "1024 / (8 x 8) = 16 replicas"));
  EXPECT_NE(data.decision.find("43.75 -> 13 GB"), std::string::npos) << data.decision;
  EXPECT_NE(data.otherwise.find("pp could fall to 2-4"), std::string::npos) << data.otherwise;
  EXPECT_TRUE(says(step_named(plan, "Micro-batches and bubble"), "7/96 = 7.3 %"));
  EXPECT_EQ(plan.estimate.micro_batches, 96);
}

TEST(PlanSteps, StandInTheOrderOfTheWhiteboard) {
  const Plan plan = plan_of("gpt3-175b", 1024, 2048, 1536, "dgx-a100-hdr200").plan;
  std::vector<std::string> titles;
  for (const PlanStep& step : plan.steps) {
    titles.push_back(step.title);
    EXPECT_FALSE(step.question.empty() || step.arithmetic.empty() || step.decision.empty() ||
                 step.otherwise.empty())
        << step.title;
  }
  EXPECT_EQ(titles,
            (std::vector<std::string>{"Model states",
                                      "Smallest replica",
                                      "Tensor parallelism",
                                      "Pipeline",
                                      "Activations",
                                      "Context parallelism",
                                      "Data parallelism",
                                      "Micro-batches and bubble",
                                      "Stage balance",
                                      "Measure"}));
}

// The textbook layout, which the chapter's search puts 5th of 24 (49.3 %, 66 GiB).
TEST(PlanSteps, The70BModelOn64H100sFillsANodeAndReplicates) {
  const Plan plan = plan_of("llama3-70b", 64, 8192, 512).plan;
  EXPECT_EQ(degrees(plan.estimate.layout), "8 1 1 8");
  EXPECT_EQ(plan.rank, 5);
  EXPECT_EQ(plan.ranked, 24);
  ASSERT_EQ(plan.best.size(), 3U);
  EXPECT_EQ(degrees(plan.best[0].estimate.layout), "4 2 2 4");
  EXPECT_NEAR(plan.estimate.memory.total(), 71e9, 0.5e9);  // 66 GiB, rounded to a GiB
  // T_tp / T_compute at t = 8 is about 22 % (the chapter's exercise 1).
  EXPECT_TRUE(says(step_named(plan, "Tensor parallelism"), "= 22 %"));
  // The head is worth about 1.1 layers (the chapter, of a vocabulary of 128K).
  EXPECT_TRUE(says(step_named(plan, "Stage balance"), "= 1.14 layers"));
}

TEST(PlanSteps, The8BModelOn8H100sStaysPlainAndRecomputesNineLayers) {
  const Plan plan = plan_of("llama3-8b", 8, 8192, 64).plan;
  EXPECT_EQ(degrees(plan.estimate.layout), "1 1 1 8");
  EXPECT_EQ(plan.estimate.recompute_layers, 9);
  EXPECT_EQ(plan.estimate.stage_layers, 32);
  EXPECT_EQ(plan.rank, 4);  // of 16, in the chapter's print
  EXPECT_EQ(plan.ranked, 16);
}

// 16 x 8.03e9 = 128.48e9: as a result in three figures, as what is reckoned with in four.
TEST(PlanSteps, WhatIsReckonedWithHasFourFigures) {
  const Plan plan = plan_of("llama3-8b", 8, 8192, 64).plan;
  EXPECT_TRUE(says(step_named(plan, "Model states"), "16 x 8.03e9 = 128e9 bytes = 128 GB"));
  EXPECT_TRUE(says(step_named(plan, "Smallest replica"), "128.5e9 / 80e9 = 1.61, so"));
}

// Published layouts (Narayanan et al. 2021, table 1: 145.6B on 1,536 GPUs as 8 x 8 x 24, 1T on
// 3,072 as 8 x 64 x 6).
TEST(PlanSteps, ThePublishedLayoutsOfMegatron) {
  const Plan small = plan_of("gpt-145b", 1536, 2048, 2304, "dgx-a100-hdr200").plan;
  EXPECT_EQ(degrees(small.estimate.layout), "8 1 8 24");
  const Plan large = plan_of("gpt-1t", 3072, 2048, 3072, "dgx-a100-hdr200").plan;
  EXPECT_EQ(degrees(large.estimate.layout), "8 1 64 6");
  EXPECT_EQ(large.rank, 0);  // search looks at pp up to 16
}

// Where a sequence is too short to cut, tp is offered, not taken: 33 of 40 layers recompute.
TEST(PlanSteps, AWiderTpIsOfferedInsteadOfRecomputing) {
  const Plan plan = plan_of("llama2-13b", 12, 4096, 48, "dgx-a100-hdr200").plan;
  EXPECT_EQ(degrees(plan.estimate.layout), "1 1 1 12");
  const std::string& offered = step_named(plan, "Context parallelism").otherwise;
  EXPECT_NE(offered.find("tp 2 would recompute"), std::string::npos) << offered;
}

// Llama 3's: tp 8, pp 16, dp 128, the ends one layer shorter; at 128K cp 16 and dp 8.
TEST(PlanSteps, The405BModelOn16384H100s) {
  const PlannedJob planned = plan_of("llama3-405b", 16384, 8192, 2048);
  EXPECT_EQ(degrees(planned.plan.estimate.layout), "8 1 16 128");
  EXPECT_TRUE(says(step_named(planned.plan, "Pipeline"), "= 50.75 GB"));
  EXPECT_NE(planned.plan.scenario.find("embedding_and_loss_as_layers"), std::string::npos);
  const Expected<Scenario> scenario = parse_scenario(planned.plan.scenario);
  ASSERT_TRUE(scenario);
  EXPECT_EQ(scenario->parallelism.layers_per_stage.front(), 7);
  EXPECT_EQ(scenario->parallelism.layers_per_stage[1], 8);
  const Plan longer = plan_of("llama3-405b", 16384, 131072, 128).plan;
  EXPECT_EQ(degrees(longer.estimate.layout), "8 16 16 8");
}

// The chapter's third of the 128K case: 64 of 80 layers recomputed.
TEST(PlanSteps, ALongSequenceIsCut) {
  const Plan plan = plan_of("llama3-70b", 64, 131072, 32).plan;
  EXPECT_EQ(degrees(plan.estimate.layout), "8 4 1 2");
  EXPECT_EQ(plan.estimate.recompute_layers, 64);
  EXPECT_TRUE(says(step_named(plan, "Context parallelism"), "recompute 64 of 80, MFU 43.8 %"));
}

// 1.13 TB of states, 1.27 with fp32 gradients: at least 16 GPUs of 80 GB before any activation.
TEST(PlanSteps, WhatCannotFitSaysWhyAndWhatWould) {
  const Plan plan = plan_of("llama3-70b", 8, 8192, 512, "dgx-a100-hdr200").plan;
  EXPECT_FALSE(plan.feasible);
  EXPECT_TRUE(plan.scenario.empty());
  EXPECT_NE(plan.reason.find("1.13 TB"), std::string::npos) << plan.reason;
  EXPECT_TRUE(says(step_named(plan, "Model states"), "= 1.27 TB"));
  ASSERT_TRUE(plan.smallest);
  const Layout& layout = plan.smallest->layout;
  EXPECT_EQ(layout.tp * layout.cp * layout.pp * layout.dp, 16);
  EXPECT_NE(plan.steps.back().decision.find("at least 16 GPUs"), std::string::npos);
}

TEST(PlanSteps, ExpertsSpreadInsideTheNodeFirst) {
  const Plan mixtral = plan_of("mixtral-8x7b", 16, 4096, 512).plan;
  EXPECT_EQ(mixtral.estimate.layout.ep, 8);
  EXPECT_EQ(mixtral.estimate.layout.tp, 1);
  const Plan deepseek = plan_of("deepseek-v3", 2048, 4096, 15360, "h800-ndr400").plan;
  ASSERT_TRUE(deepseek.feasible);
  EXPECT_EQ(deepseek.estimate.layout.tp, 1);  // as published
  EXPECT_EQ(deepseek.estimate.layout.ep, 8);
  EXPECT_NE(deepseek.scenario.find("layers_per_stage"), std::string::npos);  // 61 layers
}

TEST(PlanSteps, ABatchSmallerThanTheReplicasMovesToTheNearestLegalLayout) {
  const Plan plan = plan_of("llama3-8b", 64, 8192, 32).plan;
  ASSERT_TRUE(plan.feasible);
  EXPECT_TRUE(plan.reason.empty());
  EXPECT_EQ(plan.estimate.layout.dp, 32);
  EXPECT_TRUE(says(step_named(plan, "Data parallelism"), "cannot be shared by dp 64"));
}

// 512 sequences and 1,000 = 8 x 125 GPUs: dp is a multiple of 125 whatever the powers of two.
TEST(PlanSteps, GpusThatCannotShareTheBatchNameTheNearestThatCan) {
  const Plan plan = plan_of("llama3-70b", 1000, 8192, 512).plan;
  EXPECT_FALSE(plan.feasible);
  EXPECT_NE(plan.steps.back().decision.find("512 or 1,024 GPUs"), std::string::npos)
      << plan.steps.back().decision;
  EXPECT_NE(plan.steps.back().decision.find("500 or 625 sequences"), std::string::npos);
  const Plan shared = plan_of("llama3-70b", 1000, 8192, 500).plan;
  EXPECT_EQ(degrees(shared.estimate.layout), "8 1 1 125");
}

// The logits of 131,072 tokens, 67 GB in fp32 and as much again, are too much at tp 1.
TEST(PlanSteps, WhatDoesNotFitWhenSimulatedGivesWayToTheFirstThatDoes) {
  const Plan plan = simulated_plan_of("llama3.2-1b", 32, 131072, 512, "dgx-b200-ndr400").plan;
  ASSERT_TRUE(plan.feasible);
  ASSERT_TRUE(plan.simulated);
  EXPECT_NE(plan.simulated->fits, Fit::kNo);
  const PlanStep step = step_named(plan, "Simulated memory");
  EXPECT_TRUE(says(step, "GB of 192.3 GB, too much"));
  EXPECT_TRUE(says(step,
                   "tp " + std::to_string(plan.estimate.layout.tp) + " · cp " +
                       std::to_string(plan.estimate.layout.cp)));
  EXPECT_NE(step.decision.find("GB of logits"), std::string::npos) << step.decision;
  EXPECT_GT(plan.rank, 1);
  // Of what the search ranks before it, nothing that can be simulated fits.
  SearchOptions options;
  options.axes.uneven_stages = true;
  options.simulate = plan.rank;
  const PlannedJob planned = plan_of("llama3.2-1b", 32, 131072, 512, "dgx-b200-ndr400");
  options.assumptions = planned.options.assumptions;
  const Expected<SearchResult> found = search(planned.job, options);
  ASSERT_TRUE(found);
  int tried = 0;
  for (const RankedLayout& layout : found->layouts) {
    if (layout.closed_form_rank < plan.rank && layout.simulated) {
      EXPECT_EQ(layout.simulated->fits, Fit::kNo);
      ++tried;
    }
  }
  EXPECT_GT(tried, 0);
}

TEST(PlanSteps, WhatIsToBeMeasuredIsListed) {
  const Plan plan = plan_of("deepseek-v3", 2048, 4096, 15360, "h800-ndr400").plan;
  const PlanStep context = step_named(plan, "Context and expert parallelism");
  ASSERT_NE(context.otherwise.find("tp 2 would recompute"), std::string::npos);
  EXPECT_NE(context.otherwise.find("(step 10)"), std::string::npos);
  EXPECT_EQ(plan.steps[9].title, "Measure");
  EXPECT_TRUE(says(plan.steps[9], "tp 2"));
}

// Before the experts' step everything stands under the ep it assumes, and that step says what
// comes of its own.
TEST(PlanSteps, WhatALaterStepDecidesIsSaidToBeOpen) {
  const Plan plan = plan_of("qwen3-30b-a3b", 72, 4096, 576, "gb200-nvl72").plan;
  ASSERT_TRUE(plan.feasible);
  EXPECT_NE(step_named(plan, "Activations").decision.find("which the next step decides"),
            std::string::npos);
  if (plan.estimate.layout.ep == 1) {
    const std::string& decision = step_named(plan, "Context and expert parallelism").decision;
    EXPECT_NE(decision.find("So a GPU takes"), std::string::npos) << decision;
  }
}

TEST(PlanSteps, OneGpu) {
  const Plan plan = plan_of("llama3.2-1b", 1, 8192, 16).plan;
  EXPECT_EQ(degrees(plan.estimate.layout), "1 1 1 1");
  EXPECT_FALSE(plan_of("llama3-8b", 1, 8192, 16).plan.feasible);  // 128 GB of states
}

// Where the positions end no layout could be legal: that is a fault of the job.
TEST(PlanSteps, BeyondTheModelsPositionsThereIsNoJob) {
  const Expected<TrainingJob> job = read_job("gpt3-175b", "dgx-a100-hdr200", 1024, 4096, 1536);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().list.front().pointer, "/training/sequence_length");
  // Nor where one operator's FLOPs, 4 s^2 a d, pass 4e18: s = 16e6 at a d = 4096.
  EXPECT_TRUE(read_job("llama3-8b", "dgx-h100-ndr400", 64, 15'000'000, 64));
  const Expected<TrainingJob> endless =
      read_job("llama3-8b", "dgx-h100-ndr400", 64, 16'000'000, 64);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().list.front().pointer, "/training/sequence_length");
}

}  // namespace
}  // namespace foretrain::test
