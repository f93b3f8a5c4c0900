#include "foretrain/scenario.h"
#include "sim/scenario/fabric_keys.h"
#include "sim/scenario/read_model.h"
#include "sim/scenario/sections.h"

#include <array>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

template <typename Enum, std::size_t N>
std::string word(const std::string_view (&words)[N], Enum value) {
  return std::string(words[static_cast<std::size_t>(value)]);
}

/// What of the fabric is not as the topology's file says.
Json fabric_json(const ClusterSpec& cluster) {
  Json json = Json::object();
  const Expected<TopologySpec> file = read_topology(cluster.topology);
  if (!file) {
    return json;
  }
  const TopologySpec& now = cluster.hardware;
  const auto put = [&](const char* key, const auto& value, const auto& stated) {
    if (value != stated && why_idle(key, now).empty()) {
      json[key] = value;
    }
  };
  put("fabric", word(kFabricNames, now.fabric), word(kFabricNames, file->fabric));
  put("off_rail", word(kOffRailNames, now.off_rail), word(kOffRailNames, file->off_rail));
  put("oversubscription", now.oversubscription, file->oversubscription);
  put("pod_oversubscription", now.pod_oversubscription, file->pod_oversubscription);
  put("nodes_per_leaf_group", now.nodes_per_leaf_group, file->nodes_per_leaf_group);
  put("gpus_per_pod", now.gpus_per_pod, file->gpus_per_pod);
  put("nics_per_node", now.nics_per_node, file->nics_per_node);
  const auto rate = [](Bandwidth of) { return std::to_string(of.bytes_per_second) + " B/s"; };
  put("nic_bandwidth", rate(now.nic_bandwidth), rate(file->nic_bandwidth));
  put("failed_links", now.failed_links, file->failed_links);
  put("failed_nodes", now.failed_nodes, file->failed_nodes);
  return json;
}

