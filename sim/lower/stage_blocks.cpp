#include "sim/lower/stage_blocks.h"

#include "sim/base/format.h"

#include <algorithm>
#include <numeric>
#include <string>
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

/// Groups whose place on the machine a block's tasks depend on.
constexpr std::array kAlwaysInside = {
    kTensorGroup, kContextGroup, kExpertGroup, kExpertTensorGroup};
constexpr std::array kInsideUnderZero3 = {
    kDataGroup, kReplicaGroup, kExpertDataGroup, kExpertReplicaGroup};

void sort_unique(std::vector<std::int32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

std::string block_name(const StageSlice& slice, Phase phase) {
  return std::string(phase == Phase::kForward ? "F" : "B") + (slice.embedding ? " embedding" : "") +
         " " + std::to_string(slice.layers) + " " + plural("layer", slice.layers) +
         (slice.head ? " head" : "");
}

}  // namespace

/// A block under construction.
struct StageBlocks::Emission {
  Phase phase = Phase::kForward;
  const LinkClass* links = nullptr;
  Block block;
  StageBlock hooks;
  BlockFlops flops;
  std::vector<std::int32_t> open;  ///< collectives of the part before that nothing waited for
  std::int32_t last_compute = -1;
  // zero3: units in the order they run, the gathers each waits for, and the one running.
  std::vector<RankParameters> units;
  std::vector<std::vector<std::int32_t>> gathers;
  std::size_t unit = 0;

  std::int32_t next() const { return static_cast<std::int32_t>(block.tasks.size()); }
};

StageBlocks::StageBlocks(const Scenario& scenario,
                         const std::vector<StageSlice>& slices,
                         const Parts& parts,
                         const OperatorPrices& prices,
                         const ShapeTable& shapes,
                         Vocabulary& vocabulary)
    : scenario_(scenario),
      slices_(slices),
      parts_(parts),
      prices_(prices),
      shapes_(shapes),
      vocabulary_(vocabulary) {}

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
  const std::vector<Operator>& ops =
      emission.phase == Phase::kForward ? part.operators.forward : part.operators.backward;
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

std::optional<Task> StageBlocks::states_collective(
    const LinkClass& links, GroupKind kind, CollectiveKind op, Bytes bytes, const char* name) {
  const std::int32_t shape = links.shape(kind);
  if (shape < 0) {
    return std::nullopt;
  }
  const GroupShape& group = shapes_.shape(shape);
  Task task;
  task.kind = TaskKind::kCollective;
  task.stream = kDataStream;
  task.group_kind = kind;
  task.label = vocabulary_.label(name);
  task.bytes = bus_bytes(op, bytes, group.size);
  task.work = transfer_work(collective_cost(op, bytes, group, prices_.links()));
  return task;
}

std::int32_t StageBlocks::weights(
    Emission& emission, GroupKind kind, CollectiveKind op, Bytes bytes, const char* name) {
  const std::optional<Task> task = states_collective(*emission.links, kind, op, bytes, name);
  if (!task || bytes.value == 0) {
    return -1;
  }
  const std::int32_t self = emission.next();
  emit_task(emission, *task, {}, false);
  return self;
}

void StageBlocks::gather_unit(Emission& emission, std::size_t unit) {
  const std::int64_t element = bytes_per_element(scenario_.training.dtype.param_gather);
  const RankParameters& parameters = emission.units[unit];
  const bool early = emission.last_compute < 0;
  for (const std::int32_t task : {weights(emission,
                                          kDataGroup,
                                          CollectiveKind::kAllGather,
                                          {parameters.shared * element},
                                          "dp all-gather parameters"),
                                  weights(emission,
                                          kExpertDataGroup,
                                          CollectiveKind::kAllGather,
                                          {parameters.experts * element},
                                          "dp all-gather experts")}) {
    if (task >= 0) {
      emission.gathers[unit].push_back(task);
      if (early) {
        emission.hooks.early.push_back(task);
      }
    }
  }
}

void StageBlocks::reduce_unit(Emission& emission, std::size_t unit) {
  const std::int64_t element = bytes_per_element(scenario_.training.dtype.grads);
  const RankParameters& parameters = emission.units[unit];
  const ShardSpan span = shard_span(scenario_);
  const auto reduce = [&](GroupKind shards, GroupKind replicas, Bytes bytes, std::int64_t owners) {
    const bool last = emission.phase == Phase::kLastBackward;
    const Bytes shard{last ? (bytes.value + owners - 1) / owners : 0};
    for (const std::int32_t task :
         {weights(emission,
                  shards,
                  CollectiveKind::kReduceScatter,
                  bytes,
                  "dp reduce-scatter gradients"),
          weights(
              emission, replicas, CollectiveKind::kAllReduce, shard, "dp all-reduce gradients")}) {
      if (task >= 0) {
        emission.hooks.last_reduction = task;
        if (!scenario_.overlap.dp_grad) {
          emission.open.push_back(task);
        }
      }
    }
  };
  reduce(kDataGroup, kReplicaGroup, {parameters.shared * element}, span.ranks);
  reduce(kExpertDataGroup, kExpertReplicaGroup, {parameters.experts * element}, span.expert_ranks);
}

