#include "sim/lower/stage_blocks.h"

#include "sim/base/check.h"
#include "sim/base/format.h"

#include <algorithm>
#include <limits>
#include <string>

namespace foretrain {
namespace {

BlockContext context_of(const Scenario& scenario, RecomputeMode recompute) {
  BlockContext context;
  context.sequence_length = scenario.training.sequence_length;
  context.micro_batch_size = scenario.training.micro_batch_size;
  context.tp = scenario.parallelism.tp;
  context.sequence_parallel = scenario.parallelism.sequence_parallel;
  context.recompute = recompute;
  context.recompute_modules = scenario.recompute.modules;
  context.grad_element_bytes = scenario.training.dtype.grads == DataType::kFp32 ? 4 : 2;
  context.fused_operators = scenario.stack.fused_operators;
  context.flash_attention = scenario.stack.attention_kernel != "unfused";
  context.fused_gradient_accumulation = scenario.stack.fused_gradient_accumulation;
  context.textbook = scenario.costs.constant;
  return context;
}

}  // namespace

PartOperators::PartOperators(const Scenario& scenario) : recompute_(scenario.recompute) {
  const BlockContext plain = context_of(scenario, RecomputeMode::kNone);
  embedding_ = block_operators(scenario.model, BlockKind::kEmbedding, plain);
  head_ = block_operators(scenario.model, BlockKind::kHead, plain);
  layer_ = block_operators(scenario.model, BlockKind::kDense, plain);
  recomputed_ = block_operators(
      scenario.model, BlockKind::kDense, context_of(scenario, scenario.recompute.mode));
  boundary_ = boundary_bytes(scenario.model, plain);
}

std::int64_t PartOperators::recomputed_layers(std::int64_t layers) const {
  if (recompute_.mode == RecomputeMode::kNone) {
    return 0;
  }
  return std::min(layers, recompute_.layers.value_or(std::numeric_limits<std::int64_t>::max()));
}

Bytes PartOperators::stash(const StageSlice& slice) const {
  const std::int64_t recomputed = recomputed_layers(slice.layers);
  Bytes total =
      recomputed * stash_bytes(recomputed_) + (slice.layers - recomputed) * stash_bytes(layer_);
  if (slice.embedding) {
    total += stash_bytes(embedding_);
  }
  if (slice.head) {
    total += stash_bytes(head_) + head_.logits;
  }
  return total;
}

/// A block under construction.
struct StageBlocks::Emission {
  Block block;
  StageBlock hooks;
  BlockFlops flops;
  const GroupShape* shape = nullptr;
  std::vector<std::int32_t> open;  ///< collectives of the part before that nothing waited for
  std::int32_t last_compute = -1;
};

StageBlocks::StageBlocks(const Scenario& scenario,
                         const PartOperators& parts,
                         const OperatorPrices& prices,
                         Vocabulary& vocabulary)
    : scenario_(scenario), parts_(parts), prices_(prices), vocabulary_(vocabulary) {}

Task StageBlocks::task_for(const Operator& op,
                           const GroupShape& shape,
                           bool free,
                           BlockFlops& flops) {
  Task task;
  task.label = vocabulary_.label(op.name);
  task.account = op.pass == Pass::kRecompute ? kRecomputeAccount : kComputeAccount;
  if (op.kind == OperatorKind::kCollective) {
    FORETRAIN_CHECK(op.dimension == MeshDimension::kTp, "only tensor collectives inside a block");
    task.kind = TaskKind::kCollective;
    task.stream = kTensorStream;
    task.group_kind = kTensorGroup;
    if (!free) {
      task.bytes = bus_bytes(op.collective, op.payload, shape.size);
      task.work = transfer_work(collective_cost(op.collective, op.payload, shape, prices_.links()));
    }
    return task;
  }
  task.stream = kComputeStream;
  task.flops = op.flops.value;
  (op.pass == Pass::kRecompute ? flops.recomputed : flops.model) += op.flops.value;
  if (!free) {
    task.work = prices_.kernel(op);
  }
  return task;
}

void StageBlocks::emit_part(Emission& emission, const std::vector<Operator>& ops, bool free) {
  const auto base = static_cast<std::int32_t>(emission.block.tasks.size());
  std::vector<bool> awaited(ops.size(), false);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Operator& op = ops[i];
    const auto self = base + static_cast<std::int32_t>(i);
    std::vector<std::int32_t> waits;
    for (const std::int32_t input : op.inputs) {
      waits.push_back(base + input);
      awaited[static_cast<std::size_t>(input)] = true;
    }
    if (op.inputs.empty()) {
      waits.insert(waits.end(), emission.open.begin(), emission.open.end());
    }
    Task task = task_for(op, *emission.shape, free, emission.flops);
    // A collective is launched after the kernels before it and waits for them, as NCCL on a stream
    // that synchronises with the compute stream does.
    if (task.kind == TaskKind::kCollective && emission.last_compute >= 0) {
      waits.push_back(emission.last_compute);
    }
    std::sort(waits.begin(), waits.end());
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    if (waits.empty() && emission.last_compute < 0) {
      emission.hooks.roots.push_back(self);
    }
    task.first_dependency = static_cast<std::int32_t>(emission.block.dependencies.size());
    task.dependency_count = static_cast<std::int32_t>(waits.size());
    emission.block.dependencies.insert(
        emission.block.dependencies.end(), waits.begin(), waits.end());
    emission.hooks.launch += prices_.launch();
    task.launch_offset = emission.hooks.launch;
    emission.last_compute = task.stream == kComputeStream ? self : emission.last_compute;
    emission.block.tasks.push_back(task);
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

const StageBlock& StageBlocks::get(const StageSlice& slice,
                                   Phase phase,
                                   const GroupShape& tensor_shape,
                                   std::int32_t shape_class) {
  const Key key{slice.layers, slice.embedding, slice.head, static_cast<int>(phase), shape_class};
  const auto found = made_.find(key);
  if (found != made_.end()) {
    return found->second;
  }
  const bool ends_free = scenario_.costs.constant && scenario_.costs.embedding_and_head_free;
  const std::int64_t recomputed = parts_.recomputed_layers(slice.layers);
  struct Part {
    const BlockOperators* operators;
    bool free;
  };
  std::vector<Part> order;
  if (slice.embedding) {
    order.push_back({&parts_.embedding(), ends_free});
  }
  for (std::int64_t layer = 0; layer < slice.layers; ++layer) {
    order.push_back({&parts_.layer(layer < recomputed), false});
  }
  if (slice.head) {
    order.push_back({&parts_.head(), ends_free});
  }
  if (phase == Phase::kBackward) {
    std::reverse(order.begin(), order.end());
  }

  Emission emission;
  emission.shape = &tensor_shape;
  for (const Part& part : order) {
    emit_part(emission,
              phase == Phase::kForward ? part.operators->forward : part.operators->backward,
              part.free);
  }
  StageBlock& hooks = emission.hooks;
  if (emission.block.tasks.empty()) {
    // A stage without layers hands its input on; one free task keeps its place in the order.
    Task pass;
    pass.label = vocabulary_.label("pass");
    emission.block.tasks.push_back(pass);
    hooks.roots = {0};
    emission.last_compute = 0;
  }
  if (phase == Phase::kBackward) {
    std::reverse(hooks.part_first.begin(), hooks.part_first.end());
    std::reverse(hooks.part_last.begin(), hooks.part_last.end());
  }
  hooks.open = emission.open;
  hooks.last_compute = emission.last_compute;
  hooks.block = static_cast<std::int32_t>(vocabulary_.program().blocks.size());
  emission.block.name = std::string(phase == Phase::kForward ? "F" : "B") +
                        (slice.embedding ? " embedding" : "") + " " + std::to_string(slice.layers) +
                        " " + plural("layer", slice.layers) + (slice.head ? " head" : "");
  vocabulary_.program().blocks.push_back(std::move(emission.block));
  flops_[hooks.block] = emission.flops;
  return made_.emplace(key, std::move(hooks)).first->second;
}

}  // namespace foretrain
