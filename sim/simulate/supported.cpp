#include "foretrain/schedule.h"
#include "foretrain/simulate.h"

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
  refusals.when(degrees.cp > 1, "/parallelism/cp", "context parallelism", "cp 1 is simulated");
  refusals.when(degrees.ep > 1, "/parallelism/ep", "expert parallelism", "ep 1 is simulated");
  refusals.when(degrees.etp > 1 && scenario.model.experts > 0,
                "/parallelism/etp",
                "expert tensor parallelism",
                "etp 1 is simulated");
  refusals.when(degrees.sharding == Sharding::kZero3,
                "/parallelism/sharding",
                "sharding zero3",
                "none, zero1 and zero2 are simulated");
  refusals.when(degrees.shard_group > 0,
                "/parallelism/shard_group",
                "hybrid sharding",
                "leave it out: states are sharded over all data-parallel ranks");
  refusals.when(degrees.fsdp.has_value(),
                "/parallelism/fsdp",
                "fully sharded data parallelism",
                "none, zero1 and zero2 are simulated");
  refusals.when(degrees.kv_replication,
                "/parallelism/kv_replication",
                "replication of key/value heads",
                "use tp up to the number of key/value heads");
}

void software(const Scenario& scenario, Refusals& refusals) {
  const auto narrow = [](DataType type) {
    return type == DataType::kFp8 || type == DataType::kNvfp4;
  };
  const PrecisionSpec& types = scenario.training.dtype;
  refusals.when(narrow(types.compute) || narrow(types.attention) || narrow(types.params) ||
                    narrow(types.grads) || narrow(types.param_gather),
                "/training/dtype",
                "8-bit and 4-bit precision",
                "bf16 and fp16 are simulated");
  refusals.when(types.compute == DataType::kFp32,
                "/training/dtype",
                "fp32 arithmetic",
                "bf16 and fp16 are simulated");
  refusals.when(scenario.overlap.tp,
                "/overlap/tp",
                "overlapped tensor-parallel communication",
                "false is simulated");
  refusals.when(scenario.network.mode != "analytic",
                "/network/mode",
                "network mode \"" + scenario.network.mode + "\"",
                "\"analytic\" is simulated");
  refusals.when(scenario.network.routing != "destination",
                "/network/routing",
                "routing \"" + scenario.network.routing + "\"",
                "\"destination\" is simulated");
  refusals.when(scenario.recompute.mode == RecomputeMode::kModules,
                "/recompute/mode",
                "recomputation by module",
                "none, selective and full are simulated");
}

void schedule(const Scenario& scenario, Refusals& refusals) {
  const ScheduleSpec& spec = scenario.schedule;
  bool built = false;
  std::string names;
  for (const ScheduleEntry& entry : schedule_table()) {
    built = built || entry.name == spec.name;
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  refusals.when(
      !spec.csv.empty(), "/schedule/csv", "a schedule from a file", names + " are simulated");
  refusals.when(spec.csv.empty() && !built,
                "/schedule",
                "schedule \"" + spec.name + "\"",
                names + " are simulated");
  refusals.when(spec.p2p != "eager", "/schedule/p2p", "rendezvous p2p", "\"eager\" is simulated");
  refusals.when(!spec.barrier,
                "/schedule/barrier",
                "a step without a barrier before the optimizer",
                "true is simulated");
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
    refusals.when(!jitter && perturbation.kind != "slow_gpu" && perturbation.kind != "slow_node",
                  pointer + "/kind",
                  "perturbation \"" + perturbation.kind + "\"",
                  "slow_gpu, slow_node and jitter of scope rank are simulated");
  }
}

}  // namespace

std::vector<Diagnostic> not_simulated(const Scenario& scenario) {
  Refusals refusals;
  refusals.when(
      scenario.model.experts > 0, "/model", "a mixture of experts", "dense models are simulated");
  refusals.when(scenario.model.kv_lora_rank > 0,
                "/model",
                "multi-latent attention",
                "multi-head and grouped-query attention are simulated");
  refusals.when(scenario.model.sliding_window > 0 &&
                    scenario.model.sliding_window < scenario.training.sequence_length,
                "/model",
                "sliding-window attention",
                "use a sequence no longer than the window");
  parallelism(scenario, refusals);
  software(scenario, refusals);
  schedule(scenario, refusals);
  perturbations(scenario, refusals);
  return refusals.take();
}

}  // namespace foretrain
