// Rules that hold for every model and cluster: the plan is legal and fits, what is written on the
// board can be reckoned again, and a refusal has a reason.
#include "tests/plan/arithmetic.h"
#include "tests/plan/jobs.h"

#include "foretrain/model.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain::test {
namespace {

void check_arithmetic(const Plan& plan, int& reckoned) {
  for (const PlanStep& step : plan.steps) {
    for (const std::string& line : step.arithmetic) {
      EXPECT_EQ(arithmetic_fault(line), "");
      EXPECT_LE(line.size(), 130U) << line;
      reckoned += line.find(" = ") == std::string::npos ? 0 : 1;
    }
  }
}

/// Legal: the scenario reads back with the plan's degrees. Fits: by the closed form, and by the
/// bytes of its parts.
void check_feasible(const PlannedJob& planned) {
  const Layout& layout = planned.plan.estimate.layout;
  const Expected<Scenario> scenario = parse_scenario(planned.plan.scenario);
  ASSERT_TRUE(scenario) << scenario.error().list.front().message;
  EXPECT_EQ(scenario->parallelism.tp, layout.tp);
  EXPECT_EQ(scenario->parallelism.cp, layout.cp);
  EXPECT_EQ(scenario->parallelism.pp, layout.pp);
  EXPECT_EQ(scenario->parallelism.ep, layout.ep);
  EXPECT_EQ(scenario->parallelism.dp, layout.dp);
  EXPECT_EQ(layout.tp * layout.cp * layout.pp * layout.dp, planned.job.gpus);
  EXPECT_EQ(scenario->micro_batches(), planned.plan.estimate.micro_batches);
  EXPECT_EQ(scenario->recompute.layers.value_or(0), planned.plan.estimate.recompute_layers);
  EXPECT_EQ(scenario->recompute.mode == RecomputeMode::kFull,
            planned.plan.estimate.recompute_layers > 0);
  const EstimateMemory& memory = planned.plan.estimate.memory;
  const double usable = 0.9 * static_cast<double>(planned.job.hardware.gpu.memory_as_sold.value);
  EXPECT_LE(memory.weights + memory.gradients + memory.optimizer + memory.activations, usable);
  EXPECT_TRUE(planned.plan.reason.empty());
  EXPECT_GT(planned.plan.estimate.mfu, 0);
}

void check_infeasible(const PlannedJob& planned) {
  EXPECT_FALSE(planned.plan.reason.empty());
  EXPECT_TRUE(planned.plan.scenario.empty());
  EXPECT_EQ(planned.plan.steps.back().title, "No layout");
}

TEST(PlanInvariants, EveryPresetOnClustersOfEverySize) {
  int reckoned = 0;
  int feasible = 0;
  int infeasible = 0;
  for (const std::string& model : model_presets()) {
    for (const char* topology : {"dgx-a100-hdr200", "dgx-h100-ndr400", "gb200-nvl72"}) {
      for (const std::int64_t gpus : {1, 6, 8, 12, 64, 1000, 1024, 16384}) {
        for (const auto& [sequence, batch] :
             {std::pair{2048, 512}, std::pair{8192, 60}, std::pair{131072, 16}}) {
          SCOPED_TRACE(model + " on " + std::to_string(gpus) + " of " + topology + ", " +
                       std::to_string(sequence) + " x " + std::to_string(batch));
          if (!read_job(model, topology, gpus, sequence, batch)) {
            continue;  // beyond the model's learned positions
          }
          const PlannedJob planned = plan_of(model, gpus, sequence, batch, topology);
          check_arithmetic(planned.plan, reckoned);
          planned.plan.feasible ? check_feasible(planned) : check_infeasible(planned);
          ++(planned.plan.feasible ? feasible : infeasible);
        }
      }
    }
  }
  // The rules above were put to something.
  EXPECT_GT(feasible, 200);
  EXPECT_GT(infeasible, 200);
  EXPECT_GT(reckoned, 20 * feasible);
}

// What search finds, plan finds a way to as well, if not the same.
TEST(PlanInvariants, FeasibleWhereverSearchFindsALayout) {
  for (const std::string& model : model_presets()) {
    for (const std::int64_t gpus : {8, 48, 64, 512}) {
      const PlannedJob planned = plan_of(model, gpus, 1024, 96);
      SearchOptions options;
      options.axes.uneven_stages = true;
      options.assumptions = planned.options.assumptions;
      options.simulate = 0;
      const Expected<SearchResult> found = search(planned.job, options);
      ASSERT_TRUE(found);
      EXPECT_EQ(planned.plan.feasible, !found->layouts.empty()) << model << " on " << gpus;
    }
  }
}

TEST(PlanInvariants, ThreadsChangeNothing) {
  const PlannedJob one = plan_of("deepseek-v3", 2048, 4096, 15360, "h800-ndr400");
  PlanOptions options = one.options;
  options.threads = 7;
  const Expected<Plan> seven = plan_layout(one.job, options);
  ASSERT_TRUE(seven);
  EXPECT_EQ(seven->scenario, one.plan.scenario);
  ASSERT_EQ(seven->steps.size(), one.plan.steps.size());
  for (std::size_t at = 0; at < one.plan.steps.size(); ++at) {
    EXPECT_EQ(seven->steps[at].arithmetic, one.plan.steps[at].arithmetic);
  }
}

// What is said agrees: a plan that is feasible fits when simulated, one that is not has no layout,
// and says why. Small jobs, of which some do not fit once their logits are counted.
TEST(PlanInvariants, FeasibleMeansThatTheSimulationFits) {
  int moved = 0;
  int refused = 0;
  int simulated = 0;
  for (const char* model : {"llama2-7b", "llama3.2-1b", "llama3-8b"}) {
    for (const std::int64_t gpus : {1, 2, 4, 8, 32}) {
      for (const std::int64_t sequence : {8192, 32768, 131072}) {
        const std::int64_t batch = 2 * gpus;
        SCOPED_TRACE(std::string(model) + " on " + std::to_string(gpus) + ", " +
                     std::to_string(sequence));
        if (!read_job(model, "dgx-h100-ndr400", gpus, sequence, batch)) {
          continue;
        }
        const PlannedJob planned = simulated_plan_of(model, gpus, sequence, batch);
        const Plan& plan = planned.plan;
        int reckoned = 0;
        check_arithmetic(plan, reckoned);
        const bool retried =
            std::any_of(plan.steps.begin(), plan.steps.end(), [](const PlanStep& step) {
              return step.title == "Simulated memory";
            });
        if (!plan.feasible) {
          check_infeasible(planned);
          EXPECT_FALSE(plan.simulated);
          refused += retried ? 1 : 0;
          continue;
        }
        check_feasible(planned);
        EXPECT_NE(plan.simulated.has_value(), !plan.not_simulated.empty());
        if (!plan.simulated) {
          continue;
        }
        ++simulated;
        EXPECT_FALSE(plan.simulated->deadlock);
        // The verdict from its bytes, the scenario's own from a run of its own.
        EXPECT_LE(plan.simulated->memory_bytes + 1'500'000'000, plan.simulated->memory_capacity);
        const auto again = simulate_text(plan.scenario);
        ASSERT_TRUE(again);
        EXPECT_EQ(again->memory_bytes, plan.simulated->memory_bytes);
        EXPECT_EQ(again->step_time_s, plan.simulated->step_time_s);
        moved += retried ? 1 : 0;
      }
    }
  }
  EXPECT_GT(moved, 0);
  EXPECT_GT(refused, 0);
  EXPECT_GT(simulated, 2 * moved);
}

// The reckoner of these tests sees what is wrong.
TEST(PlanArithmetic, WrongLinesAreSeen) {
  EXPECT_EQ(arithmetic_fault("16 x 175e9 = 2.8e12 bytes = 2.8 TB (2 weights)"), "");
  EXPECT_NE(arithmetic_fault("16 x 175e9 = 2.9e12 bytes"), "");
  EXPECT_NE(arithmetic_fault("16 x 175e9 = 2.8e12 bytes = 2.8 GB"), "");
  EXPECT_EQ(arithmetic_fault("p 8: 2.8e12 / (8 x 8) = 43.75 GB, fits"), "");
  EXPECT_NE(arithmetic_fault("p 8: 2.8e12 / (8 x 8) = 44.2 GB, fits"), "");
  EXPECT_EQ(arithmetic_fault("of busy time, (p - 1) / m: 7/96 = 7.3 %"), "");
  EXPECT_NE(arithmetic_fault("of busy time, (p - 1) / m: 7/96 = 7.5 %"), "");
  EXPECT_NE(arithmetic_fault("left: 72 GB - 13 GB = 60 GB"), "");
  EXPECT_NE(arithmetic_fault("left: 72 GB of 13 GB = 60 GB"), "");
  EXPECT_EQ(arithmetic_fault("m = 1536 / 16 = 96 of one sequence"), "");
  EXPECT_NE(arithmetic_fault("m = 1536 / 16 = 97 of one sequence"), "");
  // What rounding can do, as a stranger found it.
  for (const char* line : {"128e9 / 80e9 = 1.606",
                           "128e9 / 180e9 = 0.714",
                           "p 2: 128e9 / 2 = 64.24 GB",
                           "left: 167.4 GB - 128 GB = 38.92 GB",
                           "3.77e9 / 11.1e9 = 0.342",
                           "10.7e12 / 180e9 = 59.7"}) {
    EXPECT_NE(arithmetic_fault(line), "") << line;
  }
  EXPECT_EQ(arithmetic_fault("128.5e9 / 80e9 = 1.61"), "");
  EXPECT_EQ(arithmetic_fault("left: 167.4 GB - 128.5 GB = 38.9 GB"), "");
}

}  // namespace
}  // namespace foretrain::test
