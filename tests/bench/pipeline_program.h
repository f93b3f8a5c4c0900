#pragma once

#include "foretrain/program.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

/// A program shaped like a 1F1B pipeline with tensor parallelism, for measuring the engine alone.
namespace foretrain {

struct PipelineShape {
  std::int32_t stages = 16;
  std::int32_t replicas = 1;  ///< instances per stage
  std::int32_t tp = 8;        ///< instances per tp group; replicas is a multiple
  std::int32_t micro_batches = 32;
  std::int32_t layers = 8;   ///< per stage; four tasks each way
  bool own_factors = false;  ///< every instance with factors of its own
};

class PipelineProgram {
 public:
  explicit PipelineProgram(const PipelineShape& shape) : shape_(shape) {}

  Program build() {
    program_.streams = {{"compute", StreamRole::kPrimary, 0},
                        {"tp", StreamRole::kCollective, 0},
                        {"send", StreamRole::kPointToPoint, 0},
                        {"receive", StreamRole::kPointToPoint, 0}};
    program_.group_kinds = {"tp", "world"};
    program_.groups.resize(2);
    program_.busy_accounts = {"compute"};
    program_.exposed_accounts = {"tp"};
    program_.labels = {""};
    program_.blocks = {pass("F", 1000), pass("B", 2000), end()};
    for (const TaskKind kind : {TaskKind::kSend, TaskKind::kReceive}) {
      for (std::int32_t slot = 0; slot < kPeerSlots; ++slot) {
        Task task;
        task.kind = kind;
        task.peer_slot = slot;
        task.stream = kind == TaskKind::kSend ? 2 : 3;
        task.work[static_cast<int>(Resource::kNic)] = kind == TaskKind::kSend ? 300 : 0;
        program_.blocks.push_back({"P", {task}, {}});
      }
    }
    for (std::int32_t stage = 0; stage < shape_.stages; ++stage) {
      add_stage(stage);
    }
    add_instances();
    return std::move(program_);
  }

 private:
  Block pass(const std::string& name, std::int64_t time) const {
    Block block{name, {}, {}};
    for (std::int32_t t = 0; t < 4 * shape_.layers; ++t) {
      Task task;
      task.first_dependency = static_cast<std::int32_t>(block.dependencies.size());
      task.dependency_count = t > 0 ? 1 : 0;
      if (t > 0) {
        block.dependencies.push_back(t - 1);
      }
      if (t % 2 == 1) {
        task.kind = TaskKind::kCollective;
        task.group_kind = 0;
        task.stream = 1;
      }
      task.work[static_cast<int>(t % 2 == 1 ? Resource::kLink : Resource::kTensor)] = time + t;
      block.tasks.push_back(task);
    }
    return block;
  }

  /// All ranks meet, then the optimizer runs.
  static Block end() {
    Task norm;
    norm.kind = TaskKind::kCollective;
    norm.group_kind = 1;
    norm.stream = 1;
    norm.work[static_cast<int>(Resource::kNic)] = 500;
    Task optimizer;
    optimizer.work[static_cast<int>(Resource::kOptimizer)] = 700;
    optimizer.dependency_count = 1;
    return {"O", {norm, optimizer}, {0}};
  }

  void call(Template& list,
            std::int32_t block,
            std::int32_t message,
            std::int32_t task,
            std::int32_t producer) const {
    Call entry;
    entry.block = block;
    entry.message = message;
    entry.first_task = list.task_count;
    entry.first_dependency = static_cast<std::int32_t>(list.dependencies.size());
    if (producer >= 0) {
      list.dependencies.push_back({task, producer, false});
      entry.dependency_count = 1;
    }
    list.calls.push_back(entry);
    list.task_count += static_cast<std::int32_t>(program_.blocks[block].tasks.size());
  }

  /// Receive from one side, compute, send to the other. Slot 0: next stage, 1: the one before.
  void pass_once(Template& list, std::int32_t stage, std::int32_t micro_batch, bool forward) const {
    const std::int32_t from = forward ? stage - 1 : stage + 1;
    const std::int32_t to = forward ? stage + 1 : stage - 1;
    const std::int32_t base = 2 * micro_batch + (forward ? 0 : 1);
    const auto message = [&](std::int32_t sender) {
      return sender * 2 * shape_.micro_batches + base;
    };
    std::int32_t input = -1;
    if (from >= 0 && from < shape_.stages) {
      call(list, forward ? 6 : 5, message(from), 0, -1);
      input = list.task_count - 1;
    }
    call(list, forward ? 0 : 1, -1, 0, input);
    if (to >= 0 && to < shape_.stages) {
      call(list, forward ? 3 : 4, message(stage), 0, list.task_count - 1);
    }
  }

  void add_stage(std::int32_t stage) {
    Template list;
    const std::int32_t warm_up = std::min(shape_.stages - 1 - stage, shape_.micro_batches);
    for (std::int32_t f = 0; f < warm_up; ++f) {
      pass_once(list, stage, f, true);
    }
    for (std::int32_t b = 0; b < shape_.micro_batches; ++b) {
      if (warm_up + b < shape_.micro_batches) {
        pass_once(list, stage, warm_up + b, true);
      }
      pass_once(list, stage, b, false);
    }
    call(list, 2, -1, 0, list.task_count - 1);
    list.step_end_task = list.task_count - 1;
    program_.templates.push_back(std::move(list));
  }

  void add_instances() {
    const std::int32_t ranks = shape_.stages * shape_.replicas;
    program_.groups[1].emplace_back();
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const std::int32_t stage = rank / shape_.replicas;
      Instance instance;
      instance.template_index = stage;
      instance.rank = rank;
      instance.peers = {stage + 1 < shape_.stages ? rank + shape_.replicas : -1,
                        stage > 0 ? rank - shape_.replicas : -1};
      const std::int32_t group = rank / std::min(shape_.tp, shape_.replicas);
      program_.groups[0].resize(group + 1);
      program_.groups[0][group].push_back(rank);
      program_.groups[1][0].push_back(rank);
      instance.groups = {group, 0};
      if (shape_.own_factors) {
        FactorSet set;
        set.base[0] += 37 * (rank % 1009);
        instance.factor_set = static_cast<std::int32_t>(program_.factor_sets.size());
        program_.factor_sets.push_back(set);
      }
      program_.instances.push_back(std::move(instance));
    }
  }

  PipelineShape shape_;
  Program program_;
};

}  // namespace foretrain
