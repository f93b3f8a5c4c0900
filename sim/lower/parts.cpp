#include "sim/lower/parts.h"

#include <algorithm>
#include <limits>

namespace foretrain {
namespace {

BlockContext context_of(const Scenario& scenario, RecomputeMode recompute) {
  const Parallelism& degrees = scenario.parallelism;
  BlockContext context;
  context.sequence_length = scenario.training.sequence_length;
  context.micro_batch_size = scenario.training.micro_batch_size;
  context.document_length = scenario.training.document_length;
  context.precision = scenario.training.dtype;
  context.grad_element_bytes = bytes_per_element(scenario.training.dtype.grads);
  context.tp = degrees.tp;
  context.sequence_parallel = degrees.sequence_parallel;
  context.cp = degrees.cp;
  context.cp_kind = degrees.cp_kind;
  context.overlap_cp = scenario.overlap.cp;
  context.ep = degrees.ep;
  context.etp = degrees.etp;
  context.expert_capacity = scenario.stack.expert_capacity;
  context.dispatcher = scenario.stack.dispatcher;
  context.recompute = recompute;
  context.recompute_modules = scenario.recompute.modules;
  context.fused_operators = scenario.stack.fused_operators;
  context.flash_attention = scenario.stack.attention_kernel != "unfused";
  context.fused_gradient_accumulation = scenario.stack.fused_gradient_accumulation;
  context.textbook = scenario.costs.constant;
  for (const Perturbation& perturbation : scenario.perturbations) {
    if (perturbation.kind == "expert_imbalance") {
      context.expert_load *= perturbation.factor;
    }
  }
  return context;
}

}  // namespace

Parts::Parts(const Scenario& scenario)
    : model_(scenario.model),
      recompute_(scenario.recompute),
      predictions_(scenario.training.multi_token_prediction),
      table_(table_parameters(model_, scenario.parallelism.tp)) {
  const std::vector<BlockKind> blocks = model_blocks(model_);
  layers_.assign(blocks.begin() + 1, blocks.end() - 1);
  embedding_ = add(scenario, BlockKind::kEmbedding, false);
  head_ = add(scenario, BlockKind::kHead, false);
  for (const bool recomputed : {false, true}) {
    for (const auto& [kind, place] :
         {std::pair{BlockKind::kDense, dense_}, std::pair{BlockKind::kMoe, moe_}}) {
      if (std::find(layers_.begin(), layers_.end(), kind) != layers_.end()) {
        place[recomputed ? 1 : 0] = add(scenario, kind, recomputed);
      }
    }
  }
  if (predictions_ > 0) {
    prediction_ = add(scenario, BlockKind::kPrediction, recomputes(0));
  }
  boundary_ = boundary_bytes(model_, context_of(scenario, RecomputeMode::kNone));
}

std::int32_t Parts::add(const Scenario& scenario, BlockKind kind, bool recomputed) {
  const RecomputeMode mode = recomputed ? scenario.recompute.mode : RecomputeMode::kNone;
  const bool end = kind == BlockKind::kEmbedding || kind == BlockKind::kHead;
  Part part;
  part.kind = kind;
  part.recomputed = recomputed;
  part.free = end && scenario.costs.constant && scenario.costs.embedding_and_head_free;
  part.operators = block_operators(model_, kind, context_of(scenario, mode));
  part.parameters = rank_parameters(model_, kind, scenario.parallelism);
  parts_.push_back(std::move(part));
  return static_cast<std::int32_t>(parts_.size()) - 1;
}

/// Of each stage, or chunk, the first layers are recomputed, at most RecomputeSpec::layers.
bool Parts::recomputes(std::int64_t layer_of_slice) const {
  return recompute_.mode != RecomputeMode::kNone &&
         layer_of_slice < recompute_.layers.value_or(std::numeric_limits<std::int64_t>::max());
}

std::vector<std::int32_t> Parts::of(const StageSlice& slice) const {
  std::vector<std::int32_t> list;
  if (slice.embedding) {
    list.push_back(embedding_);
  }
  for (std::int64_t layer = 0; layer < slice.layers; ++layer) {
    const BlockKind kind = layers_[static_cast<std::size_t>(slice.first_layer + layer)];
    const int recomputed = recomputes(layer) ? 1 : 0;
    list.push_back(kind == BlockKind::kMoe ? moe_[recomputed] : dense_[recomputed]);
  }
  list.insert(list.end(), static_cast<std::size_t>(slice.predictions), prediction_);
  if (slice.head) {
    list.insert(list.end(), static_cast<std::size_t>(1 + predictions_), head_);
  }
  return list;
}

std::vector<RankParameters> Parts::parameters(const StageSlice& slice) const {
  std::vector<RankParameters> list;
  bool head_counted = false;
  for (const std::int32_t index : of(slice)) {
    const Part& part = (*this)[index];
    list.push_back(part.parameters);
    if (part.kind == BlockKind::kHead && std::exchange(head_counted, true)) {
      // The modules share the head's matrix; each has a norm of its own.
      list.back().shared -= model_.tied_embeddings ? 0 : table_;
    }
  }
  // A tied head shares the table of the first stage; only a pipeline gives it a copy of its own.
  if (!list.empty() && !slice.embedding && holds_embedding_table(model_, slice)) {
    list.back().shared += table_;
  }
  return list;
}

Bytes Parts::stash(const StageSlice& slice) const {
  Bytes total;
  for (const std::int32_t index : of(slice)) {
    total += stash_bytes((*this)[index].operators);
  }
  return total;
}

Bytes Parts::logits(const StageSlice& slice) const {
  return slice.head ? (1 + predictions_) * (*this)[head_].operators.logits : Bytes{};
}

Bytes Parts::working_set(const StageSlice& slice) const {
  Bytes most;
  for (std::int64_t layer = 0; layer < slice.layers && recomputes(layer); ++layer) {
    const BlockKind kind = layers_[static_cast<std::size_t>(slice.first_layer + layer)];
    const auto& versions = kind == BlockKind::kMoe ? moe_ : dense_;
    most = std::max(
        most,
        stash_bytes((*this)[versions[0]].operators) - stash_bytes((*this)[versions[1]].operators));
  }
  return most;
}

const std::vector<Stash>& Parts::layer_stash() const {
  const auto& versions = layers_.back() == BlockKind::kMoe ? moe_ : dense_;
  return (*this)[versions[recomputes(0) ? 1 : 0]].operators.stash;
}

}  // namespace foretrain
