#include "sim/program/fold_links.h"

#include "sim/program/partition.h"

#include <algorithm>
#include <cstddef>

namespace foretrain {
namespace {

class LinkFold {
 public:
  LinkFold(const Program& full, const std::vector<std::int32_t>& classes, FoldedProgram& folded)
      : full_(full),
        classes_(classes),
        uses_(template_uses(full)),
        folded_(folded),
        stands_for_(full.links.size(), -1) {}

  void fold(const std::vector<std::vector<std::int32_t>>& became) {
    make_links(became);
    fold_group_paths(became);
    for (std::size_t i = 0; i < full_.instances.size(); ++i) {
      Instance& own = folded_.program.instances[folded_.class_of[i]];
      for (int slot = 0; slot < kPeerSlots; ++slot) {
        if (uses_slot(i, slot)) {
          add(full_.instances[i].paths[slot], own.paths[slot]);
        }
      }
    }
  }

 private:
  bool uses_slot(std::size_t instance, int slot) const {
    return uses_[full_.instances[instance].template_index].slots[slot];
  }

  /// The lowest link of each class that is used stands for it.
  void make_links(const std::vector<std::vector<std::int32_t>>& became) {
    std::vector<bool> used(full_.links.size(), false);
    const auto use = [&used](const SharedPath& path) {
      for (const LinkUse& one : path.uses) {
        used[one.link] = true;
      }
    };
    for (std::size_t kind = 0; kind < full_.group_paths.size(); ++kind) {
      for (std::size_t group = 0; group < full_.group_paths[kind].size(); ++group) {
        if (became[kind][group] >= 0) {
          use(full_.group_paths[kind][group]);
        }
      }
    }
    for (std::size_t i = 0; i < full_.instances.size(); ++i) {
      for (int slot = 0; slot < kPeerSlots; ++slot) {
        if (uses_slot(i, slot)) {
          use(full_.instances[i].paths[slot]);
        }
      }
    }
    std::vector<SharedLink> links;
    std::vector<std::int32_t> link_of(full_.links.size(), -1);  // by class
    for (std::size_t link = 0; link < full_.links.size(); ++link) {
      if (!used[link]) {
        continue;
      }
      std::int32_t& own = link_of[classes_[link]];
      if (own < 0) {
        own = static_cast<std::int32_t>(links.size());
        stands_for_[link] = own;
        links.push_back(full_.links[link]);
      } else {
        links[own].multiplicity += full_.links[link].multiplicity;
      }
    }
    folded_.program.links = std::move(links);
  }

  void fold_group_paths(const std::vector<std::vector<std::int32_t>>& became) {
    folded_.program.group_paths.clear();
    for (std::size_t kind = 0; kind < full_.group_paths.size(); ++kind) {
      std::vector<SharedPath>& paths = folded_.program.group_paths.emplace_back();
      if (full_.group_paths[kind].empty()) {
        continue;
      }
      paths.resize(folded_.program.groups[kind].size());
      for (std::size_t group = 0; group < full_.group_paths[kind].size(); ++group) {
        if (became[kind][group] >= 0) {
          add(full_.group_paths[kind][group], paths[became[kind][group]]);
        }
      }
    }
  }

  /// What a path of the class puts on the links that stand for theirs.
  void add(const SharedPath& path, SharedPath& folded) {
    folded.limit = path.limit;
    for (const LinkUse& use : path.uses) {
      const std::int32_t link = stands_for_[use.link];
      if (link < 0) {
        continue;
      }
      const auto at = std::lower_bound(
          folded.uses.begin(), folded.uses.end(), link, [](const LinkUse& one, std::int32_t other) {
            return one.link < other;
          });
      if (at != folded.uses.end() && at->link == link) {
        at->weight += use.weight;
      } else {
        folded.uses.insert(at, {link, use.weight});
      }
    }
  }

  const Program& full_;
  const std::vector<std::int32_t>& classes_;
  std::vector<TemplateUse> uses_;
  FoldedProgram& folded_;
  std::vector<std::int32_t> stands_for_;  ///< per link; -1: another stands for its class
};

}  // namespace

void fold_links(const Program& full,
                const std::vector<std::int32_t>& link_classes,
                const std::vector<std::vector<std::int32_t>>& became,
                FoldedProgram& folded) {
  if (full.shares_links()) {
    LinkFold(full, link_classes, folded).fold(became);
  }
}

}  // namespace foretrain
