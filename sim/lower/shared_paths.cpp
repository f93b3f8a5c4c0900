#include "sim/lower/shared_paths.h"

#include "sim/lower/link_traffic.h"
#include "sim/lower/vocabulary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace foretrain {
namespace {

/// What all transfers of one sort move and take in a template's step, latencies apart.
struct Moved {
  double bytes = 0;
  double seconds = 0;

  void add(const Task& task) {
    std::int64_t time = 0;
    for (int r = 0; r < kResourceCount; ++r) {
      time +=
          r == static_cast<int>(Resource::kLatency) ? 0 : task.work[static_cast<std::size_t>(r)];
    }
    bytes += static_cast<double>(task.bytes);
    seconds += static_cast<double>(time) * 1e-12;
  }
  /// Bytes per second; 0: nothing moves, or in no time.
  double rate() const { return seconds > 0 ? bytes / seconds : 0; }
};

struct TemplateTraffic {
  std::array<Moved, kGroupKinds> kinds;
  std::array<Moved, kPeerSlots> slots;
};

TemplateTraffic traffic_of(const Program& program, const Template& list) {
  TemplateTraffic traffic;
  for (const Call& call : list.calls) {
    for (const Task& task : program.blocks[static_cast<std::size_t>(call.block)].tasks) {
      if (task.kind == TaskKind::kCollective) {
        traffic.kinds[static_cast<std::size_t>(task.group_kind)].add(task);
      } else if (task.kind == TaskKind::kSend) {
        traffic.slots[static_cast<std::size_t>(task.peer_slot)].add(task);
      }
    }
  }
  return traffic;
}

/// A few bytes of a norm or a loss over everybody fill no link.
bool shares(std::size_t kind) {
  return kind != kNormGroup && kind != kPipelineGroup;
}

class Paths {
 public:
  Paths(const Scenario& scenario,
        const Topology& topology,
        const LinkModel& model,
        Program& program)
      : scenario_(scenario),
        topology_(topology),
        model_(model),
        program_(program),
        number_of_(topology.links().size(), -1) {
    for (const Template& list : program.templates) {
      traffic_.push_back(traffic_of(program, list));
    }
  }

  void add() {
    program_.group_paths.resize(program_.groups.size());
    for (std::size_t kind = 0; kind < program_.groups.size(); ++kind) {
      add_groups(kind);
    }
    for (std::size_t rank = 0; rank < program_.instances.size(); ++rank) {
      Instance& instance = program_.instances[rank];
      for (std::size_t slot = 0; slot < kPeerSlots; ++slot) {
        const double rate = traffic(instance).slots[slot].rate();
        if (instance.peers[slot] >= 0 && rate > 0) {
          std::vector<LinkUse> uses;
          for (const std::int32_t link :
               topology_.route(static_cast<std::int64_t>(rank), instance.peers[slot])) {
            uses.push_back({link, 1.0});
          }
          instance.paths[slot] = path(std::move(uses), rate);
        }
      }
    }
  }

 private:
  const TemplateTraffic& traffic(const Instance& instance) const {
    return traffic_[static_cast<std::size_t>(instance.template_index)];
  }

  void add_groups(std::size_t kind) {
    for (const std::vector<std::int32_t>& members : program_.groups[kind]) {
      const Instance& first = program_.instances[static_cast<std::size_t>(members.front())];
      const double rate = shares(kind) ? traffic(first).kinds[kind].rate() : 0;
      SharedPath& added = program_.group_paths[kind].emplace_back();
      if (rate > 0) {
        const std::vector<std::int64_t> ranks(members.begin(), members.end());
        added = path(
            topology_.pattern_loads(ranks, pattern_of(scenario_, static_cast<GroupKind>(kind))),
            rate);
      }
    }
  }

  SharedPath path(std::vector<LinkUse> uses, double rate) {
    SharedPath path;
    for (LinkUse& use : uses) {
      // Few enough digits that sums are exact, in whatever order.
      constexpr double kGrain = 1 << 30;
      use.weight = std::round(use.weight * kGrain) / kGrain;
      if (use.weight > 0) {
        path.uses.push_back({number(use.link), use.weight});
      }
    }
    double most = std::numeric_limits<double>::infinity();
    for (const LinkUse& use : path.uses) {
      most =
          std::min(most, program_.links[static_cast<std::size_t>(use.link)].capacity / use.weight);
    }
    constexpr double kBelow = 1.0 - 1e-12;  // a link that one transfer fills does not slow it
    path.limit = std::min(rate, most * kBelow);
    return path;
  }

  /// The link's number in the program; links are added when first used.
  std::int32_t number(std::int32_t link) {
    std::int32_t& number = number_of_[static_cast<std::size_t>(link)];
    if (number < 0) {
      number = static_cast<std::int32_t>(program_.links.size());
      const Link& line = topology_.links()[static_cast<std::size_t>(link)];
      program_.links.push_back({line.id, capacity(line), 1});
    }
    return number;
  }

  double capacity(const Link& line) const {
    const bool pcie_node = topology_.spec().node_interconnect == "pcie";
    double efficiency = model_.across_efficiency;
    if (line.kind == LinkKind::kNvlink) {
      efficiency = model_.inside_efficiency;
    } else if (line.kind == LinkKind::kPcie && pcie_node) {
      efficiency = std::max(model_.inside_efficiency, model_.across_efficiency);
    }
    return static_cast<double>(line.capacity.bytes_per_second) * efficiency;
  }

  const Scenario& scenario_;
  const Topology& topology_;
  const LinkModel& model_;
  Program& program_;
  std::vector<std::int32_t> number_of_;  ///< by link of the topology; -1: not used yet
  std::vector<TemplateTraffic> traffic_;
};

}  // namespace

void add_shared_paths(const Scenario& scenario,
                      const Topology& topology,
                      const LinkModel& model,
                      Program& program) {
  if (scenario.network.mode == "flow") {
    Paths(scenario, topology, model, program).add();
  }
}

}  // namespace foretrain
