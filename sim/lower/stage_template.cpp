#include "sim/lower/stage_template.h"

#include "sim/lower/buckets.h"
#include "sim/lower/call_list.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace foretrain {
namespace {

/// Work classes beside the two phases: calls that would be alike if every stage were.
constexpr std::int32_t kReductionClass = 2;
constexpr std::int32_t kGatherClass = 3;

constexpr Bytes kScalar{4};  ///< an fp32 number: gradient norm, loss

/// Writes one template. Member functions append calls; their order is the host's issue order.
class TemplateWriter {
 public:
  TemplateWriter(const TemplateInputs& inputs, const LinkClass& links)
      : in_(inputs), links_(links), calls_(built_.body, inputs.vocabulary) {
    built_.body.name = "stage " + std::to_string(links.pp_rank);
    built_.body.stage = links.pp_rank;
  }

  BuiltTemplate write();

 private:
  struct ComputeCall {
    std::int32_t call = -1;
    const StageBlock* hooks = nullptr;
  };

  bool sharded() const { return in_.scenario.parallelism.sharding != Sharding::kNone; }
  const StageSlice& slice(std::int32_t stage) const {
    return in_.slices[static_cast<std::size_t>(stage)];
  }
  const GroupShape& shape(std::int32_t index) const { return in_.places.shapes.shape(index); }
  std::int32_t message(const Action& action, bool backward) const {
    return (action.stage * in_.schedule.size.micro_batches + action.micro_batch) * 2 +
           (backward ? 1 : 0);
  }

  void forward(const Action& action);
  void backward(const Action& action);
  std::int32_t receive(std::int32_t message, std::int32_t slot);
  void send(std::int32_t message, std::int32_t slot, const ComputeCall& from, const Action& action);
  ComputeCall compute(const Action& action, Phase phase, std::optional<std::int32_t> received);
  void wait_for_parameters(const ComputeCall& first, std::int32_t stage);

  std::int32_t collective(
      GroupKind kind, std::int32_t shape_index, CollectiveKind op, Bytes bytes, const char* name);
  void reduce_chunk(std::int32_t stage, const ComputeCall& last, bool overlapped);
  void reduce_when_due(const Action& action, std::size_t position, const ComputeCall& done);
  void end_of_step();
  void gather_parameters();
  bool last_backward_of_run(std::size_t position) const;
  bool last_backward_of_stage(std::size_t position) const;
  const std::vector<Action>& actions() const {
    return in_.schedule.ranks[static_cast<std::size_t>(links_.pp_rank)];
  }

