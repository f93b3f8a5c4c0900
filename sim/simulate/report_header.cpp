#include "sim/base/format.h"
#include "sim/scenario/sections.h"
#include "sim/simulate/parts.h"

#include <string>

namespace foretrain {
namespace {

std::string_view sharding_name(Sharding sharding) {
  return sharding == Sharding::kNone ? "no sharding"
                                     : kShardings[static_cast<std::size_t>(sharding)];
}

std::string recompute_name(const RecomputeSpec& recompute) {
  switch (recompute.mode) {
    case RecomputeMode::kNone:
      return "no recompute";
    case RecomputeMode::kSelective:
      return "selective recompute";
    case RecomputeMode::kFull:
      return "full recompute";
    case RecomputeMode::kModules:
      return "recompute by module";
  }
  return "";
}

/// A table's name, or the file of the user's own lists.
std::string schedule_name(const ScheduleSpec& spec) {
  return spec.lists ? spec.lists->name : spec.name;
}

}  // namespace

std::string_view type_name(DataType type) {
  return kDataTypes[static_cast<std::size_t>(type)];
}

ReportHeader header_of(const Scenario& scenario) {
  const Parallelism& degrees = scenario.parallelism;
  const TopologySpec& hardware = scenario.cluster.hardware;
  const std::int64_t nodes =
      (scenario.cluster.gpus + hardware.gpus_per_node - 1) / hardware.gpus_per_node;
  ReportHeader header;
  header.name = scenario.name;
  header.model = scenario.model.name;
  header.cluster = with_commas(scenario.cluster.gpus) + " " + hardware.gpu.display_name + " (" +
                   with_commas(nodes) + (nodes == 1 ? " node x " : " nodes x ") +
                   std::to_string(hardware.gpus_per_node) + ", " + hardware.network_name + ")";
  const PrecisionSpec& types = scenario.training.dtype;
  const bool named = !types.recipe.empty() && types.recipe != type_name(types.compute);
  header.precision = std::string(type_name(types.compute)) + (named ? " " + types.recipe : "") +
                     " · " + with_commas(scenario.training.sequence_length) + " " +
                     plural("token", scenario.training.sequence_length) + " x " +
                     with_commas(scenario.training.global_batch_size) + " " +
                     plural("sequence", scenario.training.global_batch_size);
  const std::string experts =
      scenario.model.experts == 0
          ? ""
          : " · ep " + std::to_string(degrees.ep) +
                (degrees.etp > 1 ? " (etp " + std::to_string(degrees.etp) + ")" : "");
  header.layout =
      "tp " + std::to_string(degrees.tp) + " · cp " + std::to_string(degrees.cp) + experts +
      " · pp " + std::to_string(degrees.pp) +
      (degrees.vpp > 1 ? " (vpp " + std::to_string(degrees.vpp) + ")" : "") + " · dp " +
      std::to_string(degrees.dp) + " · " + std::string(sharding_name(degrees.sharding)) + " · " +
      schedule_name(scenario.schedule) + " · " + std::to_string(scenario.micro_batches()) + " " +
      plural("micro-batch", scenario.micro_batches()) + " of " +
      std::to_string(scenario.training.micro_batch_size) + " · " +
      recompute_name(scenario.recompute) + " · " +
      (scenario.costs.stated     ? "stated costs"
       : scenario.costs.constant ? "constant costs"
                                 : "stack " + scenario.stack.name);
  header.scenario_json = write_scenario(scenario);
  return header;
}

}  // namespace foretrain
