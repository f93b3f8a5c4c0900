#include "sim/lower/template_writer.h"

#include <utility>

namespace foretrain {
namespace {

/// Work classes of the two phases: calls that would be alike if every stage were.
constexpr std::int32_t kForwardClass = 0;
constexpr std::int32_t kBackwardClass = 1;

}  // namespace

TemplateWriter::TemplateWriter(const TemplateInputs& inputs, const LinkClass& links)
    : in_(inputs), links_(links), calls_(built_.body, inputs.vocabulary) {
  built_.body.name = "stage " + std::to_string(links.pp_rank);
  built_.body.stage = links.pp_rank;
  for (std::int32_t stage = links.pp_rank; stage < in_.schedule.stages();
       stage += in_.schedule.size.pp) {
    Chunk& chunk = chunks_[stage];
    chunk.parameters = in_.parts.parameters(stage);
    const std::int32_t versions = in_.parts.varies() ? in_.schedule.size.micro_batches : 1;
    for (std::int32_t micro_batch = 0; micro_batch < versions; ++micro_batch) {
      chunk.stash.push_back(in_.parts.stash(stage, micro_batch) + in_.parts.logits(stage));
    }
  }
}

const StageBlock& TemplateWriter::block(const Action& action, Phase phase) {
  Chunk& held = chunks_.at(action.stage);
  std::vector<const StageBlock*>& made = held.blocks[static_cast<std::size_t>(phase)];
  made.resize(held.stash.size());
  const StageBlock*& wanted =
      made[made.size() > 1 ? static_cast<std::size_t>(action.micro_batch) : 0];
  if (wanted == nullptr) {
    wanted = &in_.blocks.get(action.stage, action.micro_batch, phase, links_);
  }
  return *wanted;
}

Bytes TemplateWriter::stash(const Action& action) const {
  const std::vector<Bytes>& kept = chunk(action.stage).stash;
  return kept[kept.size() > 1 ? static_cast<std::size_t>(action.micro_batch) : 0];
}

std::int32_t TemplateWriter::message(const Action& action, bool backward) const {
  return (action.stage * in_.schedule.size.micro_batches + action.micro_batch) * 2 +
         (backward ? 1 : 0);
}

/// Tensor communication blocks the compute stream: nothing starts before the last of it is done,
/// and a block that opens with a collective waits for the kernels before it.
void TemplateWriter::wait_for_latest(std::int32_t task) {
  if (latest_.call < 0) {
    return;
  }
  for (const std::int32_t open : latest_.hooks->open) {
    calls_.wait(task, calls_.task_of(latest_.call, open));
  }
  if (latest_.hooks->last_compute >= 0) {
    calls_.wait(task, calls_.task_of(latest_.call, latest_.hooks->last_compute));
  }
}

TemplateWriter::ComputeCall TemplateWriter::compute(const Action& action,
                                                    Phase phase,
                                                    std::optional<std::int32_t> received) {
  const StageBlock& hooks = block(action, phase);
  ComputeCall now{calls_.append(hooks.block, hooks.launch), &hooks};
  for (const std::int32_t gather : hooks.early) {
    wait_for_latest(gather);
  }
  for (const std::int32_t root : hooks.roots) {
    if (received) {
      calls_.wait(root, *received);
    }
    for (const std::int32_t transfer : blocking_) {
      calls_.wait(root, transfer);
    }
    wait_for_latest(root);
  }
  blocking_.clear();
  calls_.last().stage = action.stage;
  calls_.last().micro_batch = action.micro_batch;
  calls_.last().work_class = phase == Phase::kForward ? kForwardClass : kBackwardClass;
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
  task.work = transfer_work(collective_cost(CollectiveKind::kSendReceive,
                                            in_.parts.boundary(),
                                            in_.places.shapes.shape(hop),
                                            in_.prices.links()));
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
  calls_.last().allocated_bytes = stash(action).value;
  first_forwards_.try_emplace(action.stage, done);
  const bool last = action.stage + 1 == in_.schedule.stages();
  if (!last && in_.schedule.owner(action.stage + 1) != links_.pp_rank) {
    send(message(action, false), kNext, done, action);
  }
}

void TemplateWriter::backward(const Action& action, Phase phase) {
  std::optional<std::int32_t> received;
  const bool last = action.stage + 1 == in_.schedule.stages();
  if (!last && in_.schedule.owner(action.stage + 1) != links_.pp_rank) {
    Action producer = action;
    ++producer.stage;
    received = receive(message(producer, true), kNext);
    calls_.last().stage = action.stage;
    calls_.last().micro_batch = action.micro_batch;
  }
  const ComputeCall done = compute(action, phase, received);
  calls_.last().freed_bytes = stash(action).value;
  if (action.stage > 0 && in_.schedule.owner(action.stage - 1) != links_.pp_rank) {
    send(message(action, true), kPrevious, done, action);
  }
}

BuiltTemplate TemplateWriter::write() {
  for (std::size_t position = 0; position < actions().size(); ++position) {
    const Action& action = actions()[position];
    if (action.kind == ActionKind::kForward) {
      forward(action);
    } else {
      backward(action, backward_phase(position));
      reduce_when_due(action, position, latest_);
    }
  }
  end_of_step();
  gather_parameters();
  wait_for_gathers();
  calls_.finish();
  return std::move(built_);
}

BuiltTemplate build_template(const TemplateInputs& inputs, const LinkClass& links) {
  return TemplateWriter(inputs, links).write();
}

}  // namespace foretrain
