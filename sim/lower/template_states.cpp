#include "sim/lower/template_writer.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Work classes beside the two phases: calls that would be alike if every stage were.
constexpr std::int32_t kReductionClass = 2;
constexpr std::int32_t kGatherClass = 3;

constexpr Bytes kScalar{4};  ///< an fp32 number: gradient norm, loss

/// The weights' gradients of a micro-batch are there after a whole backward or its second half.
bool completes_gradients(const Action& action) {
  return action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient;
}

std::int64_t share(std::int64_t whole, std::int64_t owners) {
  return (whole + owners - 1) / owners;
}

}  // namespace

/// Run of backwards: those of one stage, forwards and input gradients between them aside.
bool TemplateWriter::last_backward_of_run(std::size_t position) const {
  for (std::size_t i = position + 1; i < actions().size(); ++i) {
    if (completes_gradients(actions()[i])) {
      return actions()[i].stage != actions()[position].stage;
    }
  }
  return true;
}

bool TemplateWriter::last_backward_of_stage(std::size_t position) const {
  const Action& action = actions()[position];
  return std::none_of(actions().begin() + static_cast<std::ptrdiff_t>(position) + 1,
                      actions().end(),
                      [&action](const Action& later) {
                        return completes_gradients(later) && later.stage == action.stage;
                      });
}

/// Appends a collective of the states; -1 in a group of one.
std::int32_t TemplateWriter::collective(GroupKind kind,
                                        CollectiveKind op,
                                        Bytes bytes,
                                        const char* name) {
  const std::optional<Task> task = in_.blocks.states_collective(links_, kind, op, bytes, name);
  if (!task) {
    return -1;
  }
  return calls_.task_of(calls_.append_single(*task, name, in_.prices.launch()), 0);
}

/// Sharded: each owner gets its part, and replicas of a hybrid group sum theirs.
void TemplateWriter::reduce_bucket(const Bucket& bucket, const ComputeCall& last, bool overlapped) {
  const ShardSpan span = shard_span(in_.scenario);
  const std::int64_t element = bytes_per_element(in_.scenario.training.dtype.grads);
  const Bytes whole{bucket.parameters * element};
  const std::int64_t owners = bucket.experts ? span.expert_owners : span.owners;
  const auto reduced = [&](std::int32_t task) {
    if (task < 0) {
      return;
    }
    calls_.last().stage = bucket.stage;
    calls_.last().work_class = kReductionClass;
    const std::int32_t ready =
        overlapped ? last.hooks->part_last[static_cast<std::size_t>(bucket.first_part)]
                   : last.hooks->last_compute;
    if (ready >= 0) {
      calls_.wait(0, calls_.task_of(last.call, ready));
    }
    reductions_.push_back(task);
  };
  reduced(collective(bucket.experts ? kExpertDataGroup : kDataGroup,
                     sharded() ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
                     whole,
                     sharded() ? "dp reduce-scatter gradients" : "dp all-reduce gradients"));
  reduced(collective(bucket.experts ? kExpertReplicaGroup : kReplicaGroup,
                     CollectiveKind::kAllReduce,
                     {share(whole.value, owners)},
                     "dp all-reduce gradients"));
}

void TemplateWriter::reduce_chunk(std::int32_t stage, const ComputeCall& last, bool overlapped) {
  for (const Bucket& bucket : gradient_buckets(in_.scenario, chunk(stage).parameters, stage)) {
    reduce_bucket(bucket, last, overlapped);
  }
}

/// Sharded gradients leave when they are due, overlapped or not: what they move is the same.
bool TemplateWriter::reduces_early() const {
  return in_.scenario.parallelism.sharding == Sharding::kZero2;
}

/// The phase of the action at a position; under zero3 what it reduces. A hybrid group sums over its
/// replicas once a step, when all micro-batches are in (MiCS, Zhang et al. 2022, arXiv 2205.00119,
/// section 3.4).
Phase TemplateWriter::phase_of(std::size_t position) const {
  const Action& action = actions()[position];
  const FsdpSpec fsdp = in_.scenario.parallelism.fsdp.value_or(FsdpSpec{});
  if (!gathers_units() || !completes_gradients(action) ||
      (fsdp.reduction != "micro_batch" && !last_backward_of_run(position))) {
    return plain_phase(action.kind);
  }
  const bool whole = action.kind == ActionKind::kBackward;
  const bool hybrid = shard_span(in_.scenario).replicas > 1;
  if (hybrid && last_backward_of_stage(position)) {
    return whole ? Phase::kLastBackward : Phase::kLastWeightGradient;
  }
  return whole ? Phase::kReducingBackward : Phase::kReducingWeightGradient;
}

