#include "sim/engine/unroll.h"

#include <algorithm>
#include <cstddef>

namespace foretrain {
namespace {

class Unroller {
 public:
  Unroller(const Program& program, const Template& list)
      : program_(program), list_(list), issued_(program.group_kinds.size(), 0) {
    result_.streams.resize(program.streams.size());
    result_.tasks.reserve(static_cast<std::size_t>(list.task_count));
    result_.host_sync = list.host_sync_task;
    result_.host_bound = list.host_sync_task >= 0;
  }

  UnrolledTemplate unroll() {
    for (std::size_t c = 0; c < list_.calls.size(); ++c) {
      add(static_cast<std::int32_t>(c));
    }
    for (UnrolledTask& task : result_.tasks) {
      add_waits(task);
    }
    return std::move(result_);
  }

 private:
  void add(std::int32_t index) {
    const Call& call = list_.calls[index];
    const Block& block = program_.blocks[call.block];
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const Task& task = block.tasks[t];
      const auto own = static_cast<std::int32_t>(result_.tasks.size());
      UnrolledTask& entry = result_.tasks.emplace_back();
      entry.task = &task;
      entry.call = &call;
      entry.launch = (call.launch_offset + task.launch_offset).count();
      entry.call_index = index;
      entry.local = static_cast<std::int32_t>(t);
      result_.host_bound = result_.host_bound || entry.launch > 0;
      if (task.kind == TaskKind::kCollective) {
        entry.ordinal = issued_[task.group_kind]++;
      } else if (task.kind == TaskKind::kSend) {
        result_.sends[call.message] = own;
      }
      if (program_.streams[task.stream].role == StreamRole::kCollective ||
          task.kind == TaskKind::kSend || task.kind == TaskKind::kReceive) {
        result_.communication.push_back(own);
      }
      result_.streams[task.stream].push_back(own);
    }
  }

  void add_waits(UnrolledTask& entry) {
    const Call& call = *entry.call;
    const Block& block = program_.blocks[call.block];
    const auto first = result_.waits.size();
    for (std::int32_t d = 0; d < entry.task->dependency_count; ++d) {
      add_wait(entry,
               {entry.local,
                call.first_task + block.dependencies[entry.task->first_dependency + d],
                false});
    }
    const auto begin = list_.dependencies.begin() + call.first_dependency;
    const auto end = begin + call.dependency_count;
    auto wait = std::lower_bound(
        begin, end, entry.local, [](const CallDependency& one, std::int32_t local) {
          return one.task < local;
        });
    for (; wait != end && wait->task == entry.local; ++wait) {
      add_wait(entry, *wait);
    }
    entry.first_wait = static_cast<std::int32_t>(first);
    entry.wait_count = static_cast<std::int32_t>(result_.waits.size() - first);
  }

  void add_wait(const UnrolledTask& entry, const CallDependency& wait) {
    const std::int32_t own = entry.call->first_task + entry.local;
    const bool same = result_.tasks[wait.producer].task->stream == entry.task->stream;
    if (same && (wait.previous_step || wait.producer < own)) {
      return;
    }
    result_.waits.push_back(wait);
    if (wait.previous_step) {
      result_.carried.push_back(wait.producer);
    }
  }

  const Program& program_;
  const Template& list_;
  std::vector<std::int32_t> issued_;  ///< collectives, per group kind
  UnrolledTemplate result_;
};

}  // namespace

UnrolledTemplate unroll(const Program& program, const Template& list) {
  return Unroller(program, list).unroll();
}

}  // namespace foretrain
