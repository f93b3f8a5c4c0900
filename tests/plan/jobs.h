#pragma once

#include "foretrain/plan.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain::test {

/// A job of presets, and the plan of it.
struct PlannedJob {
  TrainingJob job;
  PlanOptions options;
  Plan plan;
};

inline PlannedJob plan_with(const std::string& model,
                            std::int64_t gpus,
                            std::int64_t sequence_length,
                            std::int64_t batch,
                            const std::string& topology,
                            PlanOptions options) {
  PlannedJob planned;
  Expected<TrainingJob> job = read_job(model, topology, gpus, sequence_length, batch);
  if (!job) {
    ADD_FAILURE() << model << " on " << topology << ": " << job.error().list.front().message;
    return planned;
  }
  planned.job = *std::move(job);
  options.assumptions =
      default_assumptions(ClosedForm::kChapter, planned.job.model, planned.job.hardware);
  options.threads = 1;
  planned.options = options;
  Expected<Plan> plan = plan_layout(planned.job, options);
  if (!plan) {
    ADD_FAILURE() << plan.error().list.front().message;
    return planned;
  }
  planned.plan = *std::move(plan);
  return planned;
}

/// By the closed form alone.
inline PlannedJob plan_of(const std::string& model,
                          std::int64_t gpus,
                          std::int64_t sequence_length,
                          std::int64_t batch,
                          const std::string& topology = "dgx-h100-ndr400",
                          PlanOptions options = {}) {
  options.simulate = false;
  return plan_with(model, gpus, sequence_length, batch, topology, std::move(options));
}

/// Simulated as well.
inline PlannedJob simulated_plan_of(const std::string& model,
                                    std::int64_t gpus,
                                    std::int64_t sequence_length,
                                    std::int64_t batch,
                                    const std::string& topology = "dgx-h100-ndr400") {
  return plan_with(model, gpus, sequence_length, batch, topology, {});
}

/// Whether one line of a step's arithmetic holds the text.
inline bool says(const PlanStep& step, const std::string& text) {
  return std::any_of(step.arithmetic.begin(), step.arithmetic.end(), [&](const std::string& line) {
    return line.find(text) != std::string::npos;
  });
}

inline PlanStep step_named(const Plan& plan, const std::string& title) {
  for (const PlanStep& step : plan.steps) {
    if (step.title == title) {
      return step;
    }
  }
  ADD_FAILURE() << "no step \"" << title << "\"";
  return {};
}

/// "8 1 8 16": tp cp pp dp.
inline std::string degrees(const Layout& layout) {
  return std::to_string(layout.tp) + " " + std::to_string(layout.cp) + " " +
         std::to_string(layout.pp) + " " + std::to_string(layout.dp);
}

}  // namespace foretrain::test
