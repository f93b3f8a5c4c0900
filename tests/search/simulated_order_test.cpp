// What the simulation does to a list: what fits first, what is not known next, what it refutes
// last; a layout that is only asked for does nothing to it.
#include "tests/search/search_jobs.h"
#include "tests/support/windowed_model.h"

#include <algorithm>
#include <string>

namespace foretrain::test {
namespace {

/// Whatever there is to see of a list.
std::string printed(const SearchResult& result) {
  std::string text;
  for (const RankedLayout& ranked : result.layouts) {
    text += std::to_string(ranked.rank) + " " + std::to_string(ranked.closed_form_rank) + " " +
            to_string(ranked.estimate.layout) + " " + ranked.not_simulated + " " +
            (ranked.simulated ? std::to_string(ranked.simulated->mfu) : "-") + "\n";
  }
  return text;
}

std::int64_t tried(const SearchResult& result) {
  return std::count_if(
      result.layouts.begin(), result.layouts.end(), [](const RankedLayout& ranked) {
        return ranked.simulated || !ranked.not_simulated.empty();
      });
}

SearchOptions simulating(const TrainingJob& job, std::int64_t best) {
  SearchOptions options = closed_form(job);
  options.simulate = best;
  options.short_list = std::max<std::int64_t>(best, 3);
  return options;
}

/// 32,768 tokens on 2 GPUs: the closed form fits tp 2, cp 2 and pp 2 by a hair, and leaves out the
/// logits, 32,768 x 32,000 x 6 bytes and more.
TrainingJob beyond_the_closed_form(const std::string& model = "llama2-7b") {
  return job_of(model, 2, 32768, 2);
}

TEST(SimulatedOrder, ALayoutAskedForChangesNothing) {
  const TrainingJob job = job_of("llama3-70b", 64, 8192, 512);
  SearchOptions options = simulating(job, 3);
  const SearchResult alone = searched(job, options);
  options.shown = {{.tp = 1, .pp = 16}, {.tp = 4, .cp = 2, .pp = 2}};
  const SearchResult asked = searched(job, options);
  EXPECT_EQ(printed(asked), printed(alone));
  ASSERT_TRUE(asked.shown[0].layout);
  EXPECT_TRUE(asked.shown[0].layout->simulated) << "its own entry has it";
  EXPECT_EQ(asked.shown[0].layout->rank, 24);
  ASSERT_TRUE(asked.best());
  EXPECT_EQ(asked.best()->estimate.layout.cp, 2);
}

TEST(SimulatedOrder, WhatDoesNotFitStandsBehindWhatIsNotKnown) {
  const TrainingJob job = beyond_the_closed_form(windowed_model_file());
  const SearchResult result = searched(job, simulating(job, 5));
  ASSERT_EQ(result.layouts.size(), 3U);
  EXPECT_EQ(result.layouts[0].estimate.layout.cp, 2);
  EXPECT_FALSE(result.layouts[0].simulated);
  EXPECT_TRUE(result.layouts[1].refuted());
  EXPECT_TRUE(result.layouts[2].refuted());
  EXPECT_EQ(result.best(), &result.layouts[0]);
  EXPECT_NE(result.reason.find("the 2 layouts simulated do not fit, and rank 1 cannot be "
                               "simulated"),
            std::string::npos)
      << result.reason;
  EXPECT_NE(result.reason.find("(does not fit when simulated)"), std::string::npos)
      << result.reason;
}

// The same sizes without a window: cp 2 is simulated, and refuted like the others.
TEST(SimulatedOrder, ACutSequenceIsSimulatedWhereAttentionSeesAllOfIt) {
  const TrainingJob job = beyond_the_closed_form();
  const SearchResult result = searched(job, simulating(job, 5));
  ASSERT_EQ(result.layouts.size(), 3U);
  for (const RankedLayout& ranked : result.layouts) {
    EXPECT_TRUE(ranked.refuted()) << to_string(ranked.estimate.layout);
    EXPECT_EQ(ranked.not_simulated, "");
  }
  EXPECT_EQ(result.best(), nullptr);
}

TEST(SimulatedOrder, WhereNothingFitsItSaysSoAndNamesAClusterThatHoldsIt) {
  const TrainingJob job = beyond_the_closed_form();
  SearchOptions options = simulating(job, 5);
  options.assumptions.minimum_cp_tokens = 1e9;              // no cp
  options.axes.recompute_layers = {kRecomputeAsNeeded, 0};  // stated: no more than that is offered
  const SearchResult result = searched(job, options);
  ASSERT_EQ(result.layouts.size(), 2U);
  EXPECT_EQ(result.best(), nullptr);
  EXPECT_NE(result.reason.find("the closed form fits 2 layouts, none of them fits when simulated"),
            std::string::npos)
      << result.reason;
  // What the closed form leaves out takes the same share of the cluster that is named.
  double share = 0;
  for (const RankedLayout& ranked : result.layouts) {
    share = std::max(
        share,
        ranked.estimate.memory.total() / static_cast<double>(ranked.simulated->memory_bytes));
  }
  ASSERT_TRUE(result.smallest);
  EXPECT_LE(result.smallest->memory.total(), 72e9 * share);
  ASSERT_EQ(result.way_out.size(), 1U);
  EXPECT_EQ(result.way_out[0].option, "--gpus");
  const TrainingJob larger = job_of("llama2-7b", std::stoll(result.way_out[0].value), 32768, 2);
  EXPECT_GT(larger.gpus, 2);
  const SearchResult there = searched(larger, options);
  ASSERT_TRUE(there.best());
  EXPECT_TRUE(there.best()->simulated);
}

TEST(SimulatedOrder, FurtherLayoutsAreSimulatedForThoseThatDoNotFit) {
  const TrainingJob job = job_of("llama3.2-1b", 32, 131072, 512, "dgx-b200-ndr400");
  const SearchResult result = searched(job, simulating(job, 5));
  const auto refuted = [](const RankedLayout& ranked) { return ranked.refuted(); };
  const auto count = std::count_if(result.layouts.begin(), result.layouts.end(), refuted);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(tried(result), 5 + count);
  EXPECT_TRUE(result.layouts.front().simulated);
  EXPECT_TRUE(result.layouts.back().refuted());
  for (std::size_t at = 0; at < result.layouts.size(); ++at) {
    EXPECT_EQ(result.layouts[at].rank, static_cast<std::int64_t>(at) + 1);
    EXPECT_EQ(result.layouts[at].closed_form_rank <= 6,
              result.layouts[at].simulated || !result.layouts[at].not_simulated.empty())
        << "in the closed form's order";
  }
}

// On one GPU the logits of 131,072 tokens alone, 131,072 x 128,256 x 6 bytes = 101 GB, are more
// than what the closed form leaves.
TEST(SimulatedOrder, AtMostFourTimesAsManyAsAskedForAreTried) {
  const TrainingJob job = job_of("llama3.2-1b", 32, 131072, 512, "dgx-b200-ndr400");
  SearchOptions options = simulating(job, 1);
  options.assumptions.minimum_cp_tokens = 1e9;
  options.axes.recompute_layers = {0, 1};
  options.axes.shardings = {Sharding::kNone, Sharding::kZero1, Sharding::kZero2};
  const SearchResult result = searched(job, options);
  ASSERT_GT(result.layouts.size(), 4U);
  EXPECT_EQ(tried(result), 4);
  ASSERT_TRUE(result.best());
  EXPECT_EQ(result.best()->closed_form_rank, 5);
  EXPECT_NE(result.reason.find("the 4 layouts simulated do not fit, and rank 1 is the closed "
                               "form's next, a larger --top simulates more"),
            std::string::npos)
      << result.reason;
}

}  // namespace
}  // namespace foretrain::test
