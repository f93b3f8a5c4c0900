#include "foretrain/program.h"
#include "sim/program/fold_links.h"
#include "sim/program/interner.h"
#include "sim/program/partition.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Factor sets with equal contents get equal numbers.
std::vector<std::int32_t> distinct_factor_sets(const Program& program) {
  Interner ids;
  std::vector<std::int32_t> result;
  std::vector<std::int32_t> key;
  const auto push = [&key](std::int64_t value) {
    key.push_back(static_cast<std::int32_t>(value >> 32));
    key.push_back(static_cast<std::int32_t>(value & 0xffffffff));
  };
  for (const FactorSet& set : program.factor_sets) {
    key.clear();
    for (const std::int64_t factor : set.base) {
      push(factor);
    }
    for (const FactorWindow& window : set.windows) {
      push(window.first_step);
      push(window.last_step);
      for (const std::int64_t factor : window.factors) {
        push(factor);
      }
    }
    result.push_back(ids.intern(key));
  }
  return result;
}

/// Group kinds some template issues collectives on; the groups of others couple nobody and are
/// dropped (their classes need not see one group each).
std::vector<bool> used_kinds(const Program& program, const std::vector<TemplateUse>& uses) {
  std::vector<bool> used(program.group_kinds.size(), false);
  for (const TemplateUse& use : uses) {
    for (std::size_t kind = 0; kind < used.size(); ++kind) {
      used[kind] = used[kind] || use.kinds[kind];
    }
  }
  return used;
}

/// One group per set of classes; every class of a set sees that one group. Which folded group each
/// group became, [kind][group]; -1: none.
std::vector<std::vector<std::int32_t>> fold_groups(const Program& full, FoldedProgram& folded) {
  const std::vector<TemplateUse> uses = template_uses(full);
  const std::vector<bool> used = used_kinds(full, uses);
  folded.program.groups.assign(full.groups.size(), {});
  std::vector<std::vector<std::int32_t>> became;
  for (const auto& groups : full.groups) {
    became.emplace_back(groups.size(), -1);
  }
  std::vector<std::int32_t> key;
  for (std::size_t kind = 0; kind < full.groups.size(); ++kind) {
    if (!used[kind]) {
      continue;
    }
    Interner ids;
    for (std::size_t at = 0; at < full.groups[kind].size(); ++at) {
      const std::vector<std::int32_t>& members = full.groups[kind][at];
      if (members.empty() || !uses[full.instances[members.front()].template_index].kinds[kind]) {
        continue;
      }
      key.clear();
      for (const std::int32_t member : members) {
        key.push_back(folded.class_of[member]);
      }
      std::sort(key.begin(), key.end());
      key.erase(std::unique(key.begin(), key.end()), key.end());
      const std::int32_t known = ids.size();
      const std::int32_t group = ids.intern(key);
      became[kind][at] = group;
      if (group < known) {
        continue;
      }
      folded.program.groups[kind].push_back(key);
      for (const std::int32_t member : key) {
        folded.program.instances[member].groups[kind] = group;
      }
    }
  }
  return became;
}

}  // namespace

FoldedProgram fold(const Program& program) {
  const std::vector<std::int32_t> sets = distinct_factor_sets(program);
  Interner ids;
  std::vector<std::int32_t> colours;
  for (const Instance& instance : program.instances) {
    const std::array<std::int32_t, 3> key = {
        instance.template_index, sets[instance.factor_set], instance.mark};
    colours.push_back(ids.intern(key));
  }
  Partition classes_of = stable_partition(program, std::move(colours));
  FoldedProgram folded{program, std::move(classes_of.instances)};
  folded.program.instances.clear();
  for (std::size_t i = 0; i < program.instances.size(); ++i) {
    const Instance& instance = program.instances[i];
    auto& classes = folded.program.instances;
    const std::int32_t own = folded.class_of[i];
    if (own < static_cast<std::int32_t>(classes.size())) {
      classes[own].multiplicity += instance.multiplicity;
      classes[own].rank = std::min(classes[own].rank, instance.rank);
      continue;
    }
    classes.push_back(instance);
    classes.back().groups.assign(instance.groups.size(), -1);
    classes.back().paths = {};
    for (std::int32_t& peer : classes.back().peers) {
      peer = peer < 0 ? -1 : folded.class_of[peer];
    }
  }
  const std::vector<std::vector<std::int32_t>> became = fold_groups(program, folded);
  fold_links(program, classes_of.links, became, folded);
  return folded;
}

}  // namespace foretrain
