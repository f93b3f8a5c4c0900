#include "sim/engine/deadlock.h"

#include "sim/engine/unroll.h"

#include <string>

namespace foretrain {
namespace {

class Blockage {
 public:
  Blockage(const Program& program, const std::vector<std::vector<std::int32_t>>& progress)
      : program_(program), progress_(progress) {
    for (const Template& list : program.templates) {
      lists_.push_back(unroll(program, list));
      positions_.emplace_back(lists_.back().tasks.size(), 0);
      for (const std::vector<std::int32_t>& stream : lists_.back().streams) {
        for (std::size_t position = 0; position < stream.size(); ++position) {
          positions_.back()[stream[position]] = static_cast<std::int32_t>(position);
        }
      }
    }
  }

  Deadlock describe() const {
    Deadlock result;
    for (std::size_t i = 0; i < program_.instances.size(); ++i) {
      const auto instance = static_cast<std::int32_t>(i);
      for (std::size_t s = 0; s < program_.streams.size(); ++s) {
        const std::int32_t head = head_of(instance, static_cast<std::int32_t>(s));
        if (head >= 0) {
          result.blocked.push_back(blocked_at(instance, static_cast<std::int32_t>(s), head));
        }
      }
    }
    return result;
  }

 private:
  const UnrolledTemplate& list_of(std::int32_t instance) const {
    return lists_[program_.instances[instance].template_index];
  }

  const Call& call_of(std::int32_t instance, std::int32_t task) const {
    return *list_of(instance).tasks[task].call;
  }

  std::int32_t head_of(std::int32_t instance, std::int32_t stream) const {
    const std::vector<std::int32_t>& tasks = list_of(instance).streams[stream];
    const std::int32_t done = progress_[instance][stream];
    return done < static_cast<std::int32_t>(tasks.size()) ? tasks[done] : -1;
  }

  bool done(std::int32_t instance, std::int32_t task) const {
    const std::int32_t position = positions_[program_.instances[instance].template_index][task];
    return position < progress_[instance][list_of(instance).tasks[task].task->stream];
  }

  /// The first dependency that is not done; -1: none.
  std::int32_t open_wait(std::int32_t instance, std::int32_t task) const {
    const UnrolledTemplate& list = list_of(instance);
    for (const CallDependency& wait : list.waits_of(list.tasks[task])) {
      if (!wait.previous_step && !done(instance, wait.producer)) {
        return wait.producer;
      }
    }
    return -1;
  }

  /// "3F5 pp receive": stage, block, micro-batch, label.
  std::string name_of(std::int32_t instance, std::int32_t task) const {
    const Task& entry = *list_of(instance).tasks[task].task;
    const Call& call = call_of(instance, task);
    std::string name = call.stage < 0 ? "" : std::to_string(call.stage);
    name += program_.blocks[call.block].name;
    name += call.micro_batch < 0 ? "" : std::to_string(call.micro_batch);
    const bool labelled = entry.label < static_cast<std::int32_t>(program_.labels.size());
    return labelled ? name + " " + program_.labels[entry.label] : name;
  }

  BlockedTask blocked_at(std::int32_t instance, std::int32_t stream, std::int32_t task) const {
    BlockedTask blocked;
    blocked.instance = instance;
    blocked.rank = program_.instances[instance].rank;
    blocked.task = name_of(instance, task);
    blocked.waiting_for = reason(instance, task);
    blocked.stream = stream;
    const Template& list = program_.templates[program_.instances[instance].template_index];
    blocked.call = static_cast<std::int32_t>(&call_of(instance, task) - list.calls.data());
    blocked.on_instance = instance;
    const std::int32_t wait = open_wait(instance, task);
    const Task& entry = *list_of(instance).tasks[task].task;
    if (wait >= 0) {
      blocked.on_stream = list_of(instance).tasks[wait].task->stream;
    } else if (entry.kind != TaskKind::kCollective) {
      blocked.on_instance = program_.instances[instance].peers[entry.peer_slot];
    }
    return blocked;
  }

  std::string reason(std::int32_t instance, std::int32_t task) const {
    const std::int32_t wait = open_wait(instance, task);
    if (wait >= 0) {
      return name_of(instance, wait);
    }
    const Task& entry = *list_of(instance).tasks[task].task;
    if (entry.kind == TaskKind::kCollective) {
      return missing_member(instance, task);
    }
    const std::int32_t peer = program_.instances[instance].peers[entry.peer_slot];
    return "send of message " + std::to_string(call_of(instance, task).message) + " by rank " +
           std::to_string(program_.instances[peer].rank);
  }

  std::string missing_member(std::int32_t instance, std::int32_t task) const {
    const std::int32_t kind = list_of(instance).tasks[task].task->group_kind;
    const std::int32_t ordinal = list_of(instance).tasks[task].ordinal;
    const std::int32_t group = program_.instances[instance].groups[kind];
    for (const std::int32_t member : program_.groups[kind][group]) {
      if (!arrived(member, kind, ordinal)) {
        return program_.group_kinds[kind] + " collective " + std::to_string(ordinal) + " of rank " +
               std::to_string(program_.instances[member].rank);
      }
    }
    return "";
  }

  bool arrived(std::int32_t instance, std::int32_t kind, std::int32_t ordinal) const {
    for (std::size_t s = 0; s < program_.streams.size(); ++s) {
      const std::int32_t head = head_of(instance, static_cast<std::int32_t>(s));
      if (head < 0) {
        continue;
      }
      const UnrolledTask& task = list_of(instance).tasks[head];
      if (task.task->kind == TaskKind::kCollective && task.task->group_kind == kind &&
          task.ordinal == ordinal) {
        return open_wait(instance, head) < 0;
      }
    }
    return false;
  }

  const Program& program_;
  const std::vector<std::vector<std::int32_t>>& progress_;
  std::vector<UnrolledTemplate> lists_;
  std::vector<std::vector<std::int32_t>> positions_;  ///< per template and task: in its stream
};

}  // namespace

Deadlock describe_deadlock(const Program& program,
                           const std::vector<std::vector<std::int32_t>>& progress) {
  return Blockage(program, progress).describe();
}

}  // namespace foretrain
