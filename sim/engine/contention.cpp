#include "sim/engine/contention.h"

#include <algorithm>
#include <cstddef>

namespace foretrain {
namespace {

/// Loads this little above a capacity are rounding.
constexpr double kRounding = 1e-9;

/// Streams from which a template issues collectives of each kind and sends through each slot: so
/// many of one path may run at once.
struct Issues {
  std::vector<std::vector<bool>> kinds;
  std::array<std::vector<bool>, kPeerSlots> slots;
};

Issues issues_of(const Program& program, const Template& list) {
  Issues issues;
  issues.kinds.assign(program.group_kinds.size(), std::vector<bool>(program.streams.size()));
  issues.slots.fill(std::vector<bool>(program.streams.size()));
  for (const Call& call : list.calls) {
    for (const Task& task : program.blocks[call.block].tasks) {
      if (task.kind == TaskKind::kCollective) {
        issues.kinds[task.group_kind][task.stream] = true;
      } else if (task.kind == TaskKind::kSend) {
        issues.slots[task.peer_slot][task.stream] = true;
      }
    }
  }
  return issues;
}

double at_once(const std::vector<bool>& streams) {
  return static_cast<double>(std::count(streams.begin(), streams.end(), true));
}

/// The most that may ever run over each link, bytes per second.
class Loads {
 public:
  explicit Loads(const Program& program) : program_(program), loads_(program.links.size(), 0.0) {
    for (const Template& list : program.templates) {
      issues_.push_back(issues_of(program, list));
    }
    for (std::size_t kind = 0; kind < program.group_paths.size(); ++kind) {
      for (std::size_t group = 0; group < program.group_paths[kind].size(); ++group) {
        const std::int32_t first = program.groups[kind][group].front();
        add(program.group_paths[kind][group], at_once(issues(first).kinds[kind]));
      }
    }
    for (std::size_t i = 0; i < program.instances.size(); ++i) {
      for (std::size_t slot = 0; slot < kPeerSlots; ++slot) {
        add(program.instances[i].paths[slot],
            at_once(issues(static_cast<std::int32_t>(i)).slots[slot]));
      }
    }
  }

  /// The uses of links that can fill.
  std::vector<LinkUse> contended(const SharedPath& path) const {
    std::vector<LinkUse> uses;
    for (const LinkUse& use : path.uses) {
      if (loads_[use.link] > program_.links[use.link].capacity * (1.0 + kRounding)) {
        uses.push_back(use);
      }
    }
    return uses;
  }

 private:
  const Issues& issues(std::int32_t instance) const {
    return issues_[program_.instances[instance].template_index];
  }
  void add(const SharedPath& path, double times) {
    for (const LinkUse& use : path.uses) {
      loads_[use.link] += times * use.weight * path.limit;
    }
  }

  const Program& program_;
  std::vector<double> loads_;
  std::vector<Issues> issues_;  ///< per template
};

}  // namespace

Contention::Contention(const Program& program) {
  if (!program.shares_links()) {
    return;
  }
  const Loads loads(program);
  for (const SharedLink& link : program.links) {
    capacities_.push_back(link.capacity);
  }
  for (const std::vector<SharedPath>& kind : program.group_paths) {
    std::vector<std::vector<LinkUse>>& paths = groups_.emplace_back();
    for (const SharedPath& path : kind) {
      paths.push_back(loads.contended(path));
    }
  }
  for (const Instance& instance : program.instances) {
    auto& paths = sends_.emplace_back();
    for (std::size_t slot = 0; slot < kPeerSlots; ++slot) {
      paths[slot] = loads.contended(instance.paths[slot]);
    }
  }
}

}  // namespace foretrain
