#include "sim/cost/memory.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

struct Peak {
  std::int64_t activations = 0;
  std::int64_t logits = 0;
};

/// Walks the rank's list: a forward takes its stage's stash, a backward gives it back when done.
Peak walk(const MemoryInputs& in, std::int32_t pp_rank) {
  const std::int32_t head = in.schedule.stages() - 1;
  Peak held;
  Peak peak;
  for (const Action& action : in.schedule.ranks[static_cast<std::size_t>(pp_rank)]) {
    const std::int64_t stash = in.stash[static_cast<std::size_t>(action.stage)];
    const std::int64_t logits = action.stage == head ? in.logits : 0;
    if (action.kind == ActionKind::kForward) {
      held.activations += stash;
      held.logits += logits;
      if (held.activations + held.logits > peak.activations + peak.logits) {
        peak = held;
      }
    } else if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient) {
      held.activations -= stash;
      held.logits -= logits;
    }
  }
  return peak;
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
  const std::int64_t owners = degrees.dp * degrees.cp;
  const auto share = [owners](std::int64_t bytes) { return (bytes + owners - 1) / owners; };

  std::int64_t parameters = 0;
  std::int64_t largest_chunk = 0;
  std::int64_t chunks = 0;
  for (std::int32_t stage = pp_rank; stage < in.schedule.stages(); stage += in.schedule.size.pp) {
    const std::int64_t chunk = in.parameters[static_cast<std::size_t>(stage)];
    parameters += chunk;
    largest_chunk = std::max(largest_chunk, chunk);
    ++chunks;
  }
  MemoryPlan plan;
  plan.weights = parameters * bytes_per_element(types.params);
  plan.gradients = parameters * bytes_per_element(types.grads);
  plan.optimizer = parameters * optimizer_bytes_per_parameter(in.scenario.training);
  if (degrees.sharding != Sharding::kNone) {
    plan.optimizer = share(plan.optimizer);
  }
  if (degrees.sharding == Sharding::kZero2) {
    // One unsharded chunk accumulates while the one before it is being reduced.
    const std::int64_t unsharded = in.scenario.stack.gradient_reduction == "micro_batch"
                                       ? 2 * in.largest_bucket_parameters
                                       : std::min<std::int64_t>(chunks, 2) * largest_chunk;
    plan.gradients = std::min(plan.gradients,
                              share(plan.gradients) + unsharded * bytes_per_element(types.grads));
  }
  if (degrees.pp > 1) {
    plan.buffers += 4 * in.boundary;  // one message each way, to send and to receive
  }
  const Peak peak = walk(in, pp_rank);
  plan.activations = peak.activations;
  std::int64_t working_set = 0;
  for (std::int32_t stage = pp_rank; stage < in.schedule.stages(); stage += in.schedule.size.pp) {
    working_set = std::max(working_set, in.working_set[static_cast<std::size_t>(stage)]);
  }
  plan.activations += working_set;
  plan.logits = peak.logits;
  plan.peak = plan.static_bytes() + plan.activations + plan.logits;
  plan.reserved =
      std::llround(static_cast<double>(plan.peak) * (1.0 + kAllocatorBand)) + kContextBytes;
  return plan;
}

}  // namespace foretrain