/// In the largest unit that states the duration as a whole number.
std::string duration_text(Duration duration) {
  struct Unit {
    const char* name;
    std::int64_t picoseconds;
  };
  constexpr std::array kUnits = {Unit{" s", 1'000'000'000'000},
                                 Unit{" ms", 1'000'000'000},
                                 Unit{" us", 1'000'000},
                                 Unit{" ns", 1000}};
  if (duration == Duration{}) {
    return "0 us";
  }
  for (const Unit& unit : kUnits) {
    if (duration.count() % unit.picoseconds == 0) {
      return std::to_string(duration.count() / unit.picoseconds) + unit.name;
    }
  }
  return std::to_string(duration.count()) + " ps";
}

bool same(const PrecisionSpec& a, const PrecisionSpec& b) {
  return a.compute == b.compute && a.recipe == b.recipe && a.attention == b.attention &&
         a.params == b.params && a.moments == b.moments && a.param_gather == b.param_gather;
}

Json dtype_json(const PrecisionSpec& precision) {
  const std::string name = word(kDataTypes, precision.compute);
  const bool short_form = name != "fp32";
  if (short_form && same(precision, precision_preset(name))) {
    return name;
  }
  Json json = {{"compute", name}};
  if (!precision.recipe.empty()) {
    json["recipe"] = precision.recipe;
  }
  json["attention"] = word(kDataTypes, precision.attention);
  json["params"] = word(kDataTypes, precision.params);
  json["grads"] = word(kDataTypes, precision.grads);
  json["moments"] = word(kDataTypes, precision.moments);
  json["param_gather"] = word(kDataTypes, precision.param_gather);
  return json;
}

Json training_json(const TrainingSpec& training) {
  return {{"sequence_length", training.sequence_length},
          {"global_batch_size", training.global_batch_size},
          {"micro_batch_size", training.micro_batch_size},
          {"dtype", dtype_json(training.dtype)},
          {"grad_dtype", word(kDataTypes, training.dtype.grads)},
          {"optimizer", training.optimizer},
          {"multi_token_prediction", training.multi_token_prediction},
          {"document_length", training.document_length}};
}

Json parallelism_json(const Scenario& scenario) {
  const Parallelism& p = scenario.parallelism;
  Json json = {{"tp", p.tp},
               {"cp", p.cp},
               {"pp", p.pp},
               {"vpp", p.vpp},
               {"ep", p.ep},
               {"etp", p.etp},
               {"dp", p.dp},
               {"order", p.order},
               {"sequence_parallel", p.sequence_parallel},
               {"sharding", word(kShardings, p.sharding)},
               {"embedding_and_loss_as_layers", p.embedding_and_loss_as_layers}};
  if (p.first_stage_layers) {
    json["first_stage_layers"] = *p.first_stage_layers;
  }
  if (p.last_stage_layers) {
    json["last_stage_layers"] = *p.last_stage_layers;
  }
  if (!p.layout.empty()) {
    json["layout"] = p.layout;
  }
  json["kv_replication"] = p.kv_replication;
  json["cp_kind"] = word(kContextKinds, p.cp_kind);
  json["shard_group"] = p.shard_group;
  if (p.fsdp) {
    json["fsdp"] = {{"unit", p.fsdp->unit},
                    {"prefetch", p.fsdp->prefetch},
                    {"reshard_after_forward", p.fsdp->reshard_after_forward},
                    {"reduction", p.fsdp->reduction}};
  }
  json["bucket_bytes"] = p.bucket_bytes;
  json["micro_batches"] = scenario.micro_batches();
  json["layers_per_stage"] = p.layers_per_stage;
  return json;
}

/// How a schedule's actions are run, whichever it is.
Json execution_json(const ScheduleSpec& schedule) {
  return {{"group", schedule.group},
          {"barrier", schedule.barrier},
          {"p2p", schedule.p2p},
          {"batched", schedule.batched},
          {"streams", schedule.streams},
          {"overlap_semantics", schedule.overlap_semantics}};
}

/// Its name where nothing else is said of it; else every key that it has.
Json schedule_json(const ScheduleSpec& schedule) {
  const bool own = !schedule.csv.empty();
  const bool sliced = !own && schedule.slices != ScheduleSpec{}.slices;
  const Json execution = execution_json(schedule);
  if (!own && !sliced && !schedule.overlapped && execution == execution_json({})) {
    return schedule.name;
  }
  Json json = {{own ? "csv" : "name", own ? schedule.csv : schedule.name}};
  json.update(execution);
  if (sliced) {
    json["slices"] = schedule.slices;
  }
  if (schedule.overlapped) {
    json["overlapped"] = duration_text(*schedule.overlapped);
  }
  return json;
}

Json recompute_json(const RecomputeSpec& recompute) {
  Json json = {{"mode", word(kRecomputeModes, recompute.mode)}};
  if (recompute.mode == RecomputeMode::kModules) {
    json["modules"] = recompute.modules;
  }
  if (recompute.layers) {
    json["layers"] = *recompute.layers;
  }
  return json;
}

Json stated_json(const StatedCosts& costs) {
  Json json = {{"model", "stated"},
               {"forward", duration_text(costs.forward)},
               {"backward", duration_text(costs.backward)},
               {"p2p", duration_text(costs.p2p)},
               {"optimizer", duration_text(costs.optimizer)}};
  const auto put = [&json](const char* key, const std::optional<Duration>& value) {
    if (value) {
      json[key] = duration_text(*value);
    }
  };
  put("dgrad", costs.dgrad);
  put("wgrad", costs.wgrad);
  put("overlapped", costs.overlapped);
  return json;
}

Json costs_json(const CostSpec& costs) {
  if (costs.stated) {
    return stated_json(*costs.stated);
  }
  if (!costs.constant) {
    return "calibrated";
  }
  return {{"model", "constant"},
          {"gemm_efficiency", costs.gemm_efficiency},
          {"attention_efficiency", costs.attention_efficiency},
          {"memory_bound_ops", costs.memory_bound_ops},
          {"launch_overhead", duration_text(costs.launch_overhead)},
          {"link_efficiency", costs.link_efficiency},
          {"link_latency", duration_text(costs.link_latency)},
          {"communication", costs.communication_free ? "free" : "links"},
          {"embedding_and_head", costs.embedding_and_head_free ? "free" : "counted"}};
}

Json contention_json(const OverlapSpec& overlap) {
  return !overlap.contention          ? Json("modelled")
         : *overlap.contention == 1.0 ? Json("none")
                                      : Json(*overlap.contention);
}

Json stack_fields(const StackSpec& stack) {
  return {{"name", stack.name},
          {"family", stack.family},
          {"year", stack.year},
          {"attention_kernel", stack.attention_kernel},
          {"fused_operators", stack.fused_operators},
          {"cuda_graphs", stack.cuda_graphs},
          {"fused_gradient_accumulation", stack.fused_gradient_accumulation},
          {"gradient_reduction", stack.gradient_reduction},
          {"dispatcher", stack.dispatcher},
          {"communication_sm_share", stack.communication_sm_share},
          {"expert_capacity", stack.expert_capacity},
          {"host_launch", duration_text(stack.host_launch)},
          {"host_sync", duration_text(stack.host_sync)}};
}

Json stack_json(const StackSpec& stack) {
  const std::optional<StackSpec> preset = stack_preset(stack.name);
  Json fields = stack_fields(stack);
  return preset && stack_fields(*preset) == fields ? Json(stack.name) : fields;
}

void put_load(Json& json, const Perturbation& entry, const char* key, const Json& value) {
  if (entry.file.empty()) {
    json[key] = value;
  } else {
    json["file"] = entry.file;
  }
}

Json perturbation_json(const Perturbation& entry) {
  Json json = {{"kind", entry.kind}};
  if (entry.kind == "slow_gpu") {
    json["ranks"] = entry.ranks;
    json["factor"] = entry.factor;
  } else if (entry.kind == "slow_node") {
    json["nodes"] = entry.nodes;
    json["factor"] = entry.factor;
  } else if (entry.kind == "slow_link") {
    json["link"] = entry.link;
    json["factor"] = entry.factor;
  } else if (entry.kind == "jitter") {
    json["scope"] = entry.scope;
    json["distribution"] = entry.distribution;
    json["sigma"] = entry.sigma;
  } else if (entry.kind == "pause") {
    json["ranks"] = entry.all_ranks ? Json("all") : Json(entry.ranks);
    json["length"] = duration_text(entry.length);
    json["period"] = duration_text(entry.period);
    json["in_phase"] = entry.in_phase;
  } else if (entry.kind == "sequence_lengths") {
    put_load(json, entry, "distribution", entry.distribution);
    json["sigma"] = entry.sigma;
  } else if (!entry.distribution.empty()) {
    json["distribution"] = entry.distribution;
    json["sigma"] = entry.sigma;
  } else {
    put_load(json, entry, "factor", entry.factor);
  }
  if (entry.steps) {
    json["steps"] = {entry.steps->first, entry.steps->last};
  }
  return json;
}

}  // namespace

