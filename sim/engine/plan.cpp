#include "sim/engine/plan.h"

#include "sim/program/interner.h"
#include "sim/program/partition.h"

#include <algorithm>

namespace foretrain {
namespace {

void place_tasks(const Program& program,
                 const Template& list,
                 const std::vector<std::int32_t>& block_offsets,
                 FlatList& flat) {
  flat.tasks.reserve(list.task_count);
  for (std::size_t c = 0; c < list.calls.size(); ++c) {
    const Call& call = list.calls[c];
    const Block& block = program.blocks[call.block];
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const Task& task = block.tasks[t];
      FlatTask entry;
      entry.task = &task;
      entry.launch = (call.launch_offset + task.launch_offset).count();
      entry.block_task = block_offsets[call.block] + static_cast<std::int32_t>(t);
      entry.call = static_cast<std::int32_t>(c);
      entry.local = static_cast<std::int32_t>(t);
      entry.position = static_cast<std::int32_t>(flat.streams[task.stream].size());
      if (task.kind == TaskKind::kCollective) {
        entry.ordinal = flat.collectives[task.group_kind]++;
      }
      entry.readers = task.kind == TaskKind::kSend ? 1 : 0;
      flat.host_bound = flat.host_bound || entry.launch > 0;
      flat.streams[task.stream].push_back(static_cast<std::int32_t>(flat.tasks.size()));
      flat.tasks.push_back(entry);
    }
  }
}

class WaitCollector {
 public:
  explicit WaitCollector(FlatList& flat) : flat_(flat) {}

  void add(std::int32_t consumer, std::int32_t producer, bool previous_step) {
    const std::int32_t stream = flat_.tasks[consumer].task->stream;
    FlatTask& source = flat_.tasks[producer];
    if (source.task->stream == stream && (previous_step || producer < consumer)) {
      return;
    }
    flat_.waits.push_back({producer, source.position, source.task->stream, previous_step});
    ++flat_.tasks[consumer].wait_count;
    if (!previous_step) {
      ++source.readers;
    } else if (source.carried < 0) {
      source.carried = static_cast<std::int32_t>(flat_.carried.size());
      flat_.carried.push_back(producer);
    }
    if (stream == 0) {
      flat_.feeds_primary[source.task->stream] = true;
    }
  }

 private:
  FlatList& flat_;
};

void place_waits(const Program& program, const Template& list, FlatList& flat) {
  WaitCollector waits(flat);
  for (const Call& call : list.calls) {
    const Block& block = program.blocks[call.block];
    std::int32_t next = 0;  // the call's dependencies come by task
    for (std::size_t t = 0; t < block.tasks.size(); ++t) {
      const Task& task = block.tasks[t];
      const std::int32_t own = call.first_task + static_cast<std::int32_t>(t);
      flat.tasks[own].first_wait = static_cast<std::int32_t>(flat.waits.size());
      for (std::int32_t d = 0; d < task.dependency_count; ++d) {
        const std::int32_t local = block.dependencies[task.first_dependency + d];
        waits.add(own, call.first_task + local, false);
      }
      for (; next < call.dependency_count; ++next) {
        const CallDependency& dependency = list.dependencies[call.first_dependency + next];
        if (dependency.task != static_cast<std::int32_t>(t)) {
          break;
        }
        waits.add(own, dependency.producer, dependency.previous_step);
      }
    }
  }
}

std::vector<std::int32_t> block_offsets_of(const Program& program) {
  std::vector<std::int32_t> offsets = {0};
  for (const Block& block : program.blocks) {
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(block.tasks.size()));
  }
  return offsets;
}

void make_cohorts(const Program& program, Plan& plan) {
  std::vector<std::int32_t> templates;
  for (const Instance& instance : program.instances) {
    templates.push_back(instance.template_index);
  }
  const std::vector<std::int32_t> classes = stable_partition(program, std::move(templates));
  plan.place.resize(program.instances.size());
  for (std::size_t i = 0; i < program.instances.size(); ++i) {
    const std::int32_t own = classes[i];
    if (own == static_cast<std::int32_t>(plan.cohorts.size())) {
      Cohort cohort;
      cohort.list = program.instances[i].template_index;
      cohort.link.assign(program.group_kinds.size(), -1);
      cohort.group.resize(program.group_kinds.size());
      plan.cohorts.push_back(std::move(cohort));
    }
    plan.place[i] = static_cast<std::int32_t>(plan.cohorts[own].instances.size());
    plan.cohorts[own].instances.push_back(static_cast<std::int32_t>(i));
  }
}

