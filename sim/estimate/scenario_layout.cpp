#include "foretrain/estimate.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Transformer layers of one pipeline rank, all its chunks.
std::int64_t layers_of_rank(const Parallelism& degrees, std::int64_t rank) {
  std::int64_t layers = 0;
  for (std::size_t at = static_cast<std::size_t>(rank); at < degrees.layers_per_stage.size();
       at += static_cast<std::size_t>(degrees.pp)) {
    layers += degrees.layers_per_stage[at];
  }
  return layers;
}

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

void chapter_notes(const Scenario& scenario, Notes& notes) {
  const Parallelism& degrees = scenario.parallelism;
  notes.when(degrees.sharding != Sharding::kZero1,
             "the scenario's sharding: states count as ZeRO-1 over dp x cp");
  notes.when(
      degrees.vpp > 1,
      "vpp " + std::to_string(degrees.vpp) + ": the bubble is 1F1B's, (pp - 1) micro-batches");
  notes.when(scenario.schedule.name != "1f1b" || !scenario.schedule.csv.empty(),
             "the scenario's schedule: counted as 1f1b");
  notes.when(scenario.recompute.mode != RecomputeMode::kNone,
             "the scenario's recompute: as many layers as needed recompute in full");
  notes.when(scenario.training.dtype.grads != DataType::kBf16,
             "the scenario's grad_dtype: gradients count 2 bytes a parameter");
}

void workshop_notes(const Scenario& scenario, Notes& notes) {
  notes.when(scenario.parallelism.cp > 1, "context-parallel traffic");
  notes.when(scenario.model.experts > 0 && scenario.parallelism.ep > 1,
             "the experts' all-to-alls and imbalance");
  notes.when(scenario.recompute.mode == RecomputeMode::kModules ||
                 scenario.recompute.mode == RecomputeMode::kSelective,
             "recompute of single modules: only whole layers count");
}

}  // namespace

Layout layout_of(const Scenario& scenario, ClosedForm form) {
  const Parallelism& degrees = scenario.parallelism;
  Layout layout;
  layout.tp = degrees.tp;
  layout.cp = degrees.cp;
  layout.pp = degrees.pp;
  layout.dp = degrees.dp;
  layout.ep = degrees.ep;
  layout.etp = degrees.etp;
  layout.micro_batch_size = scenario.training.micro_batch_size;
  layout.order = degrees.order;
  for (std::int64_t rank = 0; rank < degrees.pp; ++rank) {
    layout.most_layers = std::max(layout.most_layers, layers_of_rank(degrees, rank));
  }
  // The head is on the last virtual stage, which the last rank holds.
  layout.last_layers = layers_of_rank(degrees, degrees.pp - 1);
  if (form == ClosedForm::kWorkshop) {
    const bool full = scenario.recompute.mode == RecomputeMode::kFull;
    layout.vpp = degrees.vpp;
    layout.sharding = degrees.sharding;
    layout.recompute_layers = full ? scenario.recompute.layers.value_or(layout.most_layers) : 0;
  }
  return layout;
}

std::vector<std::string> left_out(const Scenario& scenario, ClosedForm form) {
  Notes notes;
  if (form == ClosedForm::kChapter) {
    chapter_notes(scenario, notes);
  } else {
    workshop_notes(scenario, notes);
  }
  const Parallelism& degrees = scenario.parallelism;
  notes.when(degrees.cp > 1 && degrees.cp_kind != ContextKind::kRing,
             "cp_kind: context parallelism counts as a ring");
  notes.when(scenario.model.experts > 0 && degrees.etp > 1, "traffic of etp inside an expert");
  notes.when(degrees.kv_replication, "copies of replicated key/value heads");
  notes.when(scenario.model.kv_lora_rank > 0,
             "multi-latent attention's own activations: counted as plain attention's");
  notes.when(scenario.model.mtp_layers > 0, "multi-token-prediction modules");
  notes.when(!scenario.perturbations.empty(), "perturbations: every GPU and link is healthy");
  return notes.take();
}

}  // namespace foretrain
