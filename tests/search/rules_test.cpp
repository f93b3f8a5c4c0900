// Rules that no preset breaks, each put to a job that does; and changes of a scenario that fits
// not.
#include "tests/search/search_jobs.h"

#include <string>

namespace foretrain::test {
namespace {

/// Why tp 8 is not in a job's list.
std::string reason_of_tp8(const TrainingJob& job, const SearchOptions& options) {
  SearchOptions asking = options;
  asking.shown = {{.tp = 8}};
  return searched(job, asking).shown.at(0).reason;
}

TEST(Rules, EachSaysItsNumbers) {
  const TrainingJob job = job_of("llama3-8b", 8, 8192, 64);
  const SearchOptions options = closed_form(job);
  EXPECT_EQ(reason_of_tp8(job, options), "");

  SearchOptions small_nodes = options;
  small_nodes.assumptions.gpus_per_node = 4;
  EXPECT_EQ(reason_of_tp8(job, small_nodes), "tp 8 is more than the 4 GPUs of a node");
  small_nodes.assumptions.gpus_per_node = 1;
  EXPECT_EQ(reason_of_tp8(job, small_nodes), "tp 8 is more than the 1 GPU of a node");

  TrainingJob odd = job;
  odd.model.ffn = 14332;  // 4 x 3583
  EXPECT_EQ(reason_of_tp8(odd, options), "tp 8 does not divide the MLP's width 14,332");

  odd = job;
  odd.global_batch_size = (std::int64_t{1} << 20) + 1;
  EXPECT_EQ(reason_of_tp8(odd, options), "1,048,577 micro-batches are more than 1,048,576");
  odd.global_batch_size -= 1;
  EXPECT_EQ(reason_of_tp8(odd, options), "");
}

TEST(Rules, LatentAttentionSharesItsHeadsToo) {
  TrainingJob job = job_of("deepseek-v3", 512, 4096, 512);
  job.model.heads = 132;  // 4 x 33
  EXPECT_EQ(reason_of_tp8(job, closed_form(job)), "tp 8 does not divide 132 attention heads");
}

Scenario too_large() {
  Expected<Scenario> scenario = read_scenario("llama3-8b-8", {"parallelism.tp=1"});
  EXPECT_TRUE(scenario);
  return scenario ? *std::move(scenario) : Scenario{};
}

// Twice the peak with the same closed form leaves half the memory to a neighbour's closed form.
TEST(Changes, AreHeldToTheSimulatedPeak) {
  const Scenario scenario = too_large();
  Assumptions given =
      default_assumptions(ClosedForm::kChapter, scenario.model, scenario.cluster.hardware);
  given.gradient_bytes = 4;
  const Estimator estimator(scenario.model, 8192, 64, given);
  const double own = estimator.estimate(layout_of(scenario, ClosedForm::kWorkshop)).memory.total();
  for (const double times : {1.0, 2.0, 3.0}) {
    const auto peak = static_cast<std::int64_t>(times * own);
    const std::vector<FittingChange> changes = changes_that_fit(scenario, peak);
    ASSERT_FALSE(changes.empty()) << times;
    double most = 0;
    for (const FittingChange& change : changes) {
      most = std::max(most, change.estimate.memory.total());
    }
    EXPECT_LE(most, 72e9 / times * (1 + 1e-9)) << times;  // the peak is rounded to a byte
    EXPECT_GT(most, 72e9 / times * 0.5) << "nothing near the limit: the rule is not put to a test";
  }
}

TEST(Changes, FewestSettingsFirstThenTheFastest) {
  const std::vector<FittingChange> changes = changes_that_fit(too_large(), 103'000'000'000);
  ASSERT_GT(changes.size(), 3U);
  EXPECT_EQ(changes.front().settings.size(), 1U);
  for (std::size_t at = 1; at < changes.size(); ++at) {
    const FittingChange& before = changes[at - 1];
    const FittingChange& here = changes[at];
    ASSERT_LE(before.settings.size(), here.settings.size());
    if (before.settings.size() == here.settings.size()) {
      EXPECT_GE(before.estimate.mfu, here.estimate.mfu);
    }
    EXPECT_NE(before.settings, here.settings);
  }
}

}  // namespace
}  // namespace foretrain::test
