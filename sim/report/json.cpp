#include "foretrain/report.h"
#include "sim/report/exact_parts.h"

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

Json breakdown_json(const StepReport& report) {
  std::vector<Duration> parts;
  for (const BreakdownPart& part : breakdown_parts()) {
    parts.push_back(report.breakdown.*part.member);
  }
  const std::vector<double> values = exact_seconds(parts, report.step_time);
  Json json = Json::object();
  for (std::size_t i = 0; i < values.size(); ++i) {
    json[std::string(breakdown_parts()[i].key)] = values[i];
  }
  return json;
}

Json stage_json(const StageReport& stage) {
  const StageMemory& memory = stage.memory;
  return Json{{"pp_rank", stage.pp_rank},
              {"layers", stage.layers},
              {"embedding", stage.embedding},
              {"head", stage.head},
              {"busy_s", seconds(stage.busy)},
              {"idle_s", seconds(stage.idle)},
              {"bubble_ratio", stage.bubble_ratio},
              {"in_flight_peak", stage.in_flight_peak},
              {"memory_bytes",
               Json{{"weights", memory.weights},
                    {"gradients", memory.gradients},
                    {"optimizer", memory.optimizer},
                    {"activations", memory.activations},
                    {"logits", memory.logits},
                    {"buffers", memory.buffers},
                    {"peak", memory.peak},
                    {"reserved", memory.reserved}}}};
}

Json network_json(const NetworkReport& network) {
  return Json{{"group", network.group},
              {"size", network.size},
              {"inside_node", network.inside_node},
              {"exposed_s", seconds(network.exposed)},
              {"hidden_s", seconds(network.hidden)},
              {"wait_s", seconds(network.wait)},
              {"bytes", network.bytes},
              {"bus_bandwidth", network.bus_bandwidth},
              {"limiting_link", network.limiting_link}};
}

template <typename Row, typename Function>
Json array_of(const std::vector<Row>& rows, Function&& row_json) {
  Json json = Json::array();
  for (const Row& row : rows) {
    json.push_back(row_json(row));
  }
  return json;
}

void add_times(Json& json, const StepReport& report) {
  json["step_time_s"] = seconds(report.step_time);
  json["isolated_step_s"] = seconds(report.isolated_step);
  json["tokens_per_s"] = report.tokens_per_s;
  json["tokens_per_s_per_gpu"] = report.tokens_per_s_per_gpu;
  json["tflops_per_gpu"] = report.tflops_per_gpu;
  json["mfu"] = report.mfu;
  json["hfu"] = report.hfu;
  json["mfu_by_convention"] = Json{
      {"causal", report.mfu_causal}, {"full", report.mfu_full}, {"hardware", report.mfu_hardware}};
}

/// A run that never ends has no times: null, not zero.
void add_no_times(Json& json) {
  for (const char* key : {"step_time_s",
                          "isolated_step_s",
                          "tokens_per_s",
                          "tokens_per_s_per_gpu",
                          "tflops_per_gpu",
                          "mfu",
                          "hfu",
                          "mfu_by_convention"}) {
    json[key] = nullptr;
  }
}

Json steps_json(const StepStatistics& steps) {
  return Json{{"n", steps.n},
              {"mean_s", steps.mean_s},
              {"stddev_s", steps.stddev_s},
              {"p5_s", steps.p5_s},
              {"p50_s", steps.p50_s},
              {"p95_s", steps.p95_s},
              {"p99_s", steps.p99_s},
              {"max_s", steps.max_s}};
}

Json simulation_json(const SimulationFacts& facts) {
  return Json{{"evaluator", facts.evaluator},
              {"ranks_total", facts.ranks_total},
              {"ranks_simulated", facts.ranks_simulated},
              {"tasks", facts.tasks},
              {"wall_s", facts.wall_s},
              {"peak_rss_bytes", facts.peak_rss_bytes},
              {"seed", facts.seed},
              {"version", facts.version}};
}

void add_lists(Json& json, const StepReport& report) {
  json["stages"] = array_of(report.stages, stage_json);
  json["memory"] = Json{{"peak_bytes", report.memory_peak},
                        {"peak_stage", report.memory_peak_stage},
                        {"capacity_bytes", report.memory_capacity},
                        {"fits", std::string(to_string(report.fits))}};
  json["layer_activations"] = array_of(report.layer_activations, [](const LayerActivation& kept) {
    return Json{{"tensor", kept.tensor}, {"bytes", kept.bytes}};
  });
  json["network"] = array_of(report.network, network_json);
  json["busiest_links"] = array_of(report.busiest_links, [](const LinkReport& link) {
    return Json{{"id", link.id},
                {"bytes", link.bytes},
                {"bandwidth", link.bandwidth},
                {"utilisation", link.utilisation},
                {"carries", link.carries},
                {"alike", link.alike}};
  });
  json["critical_path"] = array_of(report.critical_path, [](const PathShare& part) {
    return Json{{"kind", part.kind}, {"time_s", seconds(part.time)}, {"share", part.share}};
  });
  json["stragglers"] = array_of(report.stragglers, [](const StragglerCost& cost) {
    return Json{{"cause", cost.cause}, {"cost_s", seconds(cost.cost)}, {"share", cost.share}};
  });
}

}  // namespace

std::string report_json(const StepReport& report) {
  Json json = Json::object();
  Json scenario = Json::parse(report.header.scenario_json, nullptr, false);
  json["scenario"] = scenario.is_discarded() ? Json::object() : std::move(scenario);
  json["outcome"] = report.deadlock ? "deadlock" : "completed";
  json["blocked"] = array_of(report.blocked, [](const BlockedLine& line) {
    return Json{{"rank", line.rank}, {"task", line.task}, {"waiting_for", line.waiting_for}};
  });
  if (report.deadlock) {
    json["deadlock_grid"] = report.deadlock_grid;
    add_no_times(json);
  } else {
    add_times(json, report);
  }
  json["peak_tflops"] = report.peak_tflops;
  json["peak_precision"] = report.peak_precision;
  json["flops_per_token"] = report.flops_per_token;
  json["flops_convention"] = report.flops_convention;
  json["parameters"] = report.parameters;
  json["gpus"] = report.gpus;
  json["breakdown_s"] = report.deadlock ? Json(nullptr) : breakdown_json(report);
  add_lists(json, report);
  json["steps"] = report.deadlock ? Json(nullptr) : steps_json(report.steps);
  json["assumed"] = report.assumed;
  json["notes"] = report.notes;
  json["simulation"] = simulation_json(report.simulation);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace foretrain
