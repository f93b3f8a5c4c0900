// Operators into tasks, in the order the framework launches them.
#include "sim/lower/block_emission.h"

#include <algorithm>
#include <utility>

namespace foretrain {
namespace {

/// Where the collectives of one mesh dimension run.
struct DimensionPlace {
  GroupKind group;
  StreamIndex stream;
};

DimensionPlace place_of(MeshDimension dimension) {
  switch (dimension) {
    case MeshDimension::kTp:
      return {kTensorGroup, kTensorStream};
    case MeshDimension::kCp:
      return {kContextGroup, kContextStream};
    case MeshDimension::kEp:
      return {kExpertGroup, kExpertStream};
    case MeshDimension::kEtp:
      break;
  }
  return {kExpertTensorGroup, kExpertStream};
}

void sort_unique(std::vector<std::int32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

const std::vector<Operator>& operators_of(const BlockOperators& operators, Phase phase) {
  if (phase == Phase::kForward) {
    return operators.forward;
  }
  if (phase == Phase::kInputGradient) {
    return operators.input_gradient;
  }
  return is_weight_half(phase) ? operators.weight_gradient : operators.backward;
}

}  // namespace

Task StageBlocks::collective_for(const Operator& op, const Emission& emission, bool free) {
  const DimensionPlace place = place_of(op.dimension);
  Task task;
  task.kind = TaskKind::kCollective;
  task.stream = place.stream;
  task.group_kind = place.group;
  const std::int32_t shape = emission.links->shape(place.group);
  if (!free && shape >= 0) {
    const GroupShape& group = shapes_.shape(shape);
    task.bytes = bus_bytes(op.collective, op.payload, group.size);
    task.work = transfer_work(prices_.transfer(op, group));
  }
  return task;
}

Task StageBlocks::task_for(const Operator& op, const Emission& emission, bool free) {
  Task task;
  if (op.kind == OperatorKind::kCollective) {
    task = collective_for(op, emission, free);
  } else {
    task.stream = kComputeStream;
    task.flops = op.flops.value;
    if (!free) {
      task.work = prices_.kernel(op);
    }
  }
  task.label = vocabulary_.label(op.name);
  task.account = op.kind == OperatorKind::kHostSync ? kHostAccount
                 : op.pass == Pass::kRecompute      ? kRecomputeAccount
                                                    : kComputeAccount;
  return task;
}

void StageBlocks::emit_task(Emission& emission,
                            Task task,
                            std::vector<std::int32_t> waits,
                            bool detached) {
  const std::int32_t self = emission.next();
  // A collective is launched after the kernels before it and waits for them, as NCCL on a stream
  // that synchronises with the compute stream does.
  if (task.kind == TaskKind::kCollective && !detached && emission.last_compute >= 0) {
    waits.push_back(emission.last_compute);
  }
  sort_unique(waits);
  task.first_dependency = static_cast<std::int32_t>(emission.block.dependencies.size());
  task.dependency_count = static_cast<std::int32_t>(waits.size());
  emission.block.dependencies.insert(emission.block.dependencies.end(), waits.begin(), waits.end());
  emission.hooks.launch += prices_.launch();
  task.launch_offset = emission.hooks.launch;
  if (task.stream == kComputeStream) {
    emission.last_compute = self;
  }
  emission.block.tasks.push_back(task);
}

void StageBlocks::emit_part(Emission& emission, const Part& part) {
  const std::vector<Operator>& ops = operators_of(part.operators, emission.phase);
  const std::int32_t base = emission.next();
  std::vector<bool> awaited(ops.size(), false);
  bool weights_awaited = false;
  for (const Operator& op : ops) {
    std::vector<std::int32_t> waits;
    for (const std::int32_t input : op.inputs) {
      waits.push_back(base + input);
      awaited[static_cast<std::size_t>(input)] = true;
    }
    if (op.inputs.empty()) {
      waits = emission.open;
    }
    if (waits.empty() && emission.last_compute < 0) {
      emission.hooks.roots.push_back(emission.next());
    }
    // Kernels need the unit's weights, collectives of activations do not.
    if (op.kind != OperatorKind::kCollective && !std::exchange(weights_awaited, true)) {
      const std::vector<std::int32_t>& gathers = emission.gathers[emission.unit];
      waits.insert(waits.end(), gathers.begin(), gathers.end());
    }
    Task task = task_for(op, emission, part.free);
    if (task.stream == kComputeStream) {
      (op.pass == Pass::kRecompute ? emission.flops.recomputed : emission.flops.model) +=
          task.flops;
    }
    emit_task(emission, task, std::move(waits), op.detached && !op.inputs.empty());
  }
  emission.open.clear();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!awaited[i] && ops[i].kind == OperatorKind::kCollective) {
      emission.open.push_back(base + static_cast<std::int32_t>(i));
    }
  }
  emission.hooks.part_first.push_back(base);
  emission.hooks.part_last.push_back(emission.last_compute);
}

}  // namespace foretrain
