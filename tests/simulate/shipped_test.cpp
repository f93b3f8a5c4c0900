#include "tests/support/short_batch.h"

#include "foretrain/simulate.h"
#include "sim/base/data_directory.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Rule: on every shipped scenario the evaluators and the fold change nothing, to the picosecond.
/// A batch of one or two micro-batches per pipeline stage keeps degrees and schedule and takes
/// seconds where the file's own, event by event or rank by rank, takes minutes.
namespace foretrain {
namespace {

/// The report without the part that describes the run itself.
std::string comparable(StepReport report) {
  report.simulation = {};
  return report_json(report);
}

class Shipped : public testing::TestWithParam<std::string> {};

TEST_P(Shipped, EveryEvaluatorAndEveryRankGiveTheSameReport) {
  const Expected<Scenario> whole = read_scenario(GetParam());
  ASSERT_TRUE(whole.has_value()) << whole.error().list.front().message;
  const Expected<Scenario> scenario = read_scenario(GetParam(), {test::short_batch(*whole)});
  ASSERT_TRUE(scenario.has_value()) << scenario.error().list.front().message;
  const std::vector<Diagnostic> refusals = not_simulated(*scenario);
  ASSERT_TRUE(refusals.empty());
  const auto with = [&scenario](Evaluator evaluator, bool all_ranks) {
    SimulateOptions options;
    options.evaluator = evaluator;
    options.all_ranks = all_ranks;
    Expected<Simulation> simulation = simulate(*scenario, options);
    EXPECT_TRUE(simulation.has_value());
    return comparable(std::move(simulation->report));
  };
  const std::string dataflow = with(Evaluator::kDataflow, false);
  EXPECT_EQ(dataflow, with(Evaluator::kEvent, false));
  EXPECT_EQ(dataflow, with(Evaluator::kDataflow, true));
  EXPECT_EQ(dataflow, with(Evaluator::kAuto, false));
}

INSTANTIATE_TEST_SUITE_P(Scenarios,
                         Shipped,
                         testing::ValuesIn(preset_names("scenarios")),
                         [](const testing::TestParamInfo<std::string>& scenario) {
                           std::string name = scenario.param;
                           std::replace_if(
                               name.begin(),
                               name.end(),
                               [](unsigned char c) { return std::isalnum(c) == 0; },
                               '_');
                           return name;
                         });

}  // namespace
}  // namespace foretrain
