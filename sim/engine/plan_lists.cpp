#include "sim/engine/plan.h"

#include <algorithm>
#include <tuple>

namespace foretrain {
namespace {

template <typename Entry, typename Match>
Entry& find_or_add(std::vector<Entry>& entries, Match matches, Entry fresh) {
  const auto found = std::find_if(entries.begin(), entries.end(), matches);
  return found != entries.end() ? *found : entries.emplace_back(std::move(fresh));
}

void place_task(const Block& block, std::int32_t local, BlockPlan& plan) {
  const Task& task = block.tasks[local];
  BlockTask& entry = plan.tasks[local];
  entry.task = &task;
  entry.launch = task.launch_offset.count();
  auto& stream = find_or_add<BlockPlan::OnStream>(
      plan.streams,
      [&](const auto& known) { return known.stream == task.stream; },
      {task.stream, {}});
  entry.index = static_cast<std::int32_t>(stream.tasks.size());
  stream.tasks.push_back(local);
  entry.first_wait = static_cast<std::int32_t>(plan.waits.size());
  for (std::int32_t d = 0; d < task.dependency_count; ++d) {
    const std::int32_t producer = block.dependencies[task.first_dependency + d];
    const std::int32_t other = block.tasks[producer].stream;
    if (other != task.stream) {
      plan.waits.push_back({producer, other, plan.tasks[producer].index, -1});
      ++entry.wait_count;
      if (task.stream == 0) {
        plan.feeds_primary.push_back(other);
      }
    }
  }
  if (task.kind == TaskKind::kCollective) {
    auto& kind = find_or_add<BlockPlan::OfKind>(
        plan.kinds,
        [&](const auto& known) { return known.kind == task.group_kind; },
        {task.group_kind, 0});
    entry.ordinal = kind.collectives++;
  } else if (task.kind == TaskKind::kSend) {
    plan.send = local;
  } else if (task.kind == TaskKind::kReceive) {
    plan.receive = local;
  }
  plan.launches = plan.launches || entry.launch > 0;
}

/// Writes the plan of one template.
class ListWriter {
 public:
  ListWriter(const Program& program, const std::vector<BlockPlan>& blocks, const Template& list)
      : blocks_(blocks), list_(list) {
    plan_.streams.resize(program.streams.size());
    plan_.collectives.assign(program.group_kinds.size(), 0);
    plan_.feeds_primary.assign(program.streams.size(), false);
    plan_.host_bound = list.host_sync_task >= 0;
  }

  ListPlan write() {
    plan_.calls.reserve(list_.calls.size());
    for (std::size_t c = 0; c < list_.calls.size(); ++c) {
      place_call(static_cast<std::int32_t>(c));
    }
    keep_tasks();
    plan_.waits.reserve(list_.dependencies.size());
    for (std::size_t c = 0; c < list_.calls.size(); ++c) {
      place_waits(static_cast<std::int32_t>(c));
    }
    plan_.waits.shrink_to_fit();
    return std::move(plan_);
  }

 private:
  struct TaskPlace {
    std::int32_t call = 0, local = 0;
  };

  void place_call(std::int32_t index) {
    const Call& call = list_.calls[index];
    const BlockPlan& block = blocks_[call.block];
    CallPlan entry;
    entry.launch = call.launch_offset.count();
    entry.block = call.block;
    entry.stretches = stretches_of(call);
    entry.first_ordinal = static_cast<std::int32_t>(plan_.ordinals.size());
    for (const BlockPlan::OfKind& kind : block.kinds) {
      plan_.ordinals.push_back(plan_.collectives[kind.kind]);
      plan_.collectives[kind.kind] += kind.collectives;
    }
    for (const BlockPlan::OnStream& stream : block.streams) {
      plan_.streams[stream.stream].push_back(index);
    }
    entry.receive = block.receive >= 0 ? plan_.receives++ : -1;
    entry.readers = block.send >= 0 ? 1 : 0;
    for (const std::int32_t stream : block.feeds_primary) {
      plan_.feeds_primary[stream] = true;
    }
    plan_.host_bound = plan_.host_bound || block.launches || entry.launch > 0;
    plan_.calls.push_back(entry);
  }

  /// Where a task is. Calls of empty blocks share their first task with the next call: the last of
  /// them holds it.
  TaskPlace place_of(std::int32_t task) const {
    const auto after = std::upper_bound(
        list_.calls.begin(), list_.calls.end(), task, [](std::int32_t t, const Call& call) {
          return t < call.first_task;
        });
    const auto call = static_cast<std::int32_t>(after - list_.calls.begin()) - 1;
    return {call, task - list_.calls[call].first_task};
  }
  const BlockTask& task_at(TaskPlace place) const {
    return blocks_[plan_.calls[place.call].block].tasks[place.local];
  }
  bool keeps_order(const CallDependency& wait,
                   std::int32_t consumer,
                   std::int32_t stream,
                   const BlockTask& producer) const {
    return producer.task->stream == stream && (wait.previous_step || wait.producer < consumer);
  }

