#include "sim/cost/memory.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

struct Peak {
  std::int64_t activations = 0;
  std::int64_t logits = 0;
};

/// Walks the rank's list: a forward takes its stage's stash, a backward gives it back when done and
/// has one layer recomputed meanwhile. A split one keeps it, and what its first half recomputed,
/// until the second (Qi et al. 2024, arXiv 2401.10241, table 1: of 34 sbh bytes a layer 32 sbh are
/// still needed for the weight gradient), but of the logits their gradient only.
Peak walk(const MemoryInputs& in, std::int32_t pp_rank) {
  Peak held;
  Peak peak;
  const auto reach = [&held, &peak](std::int64_t meanwhile) {
    if (held.activations + meanwhile + held.logits > peak.activations + peak.logits) {
      peak = {held.activations + meanwhile, held.logits};
    }
  };
  for (const Action& action : in.schedule.ranks[static_cast<std::size_t>(pp_rank)]) {
    const StageHoldings& stage = in.stages[static_cast<std::size_t>(action.stage)];
    const std::size_t version = in.version(action);
    switch (action.kind) {
      case ActionKind::kForward:
        held.activations += stage.stash[version];
        held.logits += stage.logits;
        reach(0);
        break;
      case ActionKind::kInputGradient:
        held.logits -= stage.logits - stage.logits_gradient;
        held.activations += stage.recomputed[version];
        reach(0);
        break;
      case ActionKind::kBackward:
        reach(stage.working_set);
        held.activations -= stage.stash[version];
        held.logits -= stage.logits;
        break;
      case ActionKind::kWeightGradient:
        held.activations -= stage.stash[version] + stage.recomputed[version];
        held.logits -= stage.logits_gradient;
        break;
    }
  }
  return peak;
}

/// All chunks of one pipeline rank.
struct RankHoldings {
  RankParameters parameters;
  std::int64_t largest_chunk = 0, largest_bucket = 0, weight_copies = 0;
  std::int64_t chunks = 0;
};

/// Parameters whose states are split: those of a group of one stay whole where they are.
std::int64_t split_parameters(const RankParameters& held, const ShardSpan& span) {
  return (span.owners > 1 ? held.shared : 0) + (span.expert_owners > 1 ? held.experts : 0);
}

RankHoldings holdings_of(const MemoryInputs& in, std::int32_t pp_rank) {
  const ShardSpan span = shard_span(in.scenario);
  RankHoldings held;
  for (const std::int32_t at : in.schedule.stages_of(pp_rank)) {
    const StageHoldings& stage = in.stages[static_cast<std::size_t>(at)];
    held.parameters.shared += stage.parameters.shared;
    held.parameters.experts += stage.parameters.experts;
    held.largest_chunk = std::max(held.largest_chunk, split_parameters(stage.parameters, span));
    held.largest_bucket = std::max(held.largest_bucket, stage.largest_bucket);
    held.weight_copies += stage.weight_copies;
    ++held.chunks;
  }
  return held;
}

/// Bytes of a state of `each` bytes a parameter, split over its owners.
std::int64_t split(const RankParameters& held, std::int64_t each, const ShardSpan& span) {
  const auto share = [each](std::int64_t parameters, std::int64_t owners) {
    return (parameters * each + owners - 1) / owners;
  };
  return share(held.shared, span.owners) + share(held.experts, span.expert_owners);
}

/// Weights under zero3: the rank's part of them, and the gathered units in use.
std::int64_t gathered_weights(const MemoryInputs& in, const RankHoldings& held) {
  const Parallelism& degrees = in.scenario.parallelism;
  const PrecisionSpec& types = in.scenario.training.dtype;
  const FsdpSpec fsdp = degrees.fsdp.value_or(FsdpSpec{});
  const std::int64_t whole = split_parameters(held.parameters, shard_span(in.scenario)) *
                             bytes_per_element(types.param_gather);
  const std::int64_t ahead = in.scenario.overlap.dp_param ? fsdp.prefetch : 0;
  const std::int64_t units =
      fsdp.reshard_after_forward
          ? std::min(whole,
                     (1 + ahead) * held.largest_bucket * bytes_per_element(types.param_gather))
          : whole;
  return split(held.parameters, bytes_per_element(types.params), shard_span(in.scenario)) + units;
}

/// Gradients that are not yet reduced beside those that are.
std::int64_t sharded_gradients(const MemoryInputs& in, const RankHoldings& held) {
  const std::int64_t each = bytes_per_element(in.scenario.training.dtype.grads);
  const Parallelism& degrees = in.scenario.parallelism;
  const bool by_unit = degrees.sharding == Sharding::kZero3;
  const bool by_micro_batch = by_unit ? degrees.fsdp.value_or(FsdpSpec{}).reduction == "micro_batch"
                                      : in.scenario.stack.gradient_reduction == "micro_batch";
  // One unsharded chunk, bucket or unit accumulates while the one before it is being reduced.
  const std::int64_t unsharded = by_micro_batch
                                     ? 2 * held.largest_bucket
                                     : std::min<std::int64_t>(held.chunks, 2) * held.largest_chunk;
  return std::min(held.parameters.total() * each,
                  split(held.parameters, each, shard_span(in.scenario)) + unsharded * each);
}

}  // namespace

std::int64_t optimizer_bytes_per_parameter(const TrainingSpec& training) {
  const PrecisionSpec& types = training.dtype;
  const std::int64_t master = types.params == DataType::kFp32 ? 0 : 4;
  const std::int64_t gradient_copy = types.grads == DataType::kFp32 ? 0 : 4;
  const std::int64_t moments =
      training.optimizer == "sgd" ? 0 : 2 * bytes_per_element(types.moments);
  return master + gradient_copy + moments;
}

MemoryPlan plan_memory(const MemoryInputs& in, std::int32_t pp_rank) {
  const Parallelism& degrees = in.scenario.parallelism;
  const PrecisionSpec& types = in.scenario.training.dtype;
  const RankHoldings held = holdings_of(in, pp_rank);
  const ShardSpan span = shard_span(in.scenario);
  const bool one_owner = span.owners == 1 && span.expert_owners == 1;
  MemoryPlan plan;
  plan.weights = held.parameters.total() * bytes_per_element(types.params) + held.weight_copies;
  plan.gradients = held.parameters.total() * bytes_per_element(types.grads);
  plan.optimizer =
      split(held.parameters, optimizer_bytes_per_parameter(in.scenario.training), span);
  if (degrees.sharding == Sharding::kZero2 || degrees.sharding == Sharding::kZero3) {
    plan.gradients_whole = sharded_gradients(in, held) == plan.gradients;
    plan.gradients = sharded_gradients(in, held);
  }
  if (degrees.sharding == Sharding::kZero3 && !one_owner) {
    plan.weights = gathered_weights(in, held);
  }
  if (degrees.pp > 1) {
    plan.buffers += 4 * in.boundary;  // one message each way, to send and to receive
  }
  const Peak peak = walk(in, pp_rank);
  plan.activations = peak.activations;
  plan.logits = peak.logits;
  plan.peak = plan.static_bytes() + plan.activations + plan.logits;
  plan.reserved =
      std::llround(static_cast<double>(plan.peak) * (1.0 + kAllocatorBand)) + kContextBytes;
  return plan;
}

}  // namespace foretrain
