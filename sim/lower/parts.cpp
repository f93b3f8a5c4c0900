#include "sim/lower/parts.h"

#include "sim/model/quantise.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace foretrain {
namespace {

BlockContext context_of(const Scenario& scenario,
                        RecomputeMode recompute,
                        double load,
                        std::int64_t sequence_slice) {
  const Parallelism& degrees = scenario.parallelism;
  BlockContext context;
  context.sequence_length = scenario.training.sequence_length / scenario.schedule.slices;
  context.prefix_length = sequence_slice * context.sequence_length;
  context.micro_batch_size = scenario.training.micro_batch_size;
  context.document_length = scenario.training.document_length;
  context.precision = scenario.training.dtype;
  // Tensor cores that scale blocks also read 8-bit operands along either side.
  context.transposed_operands = scenario.cluster.hardware.gpu.nvfp4_dense.flops_per_second == 0;
  context.weights_arrive_wide =
      degrees.sharding == Sharding::kZero3 && !is_narrow(scenario.training.dtype.param_gather);
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
  context.expert_load = load;
  context.recompute = recompute;
  context.recompute_modules = scenario.recompute.modules;
  context.fused_operators = scenario.stack.fused_operators;
  context.flash_attention = scenario.stack.attention_kernel != "unfused";
  context.fused_gradient_accumulation = scenario.stack.fused_gradient_accumulation;
  context.textbook = scenario.costs.constant;
  return context;
}

bool has_experts(const ModelConfig& model, BlockKind kind) {
  return kind == BlockKind::kMoe || (kind == BlockKind::kPrediction && model.experts > 0);
}

void add_narrow_weights(const Scenario& scenario, Part& part) {
  const Quantisation quantisation(context_of(scenario, RecomputeMode::kNone, 1.0, 0));
  if (!quantisation.on()) {
    return;
  }
  const std::int64_t narrow = narrow_weights(part.operators);
  const std::int64_t own = bytes_per_element(scenario.training.dtype.params);
  // What does not compute in the narrow type keeps 16 bits, also where the rest is stored in 8.
  const std::int64_t wide = (part.parameters.total() - narrow) * std::max<std::int64_t>(own, 2);
  part.weight_copies =
      Bytes{quantisation.weight_bytes(narrow) + wide - part.parameters.total() * own};
  if (scenario.parallelism.sharding != Sharding::kZero3) {
    part.weight_cast = Bytes{quantisation.weight_cast_bytes(narrow)};
  }
}

}  // namespace

Parts::Parts(const Scenario& scenario,
             const std::vector<StageSlice>& slices,
             const Schedule& schedule)
    : scenario_(scenario),
      slices_(slices),
      loads_(scenario),
      blocks_(model_blocks(scenario.model)),
      table_(table_parameters(scenario.model, scenario.parallelism.tp)) {
  const std::int64_t micro_batches = loads_.varies() ? scenario.micro_batches() : 1;
  ends_meet_ = schedule.copies() > 1 || schedule.owner(0) == schedule.owner(schedule.stages() - 1);
  for (const StageSlice& slice : slices) {
    std::vector<PartList>& lists = lists_.emplace_back();
    for (std::int64_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      for (std::int64_t part = 0; part < scenario.schedule.slices; ++part) {
        lists.push_back(list_of(slice, micro_batch, part));
      }
    }
  }
  boundary_ = boundary_bytes(scenario.model, context_of(scenario, RecomputeMode::kNone, 1.0, 0));
}

std::int32_t Parts::add(BlockKind kind, bool recomputed, double load, std::int64_t sequence_slice) {
  load = has_experts(scenario_.model, kind) ? load : 1.0;
  const auto [place, missing] = made_.try_emplace({kind, recomputed, load, sequence_slice}, 0);
  if (!missing) {
    return place->second;
  }
  const RecomputeMode mode = recomputed ? scenario_.recompute.mode : RecomputeMode::kNone;
  const bool end = kind == BlockKind::kEmbedding || kind == BlockKind::kHead;
  Part part;
  part.kind = kind;
  part.recomputed = recomputed;
  part.free = end && scenario_.costs.constant && scenario_.costs.embedding_and_head_free;
  part.operators =
      block_operators(scenario_.model, kind, context_of(scenario_, mode, load, sequence_slice));
  if (recomputed) {
    part.recomputed_bytes = stash_bytes((*this)[add(kind, false, load, sequence_slice)].operators) -
                            stash_bytes(part.operators);
  }
  part.parameters = rank_parameters(scenario_.model, kind, scenario_.parallelism);
  add_narrow_weights(scenario_, part);
  parts_.push_back(std::move(part));
  place->second = static_cast<std::int32_t>(parts_.size()) - 1;
  return place->second;
}

