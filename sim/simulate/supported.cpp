#include "foretrain/mesh.h"
#include "foretrain/schedule.h"
#include "foretrain/simulate.h"
#include "sim/lower/lower.h"
#include "sim/lower/placement.h"

#include <algorithm>
#include <string>
#include <vector>

/// What a scenario may say that is not simulated yet: refused by name, never ignored.
namespace foretrain {
namespace {

class Refusals {
 public:
  void when(bool asked, std::string pointer, const std::string& what, std::string hint) {
    if (asked) {
      list_.push_back({std::move(pointer), what + " is not simulated yet", std::move(hint)});
    }
  }
  std::vector<Diagnostic> take() { return std::move(list_); }

 private:
  std::vector<Diagnostic> list_;
};

void parallelism(const Scenario& scenario, Refusals& refusals) {
  const Parallelism& degrees = scenario.parallelism;
  const bool windowed = scenario.model.sliding_window > 0 &&
                        scenario.model.sliding_window < scenario.training.sequence_length;
  refusals.when(degrees.cp > 1 && windowed,
                "/parallelism/cp",
                "context parallelism over sliding-window attention",
                "use cp 1, or a sequence no longer than the window");
  refusals.when(scenario.training.document_length > 0 && windowed,
                "/training/document_length",
                "a document mask with sliding-window attention",
                "leave document_length out");
  const FsdpSpec fsdp = degrees.fsdp.value_or(FsdpSpec{});
  refusals.when(degrees.sharding == Sharding::kZero3 && fsdp.unit == "model" && degrees.vpp > 1,
                "/parallelism/fsdp/unit",
                "one unit over several chunks of a rank",
                "\"stage\" gathers chunk by chunk");
}

void precision(const PrecisionSpec& types, Refusals& refusals) {
  refusals.when(types.compute == DataType::kFp32,
                "/training/dtype",
                "fp32 arithmetic",
                "bf16, fp16, fp8 and nvfp4 are simulated");
  refusals.when(is_narrow(types.attention) || types.attention == DataType::kFp32,
                "/training/dtype/attention",
                "attention in fp8, nvfp4 or fp32",
                "bf16 and fp16 are simulated");
  refusals.when(is_narrow(types.grads),
                "/training/dtype/grads",
                "gradients in fp8 or nvfp4",
                "fp32 and bf16 are simulated");
  refusals.when(types.params == DataType::kNvfp4,
                "/training/dtype/params",
                "weights stored in nvfp4",
                "bf16 and fp8 are simulated");
  refusals.when(types.param_gather == DataType::kNvfp4,
                "/training/dtype/param_gather",
                "parameters gathered in nvfp4",
                "bf16 and fp8 are simulated");
}

bool crosses_nodes(const Scenario& scenario, const char* dimension) {
  const Expected<DeviceMesh> mesh = DeviceMesh::build(mesh_size(scenario));
  if (!mesh) {
    return false;
  }
  const std::int64_t node = scenario.cluster.hardware.gpus_per_node;
  const std::vector<ProcessGroup> groups = mesh->groups(dimension);
  return std::any_of(groups.begin(), groups.end(), [node](const ProcessGroup& group) {
    return group.ranks.front() / node != group.ranks.back() / node;
  });
}

void software(const Scenario& scenario, Refusals& refusals) {
  precision(scenario.training.dtype, refusals);
  const bool overlaps = scenario.overlap.tp && scenario.parallelism.tp > 1;
  refusals.when(overlaps && !scenario.parallelism.sequence_parallel,
                "/overlap/tp",
                "overlapped tensor-parallel communication without sequence_parallel",
                "an all-reduce is not cut beside GEMMs: set sequence_parallel, or tp to false");
  refusals.when(overlaps && crosses_nodes(scenario, "tp"),
                "/overlap/tp",
                "overlapped tensor-parallel communication between nodes",
                "user buffers need NVLink: keep tp within a node, or set it to false");
}

bool has_overlapped_units(const Scenario& scenario) {
  if (scenario.schedule.lists) {
    const Schedule& lists = *scenario.schedule.lists;
    return std::any_of(lists.ranks.begin(), lists.ranks.end(), [](const auto& list) {
      return std::any_of(
          list.begin(), list.end(), [](const Action& action) { return action.overlapped; });
    });
  }
  const ScheduleEntry* const entry = find_schedule(scenario.schedule.name);
  return entry != nullptr && entry->overlaps;
}

void schedule(const Scenario& scenario, Refusals& refusals) {
  const Parallelism& degrees = scenario.parallelism;
  const bool units = has_overlapped_units(scenario);
  const bool zero3 = degrees.sharding == Sharding::kZero3;
  refusals.when(scenario.overlap.ep && degrees.ep > 1 && !units,
                "/overlap/ep",
                "expert communication behind compute outside overlapped units",
                "set it to false, or take a schedule with overlapped units: dualpipe, dualpipev, "
                "1f1b-overlap, interleaved-overlap");
  refusals.when(scenario.overlap.ep && degrees.ep > 1 && units &&
                    scenario.schedule.overlap_semantics == "sequential",
                "/overlap/ep",
                "expert communication behind compute in sequential units",
                "set it to false, or overlap_semantics to \"atomic\"");
  refusals.when(units && zero3,
                "/parallelism/sharding",
                "zero3 in overlapped forward-backward units",
                "zero1 and zero2 are simulated");
  refusals.when(scenario.costs.stated && zero3,
                "/parallelism/sharding",
                "zero3 under stated phase times",
                "none, zero1 and zero2 are simulated");
  refusals.when(scenario.schedule.slices > 1 && degrees.cp > 1,
                "/schedule/slices",
                "sequence slices with context parallelism",
                "cp 1 is simulated");
  refusals.when(scenario.schedule.slices > 1 && scenario.model.sliding_window > 0,
                "/schedule/slices",
                "sequence slices over sliding-window attention",
                "use slices 1");
}

void perturbations(const Scenario& scenario, Refusals& refusals) {
  for (std::size_t i = 0; i < scenario.perturbations.size(); ++i) {
    const Perturbation& perturbation = scenario.perturbations[i];
    const std::string pointer = "/perturbations/" + std::to_string(i);
    const bool jitter = perturbation.kind == "jitter";
    refusals.when(jitter && perturbation.scope != "rank",
                  pointer + "/scope",
                  "jitter of scope \"" + perturbation.scope + "\"",
                  "scope \"rank\" is simulated");
    const bool expert = perturbation.kind == "expert_imbalance";
    const bool link = perturbation.kind == "slow_link";
    refusals.when(
        !jitter && !expert && !link && perturbation.kind != "slow_gpu" &&
            perturbation.kind != "slow_node",
        pointer + "/kind",
        "perturbation \"" + perturbation.kind + "\"",
        "slow_gpu, slow_node, slow_link, expert_imbalance and jitter of scope rank are simulated");
    refusals.when(
        (expert || link) && perturbation.steps.has_value(),
        pointer + "/steps",
        std::string(expert ? "an expert imbalance" : "a slow link") + " of some steps only",
        "leave steps out");
  }
}

}  // namespace

std::vector<Diagnostic> not_simulated(const Scenario& scenario) {
  Refusals refusals;
  parallelism(scenario, refusals);
  software(scenario, refusals);
  schedule(scenario, refusals);
  perturbations(scenario, refusals);
  return refusals.take();
}

std::vector<Diagnostic> cluster_part_faults(const Scenario& scenario) {
  Expected<Topology> topology = topology_of(scenario);
  return topology ? std::vector<Diagnostic>{} : std::move(topology.error().list);
}

std::vector<Diagnostic> cluster_faults(const Scenario& scenario) {
  Expected<Topology> topology = topology_of(scenario);
  return topology ? parted_groups(scenario, *topology) : std::move(topology.error().list);
}

std::vector<Diagnostic> simulation_faults(const Scenario& scenario) {
  std::vector<Diagnostic> faults = not_simulated(scenario);
  if (faults.empty()) {
    Expected<Lowered> lowered = lower(scenario);
    return lowered ? std::move(faults) : std::move(lowered.error().list);
  }
  for (Diagnostic& fault : cluster_faults(scenario)) {
    faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace foretrain