void TemplateWriter::reduce_when_due(std::size_t position, const ComputeCall& done) {
  const Action& action = actions()[position];
  if (!completes_gradients(action)) {
    return;
  }
  if (gathers_units()) {
    // Reduced inside the block, unit by unit; the stream keeps their order.
    if (done.hooks->last_reduction >= 0) {
      reductions_ = {calls_.task_of(done.call, done.hooks->last_reduction)};
    }
    return;
  }
  const bool overlapped = in_.scenario.overlap.dp_grad;
  if (!reduces_early()) {
    if (overlapped && last_backward_of_stage(position)) {
      reduce_chunk(action.stage, done, true);
    }
    return;
  }
  // Two chunks may accumulate at once (MODEL 7.1): a rank with no more reduces each once a step.
  const bool due =
      chunks_.size() <= 2 ? last_backward_of_stage(position) : last_backward_of_run(position);
  if (in_.scenario.stack.gradient_reduction == "micro_batch" || due) {
    const std::size_t before = reductions_.size();
    reduce_chunk(action.stage, done, overlapped);
    if (!overlapped && reductions_.size() > before) {
      blocking_.push_back(reductions_.back());
    }
  }
}

/// Gradients of the embedding table's copies, and the loss, before the norm.
void TemplateWriter::reduce_shared_tables() {
  const PrecisionSpec& types = in_.scenario.training.dtype;
  const bool holds = std::any_of(chunks_.begin(), chunks_.end(), [&](const auto& entry) {
    return holds_embedding_table(in_.scenario.model,
                                 in_.slices[static_cast<std::size_t>(entry.first)]);
  });
  const std::int64_t table = table_parameters(in_.scenario.model, in_.scenario.parallelism.tp);
  if (holds) {
    const std::int32_t reduced = collective(kEmbeddingGroup,
                                            CollectiveKind::kAllReduce,
                                            {table * bytes_per_element(types.grads)},
                                            "tied embedding all-reduce");
    if (reduced >= 0) {
      reductions_.push_back(reduced);
      calls_.wait(0, calls_.task_of(latest_.call, latest_.hooks->last_compute));
    }
  }
  if (in_.scenario.schedule.barrier) {
    broadcast_loss();
  }
}

void TemplateWriter::broadcast_loss() {
  if (collective(kPipelineGroup, CollectiveKind::kBroadcast, kScalar, "loss broadcast") >= 0) {
    calls_.wait(0, calls_.task_of(latest_.call, latest_.hooks->last_compute));
  }
}

/// Without a barrier each rank updates at once and checks the norm afterwards (post-validation, Qi
/// et al. 2024, arXiv 2401.10241, section 4): nothing waits for it.
void TemplateWriter::validate_afterwards(std::int32_t norm) {
  broadcast_loss();
  if (collective(kNormGroup, CollectiveKind::kAllReduce, kScalar, "gradient norm all-reduce") >=
      0) {
    calls_.wait(0, norm);
  }
}

/// Parameters whose states this rank holds and updates.
std::int64_t TemplateWriter::owned_parameters() const {
  RankParameters held;
  for (const auto& [stage, chunk] : chunks_) {
    for (const RankParameters& part : chunk.parameters) {
      held.shared += part.shared;
      held.experts += part.experts;
    }
  }
  const ShardSpan span = shard_span(in_.scenario);
  return share(held.shared, span.owners) + share(held.experts, span.expert_owners);
}

void TemplateWriter::end_of_step() {
  if (!in_.scenario.overlap.dp_grad && !reduces_early() && !gathers_units()) {
    for (const auto& [stage, chunk] : chunks_) {
      reduce_chunk(stage, latest_, false);
    }
  }
  reduce_shared_tables();
  update_parameters();
}

