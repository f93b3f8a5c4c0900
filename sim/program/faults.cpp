#include "sim/program/faults.h"

#include "sim/program/stretch.h"

namespace foretrain {
namespace {

void check_task(const Program& program,
                const Block& block,
                std::size_t index,
                FaultList& faults,
                const FaultPlace& place) {
  const Task& task = block.tasks[index];
  const bool stream = faults.in_range(task.stream, program.streams.size(), place, "stream");
  if (!program.labels.empty()) {
    faults.in_range(task.label, program.labels.size(), place, "label");
  }
  if (stream && task.stream == 0) {
    faults.in_range(task.account, program.busy_accounts.size(), place, "busy account");
  }
  if (task.kind == TaskKind::kCollective) {
    faults.in_range(task.group_kind, program.group_kinds.size(), place, "group kind");
  } else if (task.kind != TaskKind::kLocal) {
    faults.in_range(task.peer_slot, kPeerSlots, place, "peer slot");
  }
  for (const std::int64_t work : task.work) {
    if (work < 0) {
      faults.add(place, "negative work");
    }
  }
  if (task.bytes < 0 || task.launch_offset.count() < 0) {
    faults.add(place, "negative bytes or launch offset");
  }
  const std::int64_t last =
      static_cast<std::int64_t>(task.first_dependency) + task.dependency_count;
  if (task.first_dependency < 0 || task.dependency_count < 0 ||
      last > static_cast<std::int64_t>(block.dependencies.size())) {
    faults.add(place, "dependencies outside the block's list");
    return;
  }
  for (std::int64_t d = task.first_dependency; d < last; ++d) {
    faults.in_range(block.dependencies[d], index, place, "dependency on an earlier task");
  }
}

void check_names(const Program& program, FaultList& faults) {
  if (program.streams.empty() || program.streams[0].role != StreamRole::kPrimary) {
    faults.add("stream 0 is not the primary one");
  }
  for (std::size_t s = 0; s < program.streams.size(); ++s) {
    if (program.streams[s].role == StreamRole::kCollective) {
      faults.in_range(program.streams[s].account,
                      program.exposed_accounts.size(),
                      {"stream", s},
                      "exposed account");
    }
  }
  for (std::size_t f = 0; f < program.factor_sets.size(); ++f) {
    const FactorSet& set = program.factor_sets[f];
    bool positive = true;
    for (int r = 0; r < kResourceCount; ++r) {
      positive = positive && set.base[r] > 0;
      for (const FactorWindow& window : set.windows) {
        positive = positive && window.factors[r] > 0;
      }
    }
    if (!positive) {
      faults.add({"factor set", f}, "a factor is not positive");
    }
  }
}

void check_call(const Program& program,
                const Template& list,
                std::size_t index,
                FaultList& faults,
                const FaultPlace& place) {
  const Call& call = list.calls[index];
  const Block& block = program.blocks[call.block];
  const std::int64_t last =
      static_cast<std::int64_t>(call.first_dependency) + call.dependency_count;
  if (call.first_dependency < 0 || call.dependency_count < 0 ||
      last > static_cast<std::int64_t>(list.dependencies.size())) {
    faults.add(place, "dependencies outside the template's list");
    return;
  }
  std::int32_t before = 0;
  for (std::int64_t d = call.first_dependency; d < last; ++d) {
    const CallDependency& dependency = list.dependencies[d];
    faults.in_range(dependency.task, block.tasks.size(), place, "task of a dependency");
    faults.in_range(dependency.producer, list.task_count, place, "producer of a dependency");
    if (dependency.task < before) {
      faults.add(place, "dependencies are not in task order");
    }
    before = dependency.task;
  }
  if (call.launch_offset.count() < 0 || call.allocated_bytes < 0 || call.freed_bytes < 0) {
    faults.add(place, "negative launch offset or bytes");
  }
  for (const std::int64_t stretch : {call.kernel_stretch, call.transfer_stretch}) {
    if (stretch < kUnitFactor || stretch > kMostStretch) {
      faults.add(place, "a stretch is not in [1, 64]");
      break;
    }
  }
}

void check_template(const Program& program, std::size_t index, FaultList& faults) {
  const Template& list = program.templates[index];
  const FaultPlace place{"template", index};
  std::int64_t tasks = 0;
  bool blocks = true;
  for (std::size_t c = 0; c < list.calls.size(); ++c) {
    const FaultPlace call{"template", index, "call", c};
    if (!faults.in_range(list.calls[c].block, program.blocks.size(), call, "block")) {
      blocks = false;
      break;
    }
    if (list.calls[c].first_task != tasks) {
      faults.add(call, "first task is not " + std::to_string(tasks));
    }
    tasks += static_cast<std::int64_t>(program.blocks[list.calls[c].block].tasks.size());
    check_call(program, list, c, faults, call);
  }
  if (!blocks) {
    return;
  }
  if (tasks != list.task_count) {
    faults.add(place, "task count is not " + std::to_string(tasks));
  }
  faults.in_range(list.step_end_task, list.task_count, place, "step end task");
  if (list.host_sync_task != -1) {
    faults.in_range(list.host_sync_task, list.task_count, place, "host sync task");
  }
}

void check_instance(const Program& program, std::size_t index, FaultList& faults) {
  const Instance& instance = program.instances[index];
  const FaultPlace place{"instance", index};
  faults.in_range(instance.template_index, program.templates.size(), place, "template");
  faults.in_range(instance.factor_set, program.factor_sets.size(), place, "factor set");
  for (const std::int32_t peer : instance.peers) {
    if (peer != -1) {
      faults.in_range(peer, program.instances.size(), place, "peer");
    }
  }
  if (instance.multiplicity < 1) {
    faults.add(place, "multiplicity below 1");
  }
  if (instance.groups.size() != program.group_kinds.size()) {
    faults.add(place, "not one group entry per group kind");
    return;
  }
  for (std::size_t kind = 0; kind < instance.groups.size(); ++kind) {
    if (instance.groups[kind] != -1 && kind < program.groups.size()) {
      faults.in_range(instance.groups[kind], program.groups[kind].size(), place, "group");
    }
  }
}

/// Instances and groups name each other.
void check_groups(const Program& program, FaultList& faults) {
  if (program.groups.size() != program.group_kinds.size()) {
    faults.add("not one list of groups per group kind");
    return;
  }
  for (std::size_t kind = 0; kind < program.groups.size(); ++kind) {
    std::vector<std::int32_t> seen(program.instances.size(), -1);
    for (std::size_t group = 0; group < program.groups[kind].size(); ++group) {
      const FaultPlace place{"group kind", kind, "group", group};
      for (const std::int32_t member : program.groups[kind][group]) {
        if (!faults.in_range(member, program.instances.size(), place, "member")) {
          continue;
        }
        if (seen[member] >= 0) {
          faults.add(place, "instance " + std::to_string(member) + " is in a group already");
        }
        seen[member] = static_cast<std::int32_t>(group);
      }
    }
    for (std::size_t i = 0; i < program.instances.size(); ++i) {
      const Instance& instance = program.instances[i];
      if (kind < instance.groups.size() && instance.groups[kind] != seen[i]) {
        faults.add({"instance", i}, "its " + program.group_kinds[kind] + " group disagrees");
      }
    }
  }
}

}  // namespace

std::string FaultPlace::text() const {
  std::string result = std::string(what) + " " + std::to_string(index);
  if (!inner.empty()) {
    result += " " + std::string(inner) + " " + std::to_string(inner_index);
  }
  return result;
}

bool FaultList::in_range(std::int64_t index,
                         std::size_t size,
                         const FaultPlace& place,
                         std::string_view what) {
  if (index >= 0 && index < static_cast<std::int64_t>(size)) {
    return true;
  }
  add(place,
      std::string(what) + " " + std::to_string(index) + " is not in [0, " + std::to_string(size) +
          ")");
  return false;
}

void find_index_faults(const Program& program, FaultList& faults) {
  check_names(program, faults);
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    const Block& block = program.blocks[b];
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      check_task(program, block, t, faults, {"block", b, "task", t});
    }
  }
  for (std::size_t t = 0; t < program.templates.size(); ++t) {
    check_template(program, t, faults);
  }
  for (std::size_t i = 0; i < program.instances.size(); ++i) {
    check_instance(program, i, faults);
  }
  check_groups(program, faults);
  find_link_faults(program, faults);
}

std::vector<std::string> program_faults(const Program& program) {
  FaultList faults;
  find_index_faults(program, faults);
  if (faults.empty()) {
    find_list_faults(program, faults);
    find_meeting_faults(program, faults);
  }
  return faults.take();
}

}  // namespace foretrain