/// Parts of each unit that zero3 gathers at once, as positions in the order they run.
std::vector<std::vector<std::size_t>> StageBlocks::units_of(std::size_t parts) const {
  const bool whole = scenario_.parallelism.sharding == Sharding::kZero3 &&
                     scenario_.parallelism.fsdp.value_or(FsdpSpec{}).unit != "layer";
  std::vector<std::vector<std::size_t>> units;
  for (std::size_t part = 0; part < parts; ++part) {
    if (units.empty() || !whole) {
      units.emplace_back();
    }
    units.back().push_back(part);
  }
  return units;
}

/// Parts in the order they run. Under zero3 a unit's weights are gathered before it, those of the
/// next units while it runs, and its gradients are reduced after it.
void StageBlocks::emit(Emission& emission, const std::vector<std::int32_t>& parts) {
  const Parallelism& degrees = scenario_.parallelism;
  const FsdpSpec fsdp = degrees.fsdp.value_or(FsdpSpec{});
  const bool sharded = degrees.sharding == Sharding::kZero3;
  const bool gathers = sharded && (emission.phase == Phase::kForward || fsdp.reshard_after_forward);
  const auto ahead = static_cast<std::size_t>(scenario_.overlap.dp_param ? fsdp.prefetch : 0);
  std::size_t next_gather = 0;
  const std::vector<std::vector<std::size_t>> units = units_of(parts.size());
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    while (gathers && next_gather < units.size() && next_gather <= unit + ahead) {
      gather_unit(emission, next_gather++);
    }
    emission.unit = unit;
    for (const std::size_t part : units[unit]) {
      emit_part(emission, parts_[parts[part]]);
    }
    if (sharded && emission.phase >= Phase::kReducingBackward) {
      reduce_unit(emission, unit);
    }
  }
}

StageBlocks::Shapes StageBlocks::shapes_used(const LinkClass& links) const {
  Shapes used;
  used.fill(-1);
  for (const GroupKind kind : kAlwaysInside) {
    used[kind] = links.shape(kind);
  }
  if (scenario_.parallelism.sharding == Sharding::kZero3) {
    for (const GroupKind kind : kInsideUnderZero3) {
      used[kind] = links.shape(kind);
    }
  }
  return used;
}

const StageBlock& StageBlocks::get(std::int32_t stage,
                                   std::int32_t micro_batch,
                                   Phase phase,
                                   const LinkClass& links) {
  PartList order = parts_.of(stage, micro_batch);
  std::vector<RankParameters> parameters = parts_.parameters(stage);
  if (phase != Phase::kForward) {
    std::reverse(order.begin(), order.end());
    std::reverse(parameters.begin(), parameters.end());
  }
  Key key{order, static_cast<int>(phase), shapes_used(links)};
  if (const auto found = made_.find(key); found != made_.end()) {
    return found->second;
  }
  Emission emission;
  emission.phase = phase;
  emission.links = &links;
  for (const std::vector<std::size_t>& unit : units_of(order.size())) {
    RankParameters& sum = emission.units.emplace_back();
    for (const std::size_t part : unit) {
      sum.shared += parameters[part].shared;
      sum.experts += parameters[part].experts;
    }
  }
  emission.gathers.resize(emission.units.size());
  emit(emission, order);
  StageBlock& hooks = emission.hooks;
  if (emission.last_compute < 0) {
    // A stage without layers hands its input on; one free task keeps its place in the order.
    Task pass;
    pass.label = vocabulary_.label("pass");
    hooks.roots.push_back(emission.next());
    emit_task(emission, pass, {}, false);
  }
  if (phase != Phase::kForward) {
    std::reverse(hooks.part_first.begin(), hooks.part_first.end());
    std::reverse(hooks.part_last.begin(), hooks.part_last.end());
  }
  hooks.open = emission.open;
  hooks.last_compute = emission.last_compute;
  hooks.block = static_cast<std::int32_t>(vocabulary_.program().blocks.size());
  emission.block.name = block_name(slices_[static_cast<std::size_t>(stage)], phase);
  vocabulary_.program().blocks.push_back(std::move(emission.block));
  flops_[hooks.block] = emission.flops;
  return made_.emplace(std::move(key), std::move(hooks)).first->second;
}

}  // namespace foretrain