/// Stability makes a link's cohorts the same for all of its groups: those of the first.
void make_links(const Program& program, Plan& plan) {
  const std::vector<TemplateUse> uses = template_uses(program);
  std::vector<std::int32_t> cohort_of(program.instances.size());
  for (std::size_t c = 0; c < plan.cohorts.size(); ++c) {
    for (const std::int32_t instance : plan.cohorts[c].instances) {
      cohort_of[instance] = static_cast<std::int32_t>(c);
    }
  }
  for (std::size_t kind = 0; kind < program.groups.size(); ++kind) {
    for (const auto& members : program.groups[kind]) {
      if (members.empty() || !uses[program.instances[members[0]].template_index].kinds[kind]) {
        continue;
      }
      std::int32_t& link = plan.cohorts[cohort_of[members[0]]].link[kind];
      if (link < 0) {
        link = static_cast<std::int32_t>(plan.links.size());
        plan.links.emplace_back();
      }
      const std::int32_t known = link;
      for (const std::int32_t member : members) {
        Cohort& cohort = plan.cohorts[cohort_of[member]];
        if (cohort.group[kind].empty()) {
          cohort.group[kind].resize(cohort.instances.size(), 0);
          cohort.link[kind] = known;
          plan.links[known].cohorts.push_back(cohort_of[member]);
        }
        cohort.group[kind][plan.place[member]] = plan.links[known].groups;
      }
      ++plan.links[known].groups;
    }
  }
  for (Cohort& cohort : plan.cohorts) {
    for (int slot = 0; slot < kPeerSlots; ++slot) {
      if (!uses[cohort.list].slots[slot]) {
        continue;
      }
      for (const std::int32_t instance : cohort.instances) {
        const std::int32_t peer = program.instances[instance].peers[slot];
        cohort.peer_cohort[slot] = cohort_of[peer];
        cohort.peer[slot].push_back(plan.place[peer]);
      }
    }
  }
}

/// Per list, the task that sends each message; sorted by message.
using Senders = std::vector<std::pair<std::int32_t, std::int32_t>>;

Senders senders_of(const Template& list, const FlatList& flat) {
  Senders senders;
  for (std::size_t t = 0; t < flat.tasks.size(); ++t) {
    if (flat.tasks[t].task->kind == TaskKind::kSend) {
      senders.emplace_back(list.calls[flat.tasks[t].call].message, static_cast<std::int32_t>(t));
    }
  }
  std::sort(senders.begin(), senders.end());
  return senders;
}

void match_messages(const Program& program, Plan& plan) {
  std::vector<Senders> senders;
  for (std::size_t l = 0; l < plan.lists.size(); ++l) {
    senders.push_back(senders_of(program.templates[l], plan.lists[l]));
  }
  for (Cohort& cohort : plan.cohorts) {
    const FlatList& flat = plan.lists[cohort.list];
    cohort.partner.assign(flat.tasks.size(), -1);
    for (std::size_t t = 0; t < flat.tasks.size(); ++t) {
      const Task& task = *flat.tasks[t].task;
      if (task.kind != TaskKind::kReceive) {
        continue;
      }
      const std::int32_t message = program.templates[cohort.list].calls[flat.tasks[t].call].message;
      const Senders& known = senders[plan.cohorts[cohort.peer_cohort[task.peer_slot]].list];
      const auto found = std::lower_bound(known.begin(), known.end(), std::pair{message, -1});
      if (found != known.end() && found->first == message) {
        cohort.partner[t] = found->second;
      }
    }
  }
}

}  // namespace

FlatList flatten(const Program& program, const Template& list) {
  FlatList flat;
  flat.streams.resize(program.streams.size());
  flat.collectives.assign(program.group_kinds.size(), 0);
  flat.feeds_primary.assign(program.streams.size(), false);
  flat.host_bound = list.host_sync_task >= 0;
  place_tasks(program, list, block_offsets_of(program), flat);
  place_waits(program, list, flat);
  return flat;
}

Plan make_plan(const Program& program) {
  Plan plan;
  for (const Template& list : program.templates) {
    plan.lists.push_back(flatten(program, list));
  }
  make_cohorts(program, plan);
  make_links(program, plan);
  match_messages(program, plan);
  plan.block_tasks = block_offsets_of(program).back();
  return plan;
}

}  // namespace foretrain