  /// Lists what the next step, the host and the step's end need to know.
  void keep_tasks() {
    std::vector<std::int32_t> tasks;
    for (const Call& call : list_.calls) {
      for (std::int32_t d = 0; d < call.dependency_count; ++d) {
        const CallDependency& wait = list_.dependencies[call.first_dependency + d];
        const std::int32_t stream = blocks_[call.block].tasks[wait.task].task->stream;
        if (wait.previous_step && task_at(place_of(wait.producer)).task->stream != stream) {
          tasks.push_back(wait.producer);
        }
      }
    }
    std::sort(tasks.begin(), tasks.end());
    tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
    for (const std::int32_t task : tasks) {
      kept(task).carried = plan_.carried++;
    }
    if (list_.host_sync_task >= 0) {
      kept(list_.host_sync_task).host_sync = true;
    }
    kept(list_.step_end_task).step_end = true;
    std::sort(plan_.kept.begin(), plan_.kept.end(), [](const KeptTask& a, const KeptTask& b) {
      return std::tie(a.call, a.local) < std::tie(b.call, b.local);
    });
    for (const KeptTask& task : plan_.kept) {
      plan_.calls[task.call].kept = true;
    }
  }
  KeptTask& kept(std::int32_t task) {
    const TaskPlace place = place_of(task);
    return find_or_add<KeptTask>(plan_.kept,
                                 [&](const KeptTask& known) {
                                   return known.call == place.call && known.local == place.local;
                                 },
                                 {place.call, place.local});
  }

  void place_waits(std::int32_t index) {
    const Call& call = list_.calls[index];
    plan_.calls[index].first_wait = static_cast<std::int32_t>(plan_.waits.size());
    for (std::int32_t d = 0; d < call.dependency_count; ++d) {
      const CallDependency& wait = list_.dependencies[call.first_dependency + d];
      const std::int32_t stream = blocks_[call.block].tasks[wait.task].task->stream;
      const TaskPlace place = place_of(wait.producer);
      const BlockTask& producer = task_at(place);
      if (keeps_order(wait, call.first_task + wait.task, stream, producer)) {
        continue;
      }
      const std::int32_t carried = wait.previous_step ? kept(wait.producer).carried : -1;
      plan_.waits.push_back({wait.task,
                             producer.task->stream,
                             cursor_at(place.call, producer.index),
                             place.local,
                             -1,
                             carried});
      ++plan_.calls[index].wait_count;
      plan_.calls[place.call].readers += wait.previous_step ? 0 : 1;
      if (stream == 0) {
        plan_.feeds_primary[producer.task->stream] = true;
      }
    }
  }

  const std::vector<BlockPlan>& blocks_;
  const Template& list_;
  ListPlan plan_;
};

}  // namespace

const std::vector<std::int32_t>& BlockPlan::on(std::int32_t stream) const {
  const OnStream* entry = streams.data();
  while (entry->stream != stream) {
    ++entry;
  }
  return entry->tasks;
}

std::vector<BlockPlan> plan_blocks(const Program& program) {
  std::vector<BlockPlan> plans;
  plans.reserve(program.blocks.size());
  std::int32_t price = 0;
  for (const Block& block : program.blocks) {
    BlockPlan& plan = plans.emplace_back();
    plan.tasks.resize(block.tasks.size());
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      place_task(block, static_cast<std::int32_t>(t), plan);
      plan.tasks[t].price = price++;
    }
    std::sort(plan.feeds_primary.begin(), plan.feeds_primary.end());
    plan.feeds_primary.erase(std::unique(plan.feeds_primary.begin(), plan.feeds_primary.end()),
                             plan.feeds_primary.end());
  }
  return plans;
}

ListPlan plan_list(const Program& program,
                   const std::vector<BlockPlan>& blocks,
                   const Template& list) {
  return ListWriter(program, blocks, list).write();
}

void assign_rows(ProgramPlan& plan) {
  const auto give_row = [](BlockPlan& block, std::int32_t local) {
    std::int32_t& row = block.tasks[local].row;
    row = row < 0 ? block.rows++ : row;
    return row;
  };
  for (BlockPlan& block : plan.blocks) {
    for (BlockWait& wait : block.waits) {
      wait.row = give_row(block, wait.producer);
    }
    if (block.send >= 0) {
      give_row(block, block.send);
    }
  }
  for (ListPlan& list : plan.lists) {
    for (CallWait& wait : list.waits) {
      if (wait.carried < 0) {
        wait.row = give_row(plan.blocks[list.calls[call_of(wait.at)].block], wait.producer);
      }
    }
  }
}

}  // namespace foretrain