/// Of each stage, or chunk, the first layers are recomputed, at most RecomputeSpec::layers.
bool Parts::recomputes(std::int64_t layer_of_slice) const {
  const RecomputeSpec& recompute = scenario_.recompute;
  return recompute.mode != RecomputeMode::kNone &&
         layer_of_slice < recompute.layers.value_or(std::numeric_limits<std::int64_t>::max());
}

PartList Parts::list_of(const StageSlice& slice,
                        std::int64_t micro_batch,
                        std::int64_t sequence_slice) {
  const std::int64_t predictions = scenario_.training.multi_token_prediction;
  PartList list;
  if (slice.embedding) {
    list.push_back(add(BlockKind::kEmbedding, false, 1.0, sequence_slice));
  }
  for (std::int64_t at = 0; at < slice.layers; ++at) {
    const std::int64_t layer = slice.first_layer + at;
    list.push_back(add(blocks_[static_cast<std::size_t>(1 + layer)],
                       recomputes(at),
                       loads_.at(layer, micro_batch),
                       sequence_slice));
  }
  for (std::int64_t at = 0; at < slice.predictions; ++at) {
    // A module's experts are loaded as those of the last layer.
    const double load = loads_.at(scenario_.model.layers - 1, micro_batch);
    list.push_back(
        add(BlockKind::kPrediction, recomputes(slice.layers + at), load, sequence_slice));
  }
  if (slice.head) {
    list.insert(list.end(),
                static_cast<std::size_t>(1 + predictions),
                add(BlockKind::kHead, false, 1.0, sequence_slice));
  }
  return list;
}

std::size_t Parts::version(const Action& action) const {
  const auto slice = static_cast<std::size_t>(std::max<std::int16_t>(action.slice, 0));
  const auto slices = static_cast<std::size_t>(scenario_.schedule.slices);
  return (loads_.varies() ? static_cast<std::size_t>(action.micro_batch) * slices : 0) + slice;
}

const PartList& Parts::of(std::int32_t stage, std::size_t version) const {
  return lists_[static_cast<std::size_t>(stage)][version];
}

std::vector<RankParameters> Parts::parameters(std::int32_t stage) const {
  const StageSlice& slice = slices_[static_cast<std::size_t>(stage)];
  const ModelConfig& model = scenario_.model;
  std::vector<RankParameters> list;
  bool head_counted = false;
  for (const std::int32_t index : of(stage, 0)) {
    const Part& part = (*this)[index];
    list.push_back(part.parameters);
    if (part.kind == BlockKind::kHead && std::exchange(head_counted, true)) {
      // The modules share the head's matrix; each has a norm of its own.
      list.back().shared -= model.tied_embeddings ? 0 : table_;
    }
  }
  // A tied head shares the table of the first stage; only a pipeline gives it a copy of its own.
  if (!list.empty() && !slice.embedding && !ends_meet_ && holds_embedding_table(model, slice)) {
    list.back().shared += table_;
  }
  return list;
}

Bytes Parts::stash(std::int32_t stage, std::size_t version) const {
  Bytes total;
  for (const std::int32_t index : of(stage, version)) {
    total += stash_bytes((*this)[index].operators);
  }
  return total;
}

Bytes Parts::recomputed(std::int32_t stage, std::size_t version) const {
  Bytes total;
  for (const std::int32_t index : of(stage, version)) {
    total += (*this)[index].recomputed_bytes;
  }
  return total;
}

Bytes Parts::logits(std::int32_t stage) const {
  Bytes total;
  for (const std::int32_t index : of(stage, 0)) {
    total += (*this)[index].operators.logits;
  }
  return total;
}

Bytes Parts::logits_gradient(std::int32_t stage) const {
  Bytes total;
  for (const std::int32_t index : of(stage, 0)) {
    total += (*this)[index].operators.logits_gradient;
  }
  return total;
}

Bytes Parts::weight_copies(std::int32_t stage) const {
  Bytes total;
  for (const std::int32_t index : of(stage, 0)) {
    total += (*this)[index].weight_copies;
  }
  return total;
}

Bytes Parts::weight_cast(std::int32_t stage) const {
  Bytes total;
  for (const std::int32_t index : of(stage, 0)) {
    total += (*this)[index].weight_cast;
  }
  return total;
}

Bytes Parts::working_set(std::int32_t stage) const {
  Bytes most;
  for (const PartList& list : lists_[static_cast<std::size_t>(stage)]) {
    for (const std::int32_t index : list) {
      const Part& part = (*this)[index];
      if (part.recomputed) {
        most = std::max(most, part.recomputed_bytes);
      }
    }
  }
  return most;
}

const std::vector<Stash>& Parts::layer_stash() const {
  const Part* last = &parts_.front();
  for (const std::vector<PartList>& lists : lists_) {
    for (const std::int32_t index : lists.front()) {
      const BlockKind kind = (*this)[index].kind;
      last = kind == BlockKind::kDense || kind == BlockKind::kMoe ? &(*this)[index] : last;
    }
  }
  return last->operators.stash;
}

}  // namespace foretrain
