// Rule: under the same assumptions (constant efficiencies, full bandwidth, no latency) simulation
// and closed form agree within half a percent (2 % on pipelines) on dense layouts whose
// data-parallel traffic is small; and each term of the difference is the one MODEL 10.5 names.
#include "foretrain/search.h"
#include "foretrain/simulate.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain::test {
namespace {

struct Case {
  const char* model;
  std::int64_t gpus, sequence, batch;
  Layout layout;
};

struct Both {
  Estimate estimate;
  StepReport report;
  double data_traffic_s = 0;  ///< of the closed form, before any of it is hidden
};

/// The scenario of a layout with textbook costs.
std::string textbook(const TrainingJob& job, const Layout& layout, const Assumptions& assumptions) {
  std::string text = scenario_text(job, layout, assumptions, "both ways");
  text.erase(text.rfind('}'));
  return text + ", \"costs\": {\"model\": \"constant\"}}";
}

Both both(const Case& chosen) {
  const Expected<TrainingJob> job =
      read_job(chosen.model, "dgx-h100-ndr400", chosen.gpus, chosen.sequence, chosen.batch);
  if (!job) {
    ADD_FAILURE() << job.error().list.front().message;
    return {};
  }
  const Assumptions assumptions =
      default_assumptions(ClosedForm::kChapter, job->model, job->hardware);
  Layout layout = chosen.layout;
  layout.recompute_layers = 0;
  Both result;
  result.estimate =
      Estimator(job->model, chosen.sequence, chosen.batch, assumptions).estimate(layout);
  result.data_traffic_s = result.estimate.parts.dp / (1 - assumptions.dp_overlap);
  const Expected<Scenario> scenario = parse_scenario(textbook(*job, layout, assumptions));
  const Expected<Simulation> simulation =
      scenario ? simulate(*scenario) : tl::unexpected<Faults>(scenario.error());
  if (!simulation) {
    ADD_FAILURE() << simulation.error().list.front().message;
    return {};
  }
  result.report = simulation->report;
  return result;
}

const std::vector<Case>& without_pipeline() {
  static const std::vector<Case> kSetups = {
      {"llama3-8b", 8, 8192, 64, Layout{.dp = 8}},
      {"llama3-8b", 8, 8192, 64, Layout{.tp = 2, .dp = 4}},
      {"llama3-8b", 8, 8192, 64, Layout{.tp = 4, .dp = 2}},
      {"llama3-8b", 8, 8192, 64, Layout{.tp = 8, .dp = 1}},
      {"llama2-13b", 16, 4096, 1024, Layout{.tp = 2, .dp = 8, .micro_batch_size = 2}},
      {"llama2-70b", 32, 4096, 1024, Layout{.tp = 4, .dp = 8}},
      {"llama3-70b", 64, 8192, 512, Layout{.tp = 8, .dp = 8}},
      {"llama3-405b", 64, 8192, 512, Layout{.tp = 8, .dp = 8}},
      {"gpt3-175b", 64, 2048, 8192, Layout{.tp = 8, .dp = 8}},
      {"llama3-70b", 8, 32768, 16, Layout{.tp = 8, .dp = 1}},
      {"qwen2.5-7b", 1, 4096, 16, Layout{}},
  };
  return kSetups;
}

TEST(AgainstSimulation, AgreesWithinHalfAPercentWithoutAPipeline) {
  for (const Case& chosen : without_pipeline()) {
    const Both run = both(chosen);
    const double simulated = seconds(run.report.step_time);
    SCOPED_TRACE(std::string(chosen.model) + " tp " + std::to_string(chosen.layout.tp));
    ASSERT_LT(run.data_traffic_s, 0.02 * simulated) << "not a case of small traffic";
    // Asked for are 2 %; what MODEL 10.5 names comes to half a percent at the most.
    EXPECT_NEAR(run.estimate.step_time_s / simulated, 1.0, 0.005);
  }
}

// Parameters are rounded to three figures (up to half a percent); the vocabulary's embedding and
// head have as many collectives as half a layer, which the closed form leaves out.
TEST(AgainstSimulation, ComputeAndTensorTrafficAgreeTermByTerm) {
  for (const Case& chosen : without_pipeline()) {
    const Both run = both(chosen);
    SCOPED_TRACE(std::string(chosen.model) + " tp " + std::to_string(chosen.layout.tp));
    EXPECT_NEAR(run.estimate.parts.compute / seconds(run.report.breakdown.compute), 1.0, 0.005);
    const double with_ends = run.estimate.parts.tp * (1 + 0.5 / run.estimate.stage_layers);
    // What remains are the loss's all-reduces of one value a token: a few 1 / h.
    EXPECT_NEAR(seconds(run.report.breakdown.tp), with_ends, 0.002 * with_ends);
  }
}

// With a pipeline the last stage's head is imbalance, and fill and drain cost p - 1 micro-batches:
// both ways see both, whatever each calls imbalance or bubble.
TEST(AgainstSimulation, AgreesOnAPipelineOfEqualStages) {
  for (const Case& chosen : {Case{"llama3-70b", 64, 8192, 512, Layout{.tp = 8, .pp = 2, .dp = 4}},
                             Case{"llama3-70b", 64, 8192, 512, Layout{.tp = 8, .pp = 4, .dp = 2}},
                             Case{"llama3-70b", 64, 8192, 64, Layout{.tp = 8, .pp = 8, .dp = 1}},
                             Case{"gpt3-175b", 64, 2048, 96, Layout{.tp = 8, .pp = 8, .dp = 1}}}) {
    const Both run = both(chosen);
    SCOPED_TRACE(std::string(chosen.model) + " pp " + std::to_string(chosen.layout.pp));
    EXPECT_NEAR(run.estimate.step_time_s / seconds(run.report.step_time), 1.0, 0.02);
    const Breakdown& parts = run.report.breakdown;
    const double idle = seconds(parts.bubble) + seconds(parts.imbalance) + seconds(parts.pp);
    const EstimateParts& said = run.estimate.parts;
    EXPECT_NEAR(said.bubble + said.imbalance + said.pp, idle, 0.02 * run.estimate.step_time_s);
  }
}

}  // namespace
}  // namespace foretrain::test
