// Operators into tasks, in the order the framework launches them.
#include "sim/lower/block_emission.h"

#include "sim/lower/tensor_chunks.h"

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

/// Piece `index` of an operator that is cut; it starts as a kernel does, without NCCL.
Task StageBlocks::piece_for(const Operator& op,
                            std::int64_t index,
                            std::int64_t pieces,
                            const Emission& emission,
                            bool free) {
  if (op.kind == OperatorKind::kGemm) {
    return task_for(gemm_piece(op, index, pieces), emission, free);
  }
  Task task = task_for(op, emission, free);
  const std::int32_t shape = emission.links->shape(kTensorGroup);
  if (free || shape < 0) {
    return task;
  }
  const bool gather = op.collective == CollectiveKind::kAllGather;
  const GroupShape& group = shapes_.shape(shape);
  LinkModel links = prices_.links();
  links.fixed = scenario_.costs.constant ? Duration{} : scenario_.cluster.hardware.gpu.kernel_fixed;
  task.bytes = part_of(task.bytes, index, pieces);
  task.work = transfer_work(
      gather ? collective_cost(CollectiveKind::kSendReceive, Bytes{task.bytes}, group, links)
             : collective_cost(
                   op.collective, Bytes{part_of(op.payload.value, index, pieces)}, group, links));
  task.label = vocabulary_.label(gather ? kRingPiece : "tp reduce-scatter piece");
  return task;
}

/// The tasks of one operator. In pieces, a ring brings what the second and later pieces of its GEMM
/// work on, the first is there; what is scattered leaves as each piece is made.
void StageBlocks::emit_operator(Emission& emission,
                                const Operator& op,
                                const Cut& cut,
                                bool free,
                                std::vector<std::int32_t> waits) {
  const bool transfer = op.kind == OperatorKind::kCollective;
  const bool ring = transfer && op.collective == CollectiveKind::kAllGather && cut.pieces > 1;
  const std::int64_t pieces = cut.pieces - (ring ? 1 : 0);
  Emission::Made made;
  made.waits = waits;
  for (std::int64_t index = 0; index < pieces; ++index) {
    std::vector<std::int32_t> inputs = waits;
    bool detached = op.detached && !op.inputs.empty();
    if (cut.pieces > 1 && transfer) {
      if (!ring) {
        inputs = {emission.made_of(cut.partner).tasks[static_cast<std::size_t>(index)]};
      }
      detached = !ring || index > 0;
    } else if (index > 0 && emission.is_made(cut.partner)) {
      const std::vector<std::int32_t>& brought = emission.made_of(cut.partner).tasks;
      inputs.push_back(brought[static_cast<std::size_t>(index - 1)]);
    }
    Task task = cut.pieces > 1 ? piece_for(op, index, pieces, emission, free)
                               : task_for(op, emission, free);
    if (task.stream == kComputeStream) {
      (op.pass == Pass::kRecompute ? emission.flops.recomputed : emission.flops.model) +=
          task.flops;
    }
    made.tasks.push_back(emission.next());
    emit_task(emission, task, std::move(inputs), detached);
  }
  emission.made.push_back(std::move(made));
}

/// The tasks an operator waits for, by what its inputs were made into.
std::vector<std::int32_t> StageBlocks::inputs_of(const Emission& emission,
                                                 const Operator& op,
                                                 const Cut& cut) {
  std::vector<std::int32_t> waits;
  for (const std::int32_t input : op.inputs) {
    const Emission::Made& made = emission.made_of(input);
    if (op.kind == OperatorKind::kGemm && input == cut.partner) {
      // The first piece needs what the ring began with; the others wait for it piece by piece.
      waits.insert(waits.end(), made.waits.begin(), made.waits.end());
    } else {
      waits.push_back(made.tasks.back());
    }
  }
  return op.inputs.empty() ? emission.open : waits;
}

void StageBlocks::emit_part(Emission& emission, const Part& part) {
  const std::vector<Operator>& ops = operators_of(part.operators, emission.phase);
  const bool layer = part.kind == BlockKind::kDense || part.kind == BlockKind::kMoe;
  const std::vector<Cut> cuts = scenario_.overlap.tp && layer
                                    ? tensor_cuts(ops, scenario_.parallelism.tp)
                                    : std::vector<Cut>(ops.size());
  const std::int32_t base = emission.next();
  std::vector<bool> awaited(ops.size(), false);
  bool weights_awaited = false;
  emission.made.clear();
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const Operator& op = ops[at];
    std::vector<std::int32_t> waits = inputs_of(emission, op, cuts[at]);
    for (const std::int32_t input : op.inputs) {
      awaited[static_cast<std::size_t>(input)] = true;
    }
    if (waits.empty() && emission.last_compute < 0) {
      emission.hooks.roots.push_back(emission.next());
    }
    // Kernels need the unit's weights, collectives of activations do not.
    if (op.kind != OperatorKind::kCollective && !std::exchange(weights_awaited, true)) {
      const std::vector<std::int32_t>& gathers = emission.gathers[emission.unit];
      waits.insert(waits.end(), gathers.begin(), gathers.end());
    }
    emit_operator(emission, op, cuts[at], part.free, std::move(waits));
  }
  emission.open.clear();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!awaited[i] && ops[i].kind == OperatorKind::kCollective) {
      emission.open.push_back(emission.made[i].tasks.back());
    }
  }
  emission.hooks.part_first.push_back(base);
  emission.hooks.part_last.push_back(emission.last_compute);
}

}  // namespace foretrain