  const TemplateInputs& in_;
  const LinkClass& links_;
  BuiltTemplate built_;
  CallList calls_;
  ComputeCall latest_;  ///< the compute call before
  std::vector<std::int32_t>
      blocking_;  ///< transfers without overlap: the next compute waits for them
  std::vector<std::int32_t>
      reductions_;  ///< gradient reductions issued, template-wide task indices
  struct Gather {
    Bucket bucket;
    std::int32_t task = -1;
  };
  std::vector<Gather> gathers_;
  struct FirstForward {
    std::int32_t call;
    const StageBlock* hooks;
  };
  std::map<std::int32_t, FirstForward> first_forwards_;
};

TemplateWriter::ComputeCall TemplateWriter::compute(const Action& action,
                                                    Phase phase,
                                                    std::optional<std::int32_t> received) {
  static const GroupShape kAlone{};
  const GroupShape& tensor = links_.tensor >= 0 ? shape(links_.tensor) : kAlone;
  const StageBlock& hooks = in_.blocks.get(slice(action.stage), phase, tensor, links_.tensor);
  ComputeCall now{calls_.append(hooks.block, hooks.launch), &hooks};
  for (const std::int32_t root : hooks.roots) {
    if (received) {
      calls_.wait(root, *received);
    }
    for (const std::int32_t transfer : blocking_) {
      calls_.wait(root, transfer);
    }
    if (latest_.call < 0) {
      continue;
    }
    // Tensor communication blocks the compute stream: nothing starts before the last of it is done,
    // and a block that opens with a collective waits for the kernels before it.
    for (const std::int32_t open : latest_.hooks->open) {
      calls_.wait(root, calls_.task_of(latest_.call, open));
    }
    if (latest_.hooks->last_compute >= 0) {
      calls_.wait(root, calls_.task_of(latest_.call, latest_.hooks->last_compute));
    }
  }
  blocking_.clear();
  calls_.last().stage = action.stage;
  calls_.last().micro_batch = action.micro_batch;
  calls_.last().work_class = static_cast<std::int32_t>(phase);
  const BlockFlops& flops = in_.blocks.flops(hooks.block);
  built_.flops.model += flops.model;
  built_.flops.recomputed += flops.recomputed;
  latest_ = now;
  return now;
}

std::int32_t TemplateWriter::receive(std::int32_t message, std::int32_t slot) {
  Task task;
  task.kind = TaskKind::kReceive;
  task.stream = slot == kPrevious ? kReceivePreviousStream : kReceiveNextStream;
  task.peer_slot = slot;
  task.bytes = in_.parts.boundary().value;
  task.label = in_.vocabulary.label("pp receive");
  const std::int32_t call = calls_.append_single(task, "pp receive", in_.prices.launch());
  calls_.last().message = message;
  return calls_.task_of(call, 0);
}

void TemplateWriter::send(std::int32_t message,
                          std::int32_t slot,
                          const ComputeCall& from,
                          const Action& action) {
  Task task;
  task.kind = TaskKind::kSend;
  task.stream = slot == kNext ? kSendNextStream : kSendPreviousStream;
  task.peer_slot = slot;
  task.bytes = in_.parts.boundary().value;
  task.label = in_.vocabulary.label("pp send");
  const std::int32_t hop = slot == kNext ? links_.to_next : links_.to_previous;
  task.work = transfer_work(collective_cost(
      CollectiveKind::kSendReceive, in_.parts.boundary(), shape(hop), in_.prices.links()));
  const std::int32_t call = calls_.append_single(task, "pp send", in_.prices.launch());
  calls_.last().message = message;
  calls_.last().stage = action.stage;
  calls_.last().micro_batch = action.micro_batch;
  calls_.wait(0, calls_.task_of(from.call, from.hooks->last_compute));
  for (const std::int32_t open : from.hooks->open) {
    calls_.wait(0, calls_.task_of(from.call, open));
  }
  if (!in_.scenario.overlap.pp) {
    blocking_.push_back(calls_.task_of(call, 0));
  }
}

void TemplateWriter::forward(const Action& action) {
  std::optional<std::int32_t> received;
  if (action.stage > 0 && in_.schedule.owner(action.stage - 1) != links_.pp_rank) {
    Action producer = action;
    --producer.stage;
    received = receive(message(producer, false), kPrevious);
    calls_.last().stage = action.stage;
    calls_.last().micro_batch = action.micro_batch;
  }
  const ComputeCall done = compute(action, Phase::kForward, received);
  calls_.last().allocated_bytes = in_.parts.stash(slice(action.stage)).value;
  first_forwards_.try_emplace(action.stage, FirstForward{done.call, done.hooks});
  const bool last = action.stage + 1 == in_.schedule.stages();
  if (!last && in_.schedule.owner(action.stage + 1) != links_.pp_rank) {
    send(message(action, false), kNext, done, action);
  }
}

void TemplateWriter::backward(const Action& action) {
  std::optional<std::int32_t> received;
  const bool last = action.stage + 1 == in_.schedule.stages();
  if (!last && in_.schedule.owner(action.stage + 1) != links_.pp_rank) {
    Action producer = action;
    ++producer.stage;
    received = receive(message(producer, true), kNext);
    calls_.last().stage = action.stage;
    calls_.last().micro_batch = action.micro_batch;
  }
  const ComputeCall done = compute(action, Phase::kBackward, received);
  calls_.last().freed_bytes = in_.parts.stash(slice(action.stage)).value;
  if (action.stage > 0 && in_.schedule.owner(action.stage - 1) != links_.pp_rank) {
    send(message(action, true), kPrevious, done, action);
  }
}

bool TemplateWriter::last_backward_of_run(std::size_t position) const {
  for (std::size_t i = position + 1; i < actions().size(); ++i) {
    if (actions()[i].kind == ActionKind::kBackward) {
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
                        return later.kind == ActionKind::kBackward && later.stage == action.stage;
                      });
}

std::int32_t TemplateWriter::collective(
    GroupKind kind, std::int32_t shape_index, CollectiveKind op, Bytes bytes, const char* name) {
  const GroupShape& group = shape(shape_index);
  Task task;
  task.kind = TaskKind::kCollective;
  task.stream = kDataStream;
  task.group_kind = kind;
  task.bytes = bus_bytes(op, bytes, group.size);
  task.label = in_.vocabulary.label(name);
  task.work = transfer_work(collective_cost(op, bytes, group, in_.prices.links()));
  const std::int32_t call = calls_.append_single(task, name, in_.prices.launch());
  return calls_.task_of(call, 0);
}

void TemplateWriter::reduce_chunk(std::int32_t stage, const ComputeCall& last, bool overlapped) {
  if (links_.data < 0) {
    return;
  }
  const std::int64_t element = bytes_per_element(in_.scenario.training.dtype.grads);
  for (const Bucket& bucket : gradient_buckets(in_.scenario, slice(stage), stage)) {
    const std::int32_t reduced =
        collective(kDataGroup,
                   links_.data,
                   sharded() ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
                   {bucket.parameters * element},
                   sharded() ? "dp reduce-scatter gradients" : "dp all-reduce gradients");
    calls_.last().stage = stage;
    calls_.last().work_class = kReductionClass;
    const std::int32_t ready =
        overlapped ? last.hooks->part_last[static_cast<std::size_t>(bucket.first_part)]
                   : last.hooks->last_compute;
    if (ready >= 0) {
      calls_.wait(0, calls_.task_of(last.call, ready));
    }
    reductions_.push_back(reduced);
  }
}

void TemplateWriter::reduce_when_due(const Action& action,
                                     std::size_t position,
                                     const ComputeCall& done) {
  const bool overlapped = in_.scenario.overlap.dp_grad;
  if (in_.scenario.parallelism.sharding != Sharding::kZero2) {
    if (overlapped && last_backward_of_stage(position)) {
      reduce_chunk(action.stage, done, true);
    }
    return;
  }
  // Sharded gradients leave when they are due, overlapped or not: what they move is the same.
  if (in_.scenario.stack.gradient_reduction == "micro_batch" || last_backward_of_run(position)) {
    const std::size_t before = reductions_.size();
    reduce_chunk(action.stage, done, overlapped);
    if (!overlapped && reductions_.size() > before) {
      blocking_.push_back(reductions_.back());
    }
  }
}

void TemplateWriter::end_of_step() {
  std::int64_t parameters = 0;
  for (std::int32_t stage = links_.pp_rank; stage < in_.schedule.stages();
       stage += in_.schedule.size.pp) {
    if (!in_.scenario.overlap.dp_grad && in_.scenario.parallelism.sharding != Sharding::kZero2) {
      reduce_chunk(stage, latest_, false);
    }
    for (const std::int64_t part : part_parameters(in_.scenario, slice(stage))) {
      parameters += part;
    }
  }
  const PrecisionSpec& types = in_.scenario.training.dtype;
  if (links_.embedding >= 0) {
    const ModelConfig& model = in_.scenario.model;
    const std::int64_t table = model.vocabulary * model.hidden / in_.scenario.parallelism.tp;
    reductions_.push_back(collective(kEmbeddingGroup,
                                     links_.embedding,
                                     CollectiveKind::kAllReduce,
                                     {table * bytes_per_element(types.grads)},
                                     "tied embedding all-reduce"));
    calls_.wait(0, calls_.task_of(latest_.call, latest_.hooks->last_compute));
  }
  if (links_.pipeline >= 0) {
    collective(
        kPipelineGroup, links_.pipeline, CollectiveKind::kBroadcast, kScalar, "loss broadcast");
    calls_.wait(0, calls_.task_of(latest_.call, latest_.hooks->last_compute));
  }
  const std::int64_t owners =
      sharded() ? in_.scenario.parallelism.dp * in_.scenario.parallelism.cp : 1;
  const std::int64_t owned = (parameters + owners - 1) / owners;

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
  std::int32_t norm_done = calls_.task_of(norm_call, 0);
  if (links_.norm >= 0) {
    norm_done = collective(
        kNormGroup, links_.norm, CollectiveKind::kAllReduce, kScalar, "gradient norm all-reduce");
    calls_.wait(0, calls_.task_of(norm_call, 0));
  }
  built_.body.host_sync_task = norm_done;

  // Adam reads gradient, master weight and both moments, writes the last three and the model's
  // copy.
  const std::int64_t state = in_.scenario.training.optimizer == "sgd"
                                 ? 4 + 4
                                 : 2 * (4 + 2 * bytes_per_element(types.moments));
  Task update = norm;
  update.label = in_.vocabulary.label("optimizer");
  update.work = in_.prices.optimizer_pass(
      {owned * (bytes_per_element(types.grads) + state + bytes_per_element(types.params))});
  const std::int32_t optimizer = calls_.append_single(update, "optimizer", in_.prices.launch());
  calls_.wait(0, norm_done);
  built_.body.step_end_task = calls_.task_of(optimizer, 0);
}

void TemplateWriter::gather_parameters() {
  if (!sharded() || links_.data < 0) {
    return;
  }
  const std::int64_t element = bytes_per_element(in_.scenario.training.dtype.param_gather);
  for (std::int32_t stage = links_.pp_rank; stage < in_.schedule.stages();
       stage += in_.schedule.size.pp) {
    std::vector<Bucket> buckets = gradient_buckets(in_.scenario, slice(stage), stage);
    std::reverse(buckets.begin(), buckets.end());
    for (const Bucket& bucket : buckets) {
      const std::int32_t task = collective(kDataGroup,
                                           links_.data,
                                           CollectiveKind::kAllGather,
                                           {bucket.parameters * element},
                                           "dp all-gather parameters");
      calls_.last().stage = stage;
      calls_.last().work_class = kGatherClass;
      calls_.wait(0, built_.body.step_end_task);
      gathers_.push_back({bucket, task});
    }
  }
}

BuiltTemplate TemplateWriter::write() {
  // Parameter gathers run after the optimizer of the step before, under this step's first forwards;
  // the waits for them are added to those forwards once the gathers have their places.
  for (std::size_t position = 0; position < actions().size(); ++position) {
    const Action& action = actions()[position];
    if (action.kind == ActionKind::kForward) {
      forward(action);
    } else {
      backward(action);
      reduce_when_due(action, position, latest_);
    }
  }
  end_of_step();
  gather_parameters();
  const bool overlapped = in_.scenario.overlap.dp_param;
  for (const Gather& gather : gathers_) {
    const FirstForward& first =
        overlapped ? first_forwards_.at(gather.bucket.stage) : first_forwards_.begin()->second;
    const std::vector<std::int32_t>& starts = first.hooks->part_first;
    const std::int32_t task = overlapped && !starts.empty()
                                  ? starts[static_cast<std::size_t>(gather.bucket.first_part)]
                                  : 0;
    calls_.wait_in(first.call, task, gather.task, true);
  }
  calls_.finish();
  return std::move(built_);
}

}  // namespace

BuiltTemplate build_template(const TemplateInputs& inputs, const LinkClass& links) {
  return TemplateWriter(inputs, links).write();
}

}  // namespace foretrain
