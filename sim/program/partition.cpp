#include "sim/program/partition.h"

#include "sim/program/interner.h"

#include <algorithm>
#include <utility>

namespace foretrain {
namespace {

/// What one block's tasks use, gathered once per block.
TemplateUse block_use(const Program& program, const Block& block) {
  TemplateUse use{std::vector<bool>(program.group_kinds.size(), false), {}};
  for (const Task& task : block.tasks) {
    if (task.kind == TaskKind::kCollective) {
      use.kinds[task.group_kind] = true;
    } else if (task.kind != TaskKind::kLocal) {
      use.slots[task.peer_slot] = true;
    }
  }
  return use;
}

class Refinement {
 public:
  Refinement(const Program& program, std::vector<std::int32_t> colours)
      : program_(program), uses_(template_uses(program)), colours_(std::move(colours)) {}

  std::vector<std::int32_t> stable() {
    std::int32_t count = renumber();
    const auto instances = static_cast<std::int32_t>(colours_.size());
    while (count < instances) {
      colour_groups();
      const std::int32_t refined = colour_instances();
      if (refined == count) {
        break;
      }
      count = refined;
    }
    return std::move(colours_);
  }

 private:
  std::int32_t renumber() {
    Interner ids;
    for (std::int32_t& colour : colours_) {
      colour = ids.intern({&colour, 1});
    }
    return ids.size();
  }

  /// A group's colour: the set of its members' colours.
  void colour_groups() {
    ids_.clear();
    group_colours_.resize(program_.groups.size());
    std::vector<std::int32_t> key;
    for (std::size_t kind = 0; kind < program_.groups.size(); ++kind) {
      const auto& groups = program_.groups[kind];
      group_colours_[kind].resize(groups.size());
      for (std::size_t group = 0; group < groups.size(); ++group) {
        key.clear();
        for (const std::int32_t member : groups[group]) {
          if (key.empty() || key.back() != colours_[member]) {
            key.push_back(colours_[member]);
          }
        }
        std::sort(key.begin(), key.end());
        key.erase(std::unique(key.begin(), key.end()), key.end());
        group_colours_[kind][group] = ids_.intern(key);
      }
    }
  }

  std::int32_t colour_instances() {
    ids_.clear();
    std::vector<std::int32_t> next(colours_.size());
    std::vector<std::int32_t> key;
    for (std::size_t i = 0; i < colours_.size(); ++i) {
      const Instance& instance = program_.instances[i];
      const TemplateUse& use = uses_[instance.template_index];
      key.assign(1, colours_[i]);
      for (std::size_t kind = 0; kind < use.kinds.size(); ++kind) {
        const std::int32_t group = use.kinds[kind] ? instance.groups[kind] : -1;
        key.push_back(group < 0 ? -1 : group_colours_[kind][group]);
      }
      for (int slot = 0; slot < kPeerSlots; ++slot) {
        const std::int32_t peer = use.slots[slot] ? instance.peers[slot] : -1;
        key.push_back(peer < 0 ? -1 : colours_[peer]);
      }
      next[i] = ids_.intern(key);
    }
    colours_ = std::move(next);
    return ids_.size();
  }

  const Program& program_;
  std::vector<TemplateUse> uses_;
  std::vector<std::int32_t> colours_;
  std::vector<std::vector<std::int32_t>> group_colours_;
  Interner ids_;
};

}  // namespace

std::vector<TemplateUse> template_uses(const Program& program) {
  std::vector<TemplateUse> blocks;
  for (const Block& block : program.blocks) {
    blocks.push_back(block_use(program, block));
  }
  std::vector<TemplateUse> uses;
  std::vector<std::size_t> seen(program.blocks.size(), program.templates.size());
  for (const Template& list : program.templates) {
    TemplateUse use{std::vector<bool>(program.group_kinds.size(), false), {}};
    for (const Call& call : list.calls) {
      if (std::exchange(seen[call.block], uses.size()) == uses.size()) {
        continue;
      }
      const TemplateUse& block = blocks[call.block];
      for (std::size_t kind = 0; kind < use.kinds.size(); ++kind) {
        use.kinds[kind] = use.kinds[kind] || block.kinds[kind];
      }
      for (int slot = 0; slot < kPeerSlots; ++slot) {
        use.slots[slot] = use.slots[slot] || block.slots[slot];
      }
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

std::vector<std::int32_t> stable_partition(const Program& program,
                                           std::vector<std::int32_t> colours) {
  return Refinement(program, std::move(colours)).stable();
}

}  // namespace foretrain