void TemplateWriter::update_parameters() {
  const PrecisionSpec& types = in_.scenario.training.dtype;
  const std::int64_t owned = owned_parameters();
  Task norm;
  norm.stream = kComputeStream;
  norm.account = kOptimizerAccount;
  norm.label = in_.vocabulary.label("gradient norm");
  norm.work = in_.prices.optimizer_pass({owned * bytes_per_element(types.grads)});
  const std::int32_t norm_call = calls_.append_single(norm, "gradient norm", in_.prices.launch());
  for (const std::int32_t reduction : reductions_) {
    calls_.wait(0, reduction);
  }
  for (const std::int32_t open : latest_.hooks->open) {
    calls_.wait(0, calls_.task_of(latest_.call, open));
  }
  const std::int32_t own_norm = calls_.task_of(norm_call, 0);
  std::int32_t norm_done = own_norm;
  if (in_.scenario.schedule.barrier) {
    const std::int32_t reduced =
        collective(kNormGroup, CollectiveKind::kAllReduce, kScalar, "gradient norm all-reduce");
    if (reduced >= 0) {
      calls_.wait(0, own_norm);
      norm_done = reduced;
    }
  }
  built_.body.host_sync_task = norm_done;

  // Adam reads gradient, master weight and both moments, writes the last three and the model's
  // copy.
  const std::int64_t state = in_.scenario.training.optimizer == "sgd"
                                 ? 4 + 4
                                 : 2 * (4 + 2 * bytes_per_element(types.moments));
  Task update = norm;
  update.label = in_.vocabulary.label("optimizer");
  // Narrow copies of all weights of the rank are made once a step: here, when they are new.
  std::int64_t casts = 0;
  for (const auto& [stage, chunk] : chunks_) {
    casts += in_.parts.weight_cast(stage).value;
  }
  update.work = in_.prices.optimizer_pass(
      {owned * (bytes_per_element(types.grads) + state + bytes_per_element(types.params)) + casts});
  if (in_.scenario.costs.stated) {
    update.work = {};
    update.work[static_cast<std::size_t>(Resource::kOptimizer)] =
        in_.scenario.costs.stated->optimizer.count();
  }
  const std::int32_t optimizer = calls_.append_single(update, "optimizer", in_.prices.launch());
  calls_.wait(0, norm_done);
  built_.body.step_end_task = calls_.task_of(optimizer, 0);
  own_norm_ = own_norm;
}

/// zero1 and zero2: every bucket's new parameters come back from their owners; zero3 gathers where
/// they are used.
void TemplateWriter::gather_parameters() {
  if (!sharded() || gathers_units()) {
    return;
  }
  const std::int64_t element = bytes_per_element(in_.scenario.training.dtype.param_gather);
  for (const auto& [stage, chunk] : chunks_) {
    std::vector<Bucket> buckets = gradient_buckets(in_.scenario, chunk.parameters, stage);
    std::reverse(buckets.begin(), buckets.end());
    for (const Bucket& bucket : buckets) {
      const std::int32_t task = collective(bucket.experts ? kExpertDataGroup : kDataGroup,
                                           CollectiveKind::kAllGather,
                                           {bucket.parameters * element},
                                           "dp all-gather parameters");
      if (task < 0) {
        continue;
      }
      calls_.last().stage = stage;
      calls_.last().work_class = kGatherClass;
      calls_.wait(0, built_.body.step_end_task);
      gathers_.push_back({bucket, task});
    }
  }
}

/// Parameter gathers run after the optimizer of the step before, under this step's first forwards;
/// those wait for them.
void TemplateWriter::wait_for_gathers() {
  const bool overlapped = in_.scenario.overlap.dp_param;
  for (const Gather& gather : gathers_) {
    const ComputeCall& first =
        overlapped ? first_forwards_.at(gather.bucket.stage) : first_forwards_.begin()->second;
    const std::vector<std::int32_t>& starts = first.hooks->part_first;
    const std::int32_t task = overlapped && !starts.empty()
                                  ? starts[static_cast<std::size_t>(gather.bucket.first_part)]
                                  : 0;
    calls_.wait_in(first.call, task, gather.task, true);
  }
}

}  // namespace foretrain
