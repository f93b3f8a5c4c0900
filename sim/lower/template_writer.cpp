#include "sim/lower/template_writer.h"

#include <utility>

namespace foretrain {
namespace {

/// Work classes of the phases: calls that would be alike if every stage were.
constexpr std::int32_t kForwardClass = 0;
constexpr std::int32_t kBackwardClass = 1;
constexpr std::int32_t kInputGradientClass = 4;
constexpr std::int32_t kWeightGradientClass = 5;
constexpr std::int32_t kOverlappedClass = 6;

std::int32_t class_of(std::span<const Action> unit) {
  if (unit.size() > 1) {
    return kOverlappedClass;
  }
  switch (unit.front().kind) {
    case ActionKind::kForward:
      return kForwardClass;
    case ActionKind::kBackward:
      return kBackwardClass;
    case ActionKind::kInputGradient:
      return kInputGradientClass;
    case ActionKind::kWeightGradient:
      break;
  }
  return kWeightGradientClass;
}

}  // namespace

TemplateWriter::TemplateWriter(const TemplateInputs& inputs, const LinkClass& links)
    : in_(inputs), links_(links), calls_(built_.body, inputs.vocabulary) {
  built_.body.name = "stage " + std::to_string(links.pp_rank);
  built_.body.stage = links.pp_rank;
  for (const std::int32_t stage : in_.schedule.stages_of(links.pp_rank)) {
    Chunk& chunk = chunks_[stage];
    chunk.parameters = in_.parts.parameters(stage);
    chunk.working_set = in_.parts.working_set(stage);
    chunk.loss_only = {in_.parts.logits(stage).value - in_.parts.logits_gradient(stage).value};
    for (std::size_t version = 0; version < in_.parts.versions(); ++version) {
      chunk.stash.push_back(in_.parts.stash(stage, version) + in_.parts.logits(stage));
      chunk.recomputed.push_back(in_.parts.recomputed(stage, version));
    }
  }
}

/// The unit's block; those of single actions are remembered by version.
const StageBlock& TemplateWriter::block(Unit unit, Phase phase) {
  if (unit.size() > 1) {
    return in_.blocks.get_pair(unit[0], unit[1], phase, links_);
  }
  const Action& action = unit.front();
  std::vector<const StageBlock*>& made =
      chunks_.at(action.stage).blocks[static_cast<std::size_t>(phase)];
  made.resize(in_.parts.versions());
  const StageBlock*& wanted = made[in_.parts.version(action)];
  if (wanted == nullptr) {
    wanted = &in_.blocks.get(action, phase, links_);
  }
  return *wanted;
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

TemplateWriter::ComputeCall TemplateWriter::compute(Unit unit,
                                                    Phase phase,
                                                    const std::vector<std::int32_t>& received) {
  const StageBlock& hooks = block(unit, phase);
  ComputeCall now{calls_.append(hooks.block, hooks.launch), &hooks};
  for (const std::int32_t gather : hooks.early) {
    wait_for_latest(gather);
  }
  for (const std::int32_t root : hooks.roots) {
    for (const std::int32_t message : received) {
      calls_.wait(root, message);
    }
    for (const std::int32_t transfer : blocking_) {
      calls_.wait(root, transfer);
    }
    wait_for_latest(root);
  }
  blocking_.clear();
  gap_.clear();
  calls_.last().stage = unit.front().stage;
  calls_.last().micro_batch = unit.front().micro_batch;
  calls_.last().work_class = class_of(unit);
  if (unit.size() > 1 || unit.front().copy >= 0 || unit.front().slice >= 0) {
    calls_.last().label = in_.vocabulary.label(unit_text(unit));
  }
  const BlockFlops& flops = in_.blocks.flops(hooks.block);
  built_.flops.model += flops.model;
  built_.flops.recomputed += flops.recomputed;
  latest_ = now;
  return now;
}

/// A forward takes its stash. A whole backward gives it back, and has a recomputed layer once more
/// meanwhile; an input gradient makes what was to
/// be recomputed of the whole stage, and all of it stays until the weight gradient.
void TemplateWriter::hold_memory(Unit unit) {
  Call& call = calls_.last();
  for (const Action& action : unit) {
    const Chunk& held = chunk(action.stage);
    const std::size_t version = in_.parts.version(action);
    switch (action.kind) {
      case ActionKind::kForward:
        call.allocated_bytes += held.stash[version].value;
        break;
      case ActionKind::kBackward:
        call.allocated_bytes += held.working_set.value;
        call.freed_bytes += (held.stash[version] + held.working_set).value;
        break;
      case ActionKind::kInputGradient:
        call.allocated_bytes += held.recomputed[version].value;
        call.freed_bytes += held.loss_only.value;
        break;
      case ActionKind::kWeightGradient:
        call.freed_bytes +=
            (held.stash[version] + held.recomputed[version]).value - held.loss_only.value;
        break;
    }
  }
}

/// An overlapped unit in one piece is one call; sequential ones are a forward and then a backward.
std::size_t TemplateWriter::unit_length_at(std::size_t position) const {
  const bool atomic = in_.scenario.schedule.overlap_semantics == "atomic";
  return atomic ? unit_length(actions()[position]) : 1;
}

void TemplateWriter::run_unit(Unit unit, std::size_t position) {
  std::vector<std::int32_t> received;
  for (const Action& action : unit) {
    if (const std::optional<Hop> input = input_of(action, links_.pp_rank)) {
      received.push_back(receive(*input, action));
    }
  }
  const ComputeCall done = compute(unit, phase_of(position + unit.size() - 1), received);
  hold_memory(unit);
  if (unit.front().kind == ActionKind::kForward) {
    first_forwards_.try_emplace(unit.front().stage, done);
  }
  for (const Action& action : unit) {
    if (const std::optional<Hop> output = output_of(action)) {
      send_in_order(*output, done, action);
    }
  }
  reduce_when_due(position + unit.size() - 1, done);
}

BuiltTemplate TemplateWriter::write() {
  for (std::size_t position = 0; position < actions().size();) {
    const std::size_t length = unit_length_at(position);
    run_unit({&actions()[position], length}, position);
    position += length;
  }
  end_of_step();
  gather_parameters();
  if (!in_.scenario.schedule.barrier) {
    validate_afterwards(own_norm_);
  }
  wait_for_gathers();
  calls_.finish();
  return std::move(built_);
}

BuiltTemplate build_template(const TemplateInputs& inputs, const LinkClass& links) {
  return TemplateWriter(inputs, links).write();
}

}  // namespace foretrain
