#include "tools/plan_json.h"

#include "tools/estimate_output.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

Json steps_json(const Plan& plan) {
  Json steps = Json::array();
  for (const PlanStep& step : plan.steps) {
    steps.push_back({{"title", step.title},
                     {"question", step.question},
                     {"arithmetic", step.arithmetic},
                     {"decision", step.decision},
                     {"what_would_change", step.otherwise}});
  }
  return steps;
}

/// A layout's degrees, and its estimate beside them.
Json candidate_json(const Estimate& estimate) {
  Json json = layout_json(estimate.layout);
  json.update(estimate_json(estimate));
  return json;
}

Json candidate_or_null(const std::optional<Estimate>& estimate) {
  if (!estimate) {
    return nullptr;
  }
  const Layout& layout = estimate->layout;
  Json json = {{"gpus", layout.tp * layout.cp * layout.pp * layout.dp}};
  json.update(candidate_json(*estimate));
  return json;
}

Json time_json(const TrainingTime& time, const PlanOptions& options) {
  Json json;
  json["flops_per_token"] = time.flops_per_token;
  json["flops"] = time.flops;
  json["tokens"] = time.tokens;
  json["mfu"] = time.mfu;
  json["tokens_per_s_per_gpu"] = time.tokens_per_s_per_gpu;
  json["basis"] = time.basis;
  json["days"] = time.days;
  if (time.gpus_needed) {
    json["deadline_days"] = *options.days;
    json["gpus_needed"] = *time.gpus_needed;
    json["gpus_needed_whole"] = whole_json(std::ceil(*time.gpus_needed));
    json["gpus_that_share"] = candidate_or_null(time.deadline_layout);
    json["batch_that_shares"] = time.deadline_batch > 0 ? Json(time.deadline_batch) : Json(nullptr);
  }
  return json;
}

}  // namespace

Json plan_json(const TrainingJob& job, const PlanOptions& options, const Plan& plan) {
  Json json;
  json["feasible"] = plan.feasible;
  json["reason"] = plan.reason;
  json["steps"] = steps_json(plan);
  json["layout"] = plan.feasible ? layout_json(plan.estimate.layout) : Json(nullptr);
  json["estimate"] = plan.feasible ? estimate_json(plan.estimate) : Json(nullptr);
  json["simulated"] = simulated_json(plan.simulated);
  json["not_simulated"] = plan.not_simulated;
  json["rank"] = plan.rank > 0 ? Json(plan.rank) : Json(nullptr);
  json["ranked"] = plan.ranked;
  json["best"] = Json::array();
  for (const RankedLayout& layout : plan.best) {
    Json candidate = {{"rank", layout.closed_form_rank}};
    candidate.update(candidate_json(layout.estimate));
    json["best"].push_back(std::move(candidate));
  }
  if (!plan.feasible) {
    json["nearest"] = candidate_or_null(plan.nearest);
    json["smallest"] = candidate_or_null(plan.smallest);
  }
  if (plan.time) {
    json["days"] = plan.time->days;
    json["training"] = time_json(*plan.time, options);
  }
  json["assumptions"] = assumptions_json(options.assumptions, plan.estimate.layout, job.model);
  json["scenario"] = plan.scenario.empty() ? Json(nullptr) : Json::parse(plan.scenario);
  return json;
}

}  // namespace foretrain
