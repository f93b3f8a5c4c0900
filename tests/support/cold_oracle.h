#pragma once

#include "foretrain/program.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace foretrain {

/// End times of one cold step by the definition alone: the least times that satisfy every rule of
/// program.h, found by applying all of them to all tasks until nothing moves.
class ColdOracle {
 public:
  explicit ColdOracle(const Program& program) : program_(program) {
    for (std::size_t i = 0; i < program.instances.size(); ++i) {
      ends_.emplace_back(list_of(i).task_count, 0);
      starts_.emplace_back(list_of(i).task_count, 0);
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < program.instances.size(); ++i) {
        moved = relax(static_cast<std::int32_t>(i)) || moved;
      }
    }
  }

  std::int64_t latest() const {
    std::int64_t latest = 0;
    for (const auto& ends : ends_) {
      for (const std::int64_t end : ends) {
        latest = std::max(latest, end);
      }
    }
    return latest;
  }
  const std::vector<std::int64_t>& ends(std::int32_t instance) const { return ends_[instance]; }

  /// The most work any instance has on one stream: no run can be shorter.
  std::int64_t busiest_stream() const {
    std::int64_t busiest = 0;
    for (const Instance& instance : program_.instances) {
      std::vector<std::int64_t> sums(program_.streams.size(), 0);
      for (const Call& call : program_.templates[instance.template_index].calls) {
        for (const Task& task : program_.blocks[call.block].tasks) {
          if (task.kind != TaskKind::kReceive) {
            sums[task.stream] += duration(instance, call, task);
          }
        }
      }
      busiest = std::max(busiest, *std::max_element(sums.begin(), sums.end()));
    }
    return busiest;
  }

 private:
  const Template& list_of(std::size_t instance) const {
    return program_.templates[program_.instances[instance].template_index];
  }

  /// Alone, then times the call's stretch for its kind of task, rounded up again.
  std::int64_t duration(const Instance& instance, const Call& call, const Task& task) const {
    const auto alone = static_cast<Int128>(
        duration_of(task.work, program_.factor_sets[instance.factor_set].base).count());
    const bool kernel = task.kind == TaskKind::kLocal && task.stream == 0;
    const bool transfer = task.kind == TaskKind::kCollective || task.kind == TaskKind::kSend;
    const std::int64_t stretch = kernel     ? call.kernel_stretch
                                 : transfer ? call.transfer_stretch
                                            : kUnitFactor;
    return static_cast<std::int64_t>((alone * stretch + kUnitFactor - 1) / kUnitFactor);
  }

  bool relax(std::int32_t i) {
    bool moved = false;
    std::vector<std::int64_t> clock(program_.streams.size(), 0);
    std::vector<std::int32_t> issued(program_.group_kinds.size(), 0);
    for (const Call& call : list_of(i).calls) {
      const Block& block = program_.blocks[call.block];
      for (std::size_t t = 0; t < block.tasks.size(); ++t) {
        const Task& task = block.tasks[t];
        const std::int32_t own = call.first_task + static_cast<std::int32_t>(t);
        std::int64_t start =
            std::max(clock[task.stream], (call.launch_offset + task.launch_offset).count());
        for (std::int32_t d = 0; d < task.dependency_count; ++d) {
          const std::int32_t local = block.dependencies[task.first_dependency + d];
          start = std::max(start, ends_[i][call.first_task + local]);
        }
        for (std::int32_t d = 0; d < call.dependency_count; ++d) {
          const CallDependency& wait = list_of(i).dependencies[call.first_dependency + d];
          if (wait.task == static_cast<std::int32_t>(t) && !wait.previous_step) {
            start = std::max(start, ends_[i][wait.producer]);
          }
        }
        const std::int64_t end = end_of(i, task, call, start, issued);
        moved = moved || end != ends_[i][own] || start != starts_[i][own];
        starts_[i][own] = start;
        ends_[i][own] = end;
        clock[task.stream] = end;
      }
    }
    return moved;
  }

  std::int64_t end_of(std::int32_t i,
                      const Task& task,
                      const Call& call,
                      std::int64_t start,
                      std::vector<std::int32_t>& issued) {
    const Instance& instance = program_.instances[i];
    if (task.kind == TaskKind::kReceive) {
      return std::max(start, sent_[{instance.peers[task.peer_slot], i, call.message}]);
    }
    if (task.kind != TaskKind::kCollective) {
      const std::int64_t end = start + duration(instance, call, task);
      if (task.kind == TaskKind::kSend) {
        sent_[{i, instance.peers[task.peer_slot], call.message}] = end;
      }
      return end;
    }
    const std::vector<std::int32_t> key = {
        task.group_kind, instance.groups[task.group_kind], issued[task.group_kind]++};
    auto& members = meetings_[key];
    members[i] = {start, duration(instance, call, task)};
    std::int64_t begin = 0;
    std::int64_t longest = 0;
    for (const auto& [member, there] : members) {
      begin = std::max(begin, there.first);
      longest = std::max(longest, there.second);
    }
    return begin + longest;
  }

  const Program& program_;
  std::vector<std::vector<std::int64_t>> starts_, ends_;
  std::map<std::vector<std::int32_t>, std::int64_t> sent_;
  std::map<std::vector<std::int32_t>, std::map<std::int32_t, std::pair<std::int64_t, std::int64_t>>>
      meetings_;
};

}  // namespace foretrain
