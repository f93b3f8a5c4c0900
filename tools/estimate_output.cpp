#include "tools/estimate_output.h"

#include "sim/base/format.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

constexpr const char* kShardingNames[] = {"none", "zero1", "zero2", "zero3"};

const char* sharding_name(Sharding sharding) {
  return kShardingNames[static_cast<std::size_t>(sharding)];
}

}  // namespace

nlohmann::ordered_json whole_json(double value) {
  constexpr double kLargestWhole = 9007199254740992;
  return value < kLargestWhole ? nlohmann::ordered_json(std::llround(value))
                               : nlohmann::ordered_json(value);
}

nlohmann::ordered_json layout_json(const Layout& layout) {
  nlohmann::ordered_json json;
  json["tp"] = layout.tp;
  json["cp"] = layout.cp;
  json["pp"] = layout.pp;
  json["dp"] = layout.dp;
  json["vpp"] = layout.vpp;
  json["ep"] = layout.ep;
  json["etp"] = layout.etp;
  json["micro_batch_size"] = layout.micro_batch_size;
  json["sharding"] = sharding_name(layout.sharding);
  json["schedule"] = layout.schedule;
  if (layout.slices > 1) {
    json["slices"] = layout.slices;
  }
  json["order"] = layout.order;
  return json;
}

nlohmann::ordered_json estimate_json(const Estimate& estimate) {
  nlohmann::ordered_json json;
  json["mfu"] = estimate.mfu;
  json["step_time_s"] = estimate.step_time_s;
  json["memory_bytes"] = whole_json(estimate.memory.total());
  json["memory_parts_bytes"] = {{"weights", whole_json(estimate.memory.weights)},
                                {"gradients", whole_json(estimate.memory.gradients)},
                                {"optimizer", whole_json(estimate.memory.optimizer)},
                                {"activations", whole_json(estimate.memory.activations)}};
  json["memory_limit_bytes"] = whole_json(estimate.memory_limit);
  json["fits"] = estimate.fits;
  json["recompute_layers"] = estimate.recompute_layers;
  json["stage_layers"] = estimate.stage_layers;
  json["micro_batches"] = estimate.micro_batches;
  for (const EstimatePart& part : estimate_parts()) {
    json["shares"][std::string(part.key)] = estimate.parts.*part.member / estimate.step_time_s;
  }
  return json;
}

nlohmann::ordered_json simulated_json(const std::optional<SimulatedLayout>& simulated) {
  if (!simulated) {
    return nullptr;
  }
  nlohmann::ordered_json json;
  json["mfu"] = simulated->mfu;
  json["step_time_s"] = simulated->step_time_s;
  json["memory_bytes"] = simulated->memory_bytes;
  json["fits"] = std::string(to_string(simulated->fits));
  json["deadlock"] = simulated->deadlock;
  return json;
}

nlohmann::ordered_json assumptions_json(const Assumptions& assumptions,
                                        const Layout& layout,
                                        const ModelConfig& model) {
  nlohmann::ordered_json json;
  json["name"] = std::string(to_string(assumptions.form));
  for (const AssumptionRow& row : assumption_rows()) {
    if (row.used_by(assumptions.form) && (!row.experts || model.experts > 0)) {
      json[std::string(row.key)] = assumptions.*row.member;
    }
  }
  json["sharding"] = sharding_name(layout.sharding);
  json["vpp"] = layout.vpp;
  if (layout.recompute_layers == kRecomputeAsNeeded) {
    json["recompute_layers"] = "as_needed";
  } else {
    json["recompute_layers"] = layout.recompute_layers;
  }
  return json;
}

std::string layout_text(const Layout& layout) {
  return to_string(layout);
}

std::string shares_text(const Estimate& estimate) {
  constexpr double kShown = 0.005;
  std::string text;
  for (const EstimatePart& part : estimate_parts()) {
    const double share = estimate.parts.*part.member / estimate.step_time_s;
    if (share >= kShown) {
      text += (text.empty() ? "" : " · ") + std::string(part.label) + " " + percent(share, 0);
    }
  }
  return text;
}

std::string recompute_text(const Estimate& estimate) {
  if (estimate.recompute_layers == 0) {
    return "";
  }
  const bool whole = estimate.stage_layers == std::floor(estimate.stage_layers);
  const std::string layers = fixed(estimate.stage_layers, whole ? 0 : 1) + " layers";
  const bool more = static_cast<double>(estimate.recompute_layers) > estimate.stage_layers;
  return "recompute " + (more ? "all " : std::to_string(estimate.recompute_layers) + " of ") +
         layers;
}

}  // namespace foretrain
