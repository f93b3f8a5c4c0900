// Under zero3: gathers of a unit's weights before it, reductions of its gradients after it.
#include "sim/lower/block_emission.h"

namespace foretrain {

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
    const bool last = is_last(emission.phase);
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
  // Weight gradients are made from activations alone.
  const bool gathers = sharded && !is_weight_half(emission.phase) &&
                       (emission.phase == Phase::kForward || fsdp.reshard_after_forward);
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
    if (sharded && is_reducing(emission.phase)) {
      reduce_unit(emission, unit);
    }
  }
}

}  // namespace foretrain
