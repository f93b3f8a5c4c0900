#include "sim/engine/plan.h"

#include "sim/program/partition.h"

#include <algorithm>

namespace foretrain {
namespace {

void make_cohorts(const Program& program, ProgramPlan& plan) {
  std::vector<std::int32_t> templates;
  for (const Instance& instance : program.instances) {
    templates.push_back(instance.template_index);
  }
  const std::vector<std::int32_t> classes =
      stable_partition(program, std::move(templates)).instances;
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
void make_links(const Program& program, ProgramPlan& plan) {
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

/// Per list, the call that sends each message; sorted by message.
using Senders = std::vector<std::pair<std::int32_t, std::int32_t>>;

Senders senders_of(const ProgramPlan& plan, const Template& list) {
  Senders senders;
  for (std::size_t c = 0; c < list.calls.size(); ++c) {
    if (plan.blocks[list.calls[c].block].send >= 0) {
      senders.emplace_back(list.calls[c].message, static_cast<std::int32_t>(c));
    }
  }
  std::sort(senders.begin(), senders.end());
  return senders;
}

void match_messages(const Program& program, ProgramPlan& plan) {
  std::vector<Senders> senders;
  for (const Template& list : program.templates) {
    senders.push_back(senders_of(plan, list));
  }
  for (Cohort& cohort : plan.cohorts) {
    const Template& list = program.templates[cohort.list];
    for (const Call& call : list.calls) {
      const BlockPlan& block = plan.blocks[call.block];
      if (block.receive < 0) {
        continue;
      }
      const std::int32_t slot = block.tasks[block.receive].task->peer_slot;
      const Senders& known = senders[plan.cohorts[cohort.peer_cohort[slot]].list];
      const auto found = std::lower_bound(known.begin(), known.end(), std::pair{call.message, -1});
      const bool sent = found != known.end() && found->first == call.message;
      cohort.partner.push_back(sent ? found->second : -1);
    }
  }
}

}  // namespace

ProgramPlan make_plan(const Program& program) {
  ProgramPlan plan;
  plan.blocks = plan_blocks(program);
  for (const BlockPlan& block : plan.blocks) {
    plan.block_tasks += static_cast<std::int32_t>(block.tasks.size());
  }
  plan.lists.reserve(program.templates.size());
  for (const Template& list : program.templates) {
    plan.lists.push_back(plan_list(program, plan.blocks, list));
  }
  assign_rows(plan);
  make_cohorts(program, plan);
  make_links(program, plan);
  match_messages(program, plan);
  return plan;
}

}  // namespace foretrain