std::string write_scenario(const Scenario& scenario) {
  const OverlapSpec& overlap = scenario.overlap;
  Json json = {{"name", scenario.name}};
  json["model"] = scenario.model_reference.empty()
                      ? Json::parse(write_model_object(scenario.model), nullptr, false)
                      : Json(scenario.model_reference);
  json["cluster"] = {{"topology", scenario.cluster.topology}, {"gpus", scenario.cluster.gpus}};
  if (Json fabric = fabric_json(scenario.cluster); !fabric.empty()) {
    json["cluster"]["fabric"] = std::move(fabric);
  }
  json["training"] = training_json(scenario.training);
  json["parallelism"] = parallelism_json(scenario);
  json["schedule"] = schedule_json(scenario.schedule);
  json["recompute"] = recompute_json(scenario.recompute);
  json["overlap"] = {{"tp", overlap.tp},
                     {"cp", overlap.cp},
                     {"pp", overlap.pp},
                     {"ep", overlap.ep},
                     {"dp_grad", overlap.dp_grad},
                     {"dp_param", overlap.dp_param},
                     {"contention", contention_json(overlap)}};
  json["network"] = {{"mode", scenario.network.mode}, {"routing", scenario.network.routing}};
  json["costs"] = costs_json(scenario.costs);
  json["stack"] = stack_json(scenario.stack);
  json["perturbations"] = Json::array();
  for (const Perturbation& entry : scenario.perturbations) {
    json["perturbations"].push_back(perturbation_json(entry));
  }
  json["seed"] = scenario.seed;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string write_schedule(const ScheduleSpec& schedule) {
  return schedule_json(schedule).dump();
}

}  // namespace foretrain
