#include "sim/program/partition.h"

#include "sim/program/interner.h"

#include <algorithm>
#include <bit>
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

void push_bits(double value, std::vector<std::int32_t>& key) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  key.push_back(static_cast<std::int32_t>(bits >> 32));
  key.push_back(static_cast<std::int32_t>(bits & 0xffffffff));
}

class Refinement {
 public:
  Refinement(const Program& program, std::vector<std::int32_t> colours)
      : program_(program), uses_(template_uses(program)), colours_(std::move(colours)) {}

  Partition stable() {
    std::int32_t count = renumber();
    colour_links_by_capacity();
    const auto all = static_cast<std::int32_t>(colours_.size() + program_.links.size());
    while (count < all) {
      colour_groups();
      colour_sends();
      const std::int32_t links = colour_links();
      const std::int32_t refined = colour_instances() + links;
      if (refined == count) {
        break;
      }
      count = refined;
    }
    return {std::move(colours_), std::move(link_colours_)};
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
        if (!program_.group_paths.empty() && !program_.group_paths[kind].empty()) {
          key.push_back(-1 - static_cast<std::int32_t>(kind));
          push_path(program_.group_paths[kind][group], key);
        }
        group_colours_[kind][group] = ids_.intern(key);
      }
    }
  }

  /// A path's colour: its links' colours with their weights, and its limit.
  void push_path(const SharedPath& path, std::vector<std::int32_t>& key) {
    std::vector<std::pair<std::int32_t, double>> uses;
    for (const LinkUse& use : path.uses) {
      uses.emplace_back(link_colours_[use.link], use.weight);
    }
    std::sort(uses.begin(), uses.end());
    key.push_back(-1);
    for (const auto& [colour, weight] : uses) {
      key.push_back(colour);
      push_bits(weight, key);
    }
    push_bits(path.limit, key);
  }

  /// Numbers of their own beside the groups'.
  void colour_sends() {
    if (!program_.shares_links()) {
      return;
    }
    send_colours_.resize(colours_.size());
    std::vector<std::int32_t> key;
    for (std::size_t i = 0; i < colours_.size(); ++i) {
      const Instance& instance = program_.instances[i];
      for (int slot = 0; slot < kPeerSlots; ++slot) {
        key = {-2 - slot, colours_[i]};
        push_path(instance.paths[slot], key);
        send_colours_[i][slot] = ids_.intern(key);
      }
    }
  }

  void colour_links_by_capacity() {
    Interner ids;
    std::vector<std::int32_t> key;
    for (const SharedLink& link : program_.links) {
      key.clear();
      push_bits(link.capacity, key);
      link_colours_.push_back(ids.intern(key));
    }
  }

  /// Transfers over each link: their colours and weights.
  using Carried = std::vector<std::vector<std::pair<std::int32_t, double>>>;
  Carried transfers_by_link() const {
    Carried carried(program_.links.size());
    const auto add = [&carried](const SharedPath& path, std::int32_t colour) {
      for (const LinkUse& use : path.uses) {
        carried[use.link].emplace_back(colour, use.weight);
      }
    };
    for (std::size_t kind = 0; kind < program_.group_paths.size(); ++kind) {
      for (std::size_t group = 0; group < program_.group_paths[kind].size(); ++group) {
        const std::int32_t first = program_.groups[kind][group].front();
        if (uses_[program_.instances[first].template_index].kinds[kind]) {
          add(program_.group_paths[kind][group], group_colours_[kind][group]);
        }
      }
    }
    for (std::size_t i = 0; i < program_.instances.size(); ++i) {
      const Instance& instance = program_.instances[i];
      for (int slot = 0; slot < kPeerSlots; ++slot) {
        if (uses_[instance.template_index].slots[slot]) {
          add(instance.paths[slot], send_colours_[i][slot]);
        }
      }
    }
    return carried;
  }

  std::int32_t colour_links() {
    if (!program_.shares_links()) {
      return 0;
    }
    Carried carried = transfers_by_link();
    Interner ids;
    std::vector<std::int32_t> next(link_colours_.size());
    std::vector<std::int32_t> key;
    for (std::size_t link = 0; link < next.size(); ++link) {
      std::sort(carried[link].begin(), carried[link].end());
      key.assign(1, link_colours_[link]);
      for (const auto& [colour, weight] : carried[link]) {
        key.push_back(colour);
        push_bits(weight, key);
      }
      next[link] = ids.intern(key);
    }
    link_colours_ = std::move(next);
    return ids.size();
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
        if (program_.shares_links() && use.slots[slot]) {
          key.push_back(send_colours_[i][slot]);
        }
      }
      next[i] = ids_.intern(key);
    }
    colours_ = std::move(next);
    return ids_.size();
  }

  const Program& program_;
  std::vector<TemplateUse> uses_;
  std::vector<std::int32_t> colours_;
  std::vector<std::int32_t> link_colours_;
  std::vector<std::vector<std::int32_t>> group_colours_;
  std::vector<std::array<std::int32_t, kPeerSlots>> send_colours_;  ///< of paths to peers
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

Partition stable_partition(const Program& program, std::vector<std::int32_t> colours) {
  return Refinement(program, std::move(colours)).stable();
}

}  // namespace foretrain
