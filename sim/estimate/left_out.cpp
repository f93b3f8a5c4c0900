// What the rules do not count, said rather than ignored.
#include "foretrain/estimate.h"
#include "sim/scenario/sections.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr std::string_view kUnlessAssumed = " unless assumed otherwise";

class Notes {
 public:
  void when(bool said, std::string note) {
    if (said) {
      list_.push_back(std::move(note));
    }
  }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

/// A word of a scenario file.
template <typename Enum, std::size_t N>
std::string word_of(Enum value, const std::string_view (&words)[N]) {
  return std::string(words[static_cast<std::size_t>(value)]);
}

bool usual_overlap(const OverlapSpec& overlap) {
  const OverlapSpec usual;
  return overlap.tp == usual.tp && overlap.cp == usual.cp && overlap.pp == usual.pp &&
         overlap.ep == usual.ep && overlap.dp_grad == usual.dp_grad &&
         overlap.dp_param == usual.dp_param && overlap.contention.value_or(1.0) == 1.0;
}

/// Ranks of the pipeline with other numbers of layers.
bool uneven(const Parallelism& degrees) {
  std::vector<std::int64_t> held(static_cast<std::size_t>(degrees.pp), 0);
  for (std::size_t at = 0; at < degrees.layers_per_stage.size(); ++at) {
    held[at % held.size()] += degrees.layers_per_stage[at];
  }
  return std::adjacent_find(held.begin(), held.end(), std::not_equal_to<>()) != held.end();
}

void chapter_notes(const Scenario& scenario, Notes& notes) {
  const Parallelism& degrees = scenario.parallelism;
  const std::string otherwise(kUnlessAssumed);
  notes.when(degrees.sharding != Sharding::kZero1,
             "sharding " + word_of(degrees.sharding, kShardings) + ": zero1 over dp x cp counts" +
                 otherwise);
  notes.when(degrees.vpp > 1,
             "vpp " + std::to_string(degrees.vpp) + ": 1 counts" + otherwise +
                 ", so the bubble is pp - 1 micro-batches");
  notes.when(scenario.schedule.name != "1f1b",
             "schedule " + scenario.schedule.name + ": 1f1b counts");
  notes.when(scenario.recompute.mode != RecomputeMode::kNone,
             "recompute " + word_of(scenario.recompute.mode, kRecomputeModes) +
                 ": whole layers recompute, as few as fit" + otherwise);
  notes.when(!usual_overlap(scenario.overlap),
             "overlap: cp_overlap, pp_overlap and dp_overlap say what is hidden; tensor traffic is "
             "exposed");
  notes.when(degrees.cp > 1 && degrees.cp_kind != ContextKind::kRing,
             "cp_kind: context parallelism counts as a ring");
}

void workshop_notes(const Scenario& scenario, Notes& notes) {
  const Parallelism& degrees = scenario.parallelism;
  const std::string& schedule = scenario.schedule.name;
  const RecomputeMode mode = scenario.recompute.mode;
  notes.when(degrees.cp > 1,
             "cp " + std::to_string(degrees.cp) + ": the traffic of context parallelism");
  notes.when(scenario.model.experts > 0 && degrees.ep > 1,
             "ep " + std::to_string(degrees.ep) +
                 ": the experts' all-to-alls; their imbalance counts in memory only");
  notes.when(scenario.model.kv_lora_rank == 0 && scenario.model.kv_heads % degrees.tp != 0 &&
                 !degrees.kv_replication,
             "key/value heads: tp " + std::to_string(degrees.tp) + " splits " +
                 std::to_string(scenario.model.kv_heads) + " of them as if it could");
  notes.when(uneven(degrees), "uneven stages: every stage counts layers / pp");
  notes.when(schedule != "1f1b" && schedule != "interleaved",
             "schedule " + schedule +
                 ": the bubble is (pp - 1) / vpp micro-batches, min(pp, m) "
                 "micro-batches are in flight");
  notes.when(mode == RecomputeMode::kModules || mode == RecomputeMode::kSelective,
             "recompute " + word_of(mode, kRecomputeModes) + ": only whole layers count");
  notes.when(!usual_overlap(scenario.overlap),
             "overlap: tensor traffic is exposed, gradients hide behind the step");
}

/// What the rules hold of every number's width, and of the hardware.
void precision_notes(const Scenario& scenario, Notes& notes) {
  const PrecisionSpec& dtype = scenario.training.dtype;
  const std::string otherwise = std::string(kUnlessAssumed);
  const DataType compute = dtype.compute;
  const bool eight_bits = compute == DataType::kFp8;
  notes.when(dtype.grads != DataType::kBf16,
             "grad_dtype " + word_of(dtype.grads, kDataTypes) +
                 ": gradients count gradient_bytes a parameter, 2" + otherwise);
  notes.when(bytes_per_element(dtype.params) != 2,
             "weights in " + word_of(dtype.params, kDataTypes) + ": weight_bytes a parameter, 2" +
                 otherwise);
  notes.when(bytes_per_element(dtype.param_gather) != 2,
             "weights gathered in " + word_of(dtype.param_gather, kDataTypes) +
                 ": traffic counts weight_bytes a parameter, 2" + otherwise);
  notes.when(
      dtype.moments != DataType::kFp32 || scenario.training.optimizer == "sgd",
      (scenario.training.optimizer == "sgd" ? "optimizer sgd"
                                            : "moments in " + word_of(dtype.moments, kDataTypes)) +
          ": optimizer_bytes a parameter, 12" + otherwise);
  notes.when(
      eight_bits && dtype.attention != compute,
      "attention in " + word_of(dtype.attention, kDataTypes) + ": counts at the fp8 peak too");
  notes.when(eight_bits, "fp8 activations: activation_bytes counts bf16 ones");
  notes.when(compute == DataType::kFp32 || compute == DataType::kNvfp4,
             word_of(compute, kDataTypes) + " matrices: counted at the bf16 peak" + otherwise);
}

void parallelism_notes(const Scenario& scenario, Notes& notes) {
  const Parallelism& degrees = scenario.parallelism;
  notes.when(degrees.tp > 1 && !degrees.sequence_parallel,
             "sequence_parallel off: activations count as split over tp");
  notes.when(degrees.shard_group > 0, "shard_group: shards span dp x cp");
  notes.when(degrees.fsdp.has_value(), "fsdp: units gathered at once are not kept");
  notes.when(degrees.bucket_bytes > 0, "bucket_bytes: gradients leave as one");
  notes.when(scenario.model.experts > 0 && degrees.etp > 1, "traffic of etp inside an expert");
  notes.when(degrees.kv_replication, "copies of replicated key/value heads");
}

void execution_notes(const Scenario& scenario, Notes& notes) {
  const ScheduleSpec usual;
  const ScheduleSpec& schedule = scenario.schedule;
  const TopologySpec& hardware = scenario.cluster.hardware;
  const bool pods = hardware.gpus_per_pod > 0 && scenario.cluster.gpus > hardware.gpus_per_pod;
  notes.when(schedule.group != usual.group || schedule.barrier != usual.barrier ||
                 schedule.p2p != usual.p2p || schedule.overlap_semantics != usual.overlap_semantics,
             "the schedule's group, barrier, p2p and overlap_semantics");
  notes.when(hardware.oversubscription > 1 || (pods && hardware.pod_oversubscription > 1),
             "oversubscription: between nodes every GPU has network_bandwidth");
  notes.when(scenario.network.mode != "analytic" || scenario.network.routing != "destination",
             "network: no link is shared");
  notes.when(scenario.costs.constant,
             "costs: kernels reach efficiency of the peak; links, embedding and head count");
  notes.when(scenario.stack.attention_kernel == "unfused",
             "unfused attention: its scores are not kept");
}

}  // namespace

std::vector<std::string> left_out(const Scenario& scenario, ClosedForm form) {
  Notes notes;
  if (form == ClosedForm::kChapter) {
    chapter_notes(scenario, notes);
  } else {
    workshop_notes(scenario, notes);
  }
  precision_notes(scenario, notes);
  parallelism_notes(scenario, notes);
  notes.when(scenario.model.kv_lora_rank > 0,
             "multi-latent attention's own activations: counted as plain attention's");
  notes.when(scenario.model.mtp_layers > 0, "multi-token-prediction modules");
  execution_notes(scenario, notes);
  notes.when(!scenario.perturbations.empty(), "perturbations: every GPU and link is healthy");
  return notes.take();
}

std::vector<std::string> never_counted(ClosedForm form) {
  std::vector<std::string> list = {"smaller matrices' lower efficiency",
                                   "kernel launches",
                                   "latencies",
                                   "the optimizer's step",
                                   "logits",
                                   "buffers and fragmentation",
                                   "stragglers"};
  if (form == ClosedForm::kWorkshop) {
    list.insert(list.begin(),
                {"attention's FLOPs", "messages between stages", "the head on the last stage"});
  }
  return list;
}

}  // namespace foretrain
