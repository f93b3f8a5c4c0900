#include "sim/cluster/router.h"
#include "sim/cluster/slope.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

/// What an all-to-all puts on each link without a search per pair: between switches a route depends
/// on where it enters the fabric and on its destination only.
namespace foretrain {
namespace {

using Switches = std::vector<std::size_t>;

Switches switches_of(const std::vector<Doorway>& doors) {
  Switches all;
  for (const Doorway& door : doors) {
    all.push_back(door.at);
  }
  return all;
}

/// Members of a node that leave it through the doors of the same GPU.
struct Departure {
  std::vector<std::int64_t> members;
  std::int64_t gpu = -1;  ///< whose doors; not a member's when it relays over NVLink
  std::vector<Doorway> doors;
  std::size_t entry = 0;        ///< of its rail's
  std::vector<double> in_node;  ///< by door: destinations of its own node, which it does not serve
};

/// Departures that enter the fabric at the same switches: they choose alike.
struct Entry {
  Switches at;
  std::vector<std::size_t> departures;
  double members = 0.0;
  std::vector<double> served;        ///< by door: destinations
  std::vector<std::size_t> nearest;  ///< doors nearest to the targets looked at
};

/// Everybody on the way to destinations of one rail; where nothing is forwarded all are alike.
struct Rail {
  std::vector<Departure> departures;
  std::vector<std::size_t> first_of;  ///< by node; last: how many
  std::vector<Entry> entries;
};

struct Destination {
  std::int64_t gpu = 0;
  std::size_t node = 0;
  std::vector<Doorway> doors;
};

class PairLoads {
 public:
  PairLoads(const Router& router,
            const Router::Wiring& wiring,
            const std::vector<NodeMembers>& nodes)
      : router_(router), wiring_(wiring), layout_(wiring.layout), nodes_(nodes) {
    flow_.at_switch.assign(num_vertices(wiring.graph), 0.0);
    flow_.on_link.assign(wiring.drawing.links.size(), 0.0);
    flow_.variance_at_switch = flow_.at_switch;
    flow_.variance_on_link = flow_.on_link;
  }

  std::vector<double> count() {
    std::map<Switches, std::vector<Destination>> by_switches;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      for (const std::int64_t gpu : nodes_[node].ranks) {
        Destination to{gpu, node, wiring_.doorways(gpu, false)};
        if (layout_.forwards() && !whole(gpu)) {
          search_all(to);
        } else {
          const Switches key = switches_of(to.doors);
          by_switches[key].push_back(std::move(to));
        }
      }
    }
    for (const auto& [switches, destinations] : by_switches) {
      serve(switches, destinations);
    }
    for (const auto& [nic, rail] : rails_) {
      leave(rail);
    }
    stray();
    return std::move(flow_.on_link);
  }

 private:
  bool hashed() const { return wiring_.routing == Routing::kHashed; }

  /// Whether a GPU still has the NIC that its rail is named after.
  bool whole(std::int64_t gpu) const {
    const auto& slots = wiring_.slots[at(gpu)];
    return !slots.empty() &&
           wiring_.drawing.devices[at(slots.front().nic)].index == layout_.nic_of(gpu);
  }

  void add(const std::array<std::int32_t, 3>& links, double amount) {
    for (const std::int32_t link : links) {
      if (link >= 0) {
        flow_.on_link[at(link)] += amount;
      }
    }
  }

  void search(std::int64_t from, std::int64_t to) {
    for (const std::int32_t link : router_.route(from, to).value_or(std::vector<std::int32_t>{})) {
      flow_.on_link[at(link)] += 1.0;
    }
  }

  void search_all(const Destination& to) {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      for (std::size_t from = 0; node != to.node && from < nodes_[node].ranks.size(); ++from) {
        search(nodes_[node].ranks[from], to.gpu);
      }
    }
  }

  Rail& rail_to(std::int64_t gpu);
  void depart(std::size_t node, std::int64_t nic, Rail& rail) const;
  void serve(const Switches& switches, const std::vector<Destination>& destinations);
  double enter(const Destination& to, Rail& rail, std::size_t choice);
  void arrive(const Destination& to, std::size_t where, double amount, std::size_t choice);
  void leave(const Rail& rail);
  void stray();

  /// The doors taken of some that are as near, and what share takes each.
  template <typename Take>
  void choose(std::size_t count, std::size_t choice, Take take) const {
    if (hashed()) {
      for (std::size_t door = 0; door < count; ++door) {
        take(door, 1.0 / static_cast<double>(count));
      }
    } else if (count > 0) {
      take(choice % count, 1.0);
    }
  }

  const Router& router_;
  const Router::Wiring& wiring_;
  const ClusterLayout& layout_;
  const std::vector<NodeMembers>& nodes_;
  std::map<std::int64_t, Rail> rails_;
  Slope::Flow flow_;
};

/// Who leaves a node for a rail: each through its own doors, or, where rails are reached over
/// NVLink, those of other rails through the GPU beside that rail's NIC.
void PairLoads::depart(std::size_t node, std::int64_t nic, Rail& rail) const {
  Departure relay, lost;
  const std::int64_t number = nodes_[node].node;
  const std::int64_t local = layout_.forwards() ? layout_.gpu_beside(number, nic) : -1;
  relay.gpu = local < 0 ? -1 : number * layout_.spec.gpus_per_node + local;
  for (const std::int64_t gpu : nodes_[node].ranks) {
    if (!layout_.forwards() || layout_.nic_of(gpu) == nic) {
      rail.departures.push_back({{gpu}, gpu, wiring_.doorways(gpu, true), 0, {}});
    } else if (relay.gpu >= 0 && wiring_.to_hub[at(gpu)].up >= 0 &&
               wiring_.to_hub[at(relay.gpu)].down >= 0) {
      relay.members.push_back(gpu);
    } else {
      lost.members.push_back(gpu);
    }
  }
  if (!relay.members.empty()) {
    relay.doors = wiring_.doorways(relay.gpu, true);
    rail.departures.push_back(std::move(relay));
  }
  if (!lost.members.empty()) {
    rail.departures.push_back(std::move(lost));
  }
}

Rail& PairLoads::rail_to(std::int64_t gpu) {
  const std::int64_t nic = layout_.forwards() ? layout_.nic_of(gpu) : 0;
  const auto [found, fresh] = rails_.try_emplace(nic);
  Rail& rail = found->second;
  if (!fresh) {
    return rail;
  }
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    rail.first_of.push_back(rail.departures.size());
    depart(node, nic, rail);
  }
  rail.first_of.push_back(rail.departures.size());
  std::map<Switches, std::size_t> entries;
  for (std::size_t index = 0; index < rail.departures.size(); ++index) {
    Departure& departure = rail.departures[index];
    departure.in_node.assign(departure.doors.size(), 0.0);
    const Switches where = switches_of(departure.doors);
    departure.entry = entries.try_emplace(where, rail.entries.size()).first->second;
    if (departure.entry == rail.entries.size()) {
      rail.entries.push_back({where, {}, 0.0, std::vector<double>(where.size(), 0.0), {}});
    }
    rail.entries[departure.entry].departures.push_back(index);
    rail.entries[departure.entry].members += static_cast<double>(departure.members.size());
  }
  return rail;
}

/// Everybody outside its node sets out for a destination; how many do.
double PairLoads::enter(const Destination& to, Rail& rail, std::size_t choice) {
  double all = 0.0;
  for (Entry& entry : rail.entries) {
    choose(entry.nearest.size(), choice, [&](std::size_t which, double share) {
      const std::size_t door = entry.nearest[which];
      entry.served[door] += share;
      flow_.at_switch[entry.at[door]] += share * entry.members;
      all += share * entry.members;
    });
    if (entry.nearest.empty() && layout_.forwards()) {
      for (const std::size_t index : entry.departures) {
        const bool own = index >= rail.first_of[to.node] && index < rail.first_of[to.node + 1];
        for (std::size_t at = 0; !own && at < rail.departures[index].members.size(); ++at) {
          search(rail.departures[index].members[at], to.gpu);
        }
      }
    }
  }
  for (std::size_t index = rail.first_of[to.node]; index < rail.first_of[to.node + 1]; ++index) {
    Departure& departure = rail.departures[index];
    const Entry& entry = rail.entries[departure.entry];
    const auto members = static_cast<double>(departure.members.size());
    choose(entry.nearest.size(), choice, [&](std::size_t which, double share) {
      const std::size_t door = entry.nearest[which];
      departure.in_node[door] += share;
      flow_.at_switch[entry.at[door]] -= share * members;
      all -= share * members;
    });
  }
  return all;
}

void PairLoads::arrive(const Destination& to,
                       std::size_t where,
                       double amount,
                       std::size_t choice) {
  std::vector<const Doorway*> doors;
  for (const Doorway& door : to.doors) {
    if (door.at == where) {
      doors.push_back(&door);
    }
  }
  choose(doors.size(), choice, [&](std::size_t which, double share) {
    add(doors[which]->links, share * amount);
  });
}

/// Destinations that are reached at the same switches.
void PairLoads::serve(const Switches& switches, const std::vector<Destination>& destinations) {
  const Slope slope(wiring_, switches);
  std::map<const Rail*, bool> looked_at;
  const bool together = hashed() && switches.size() == 1;
  for (const Destination& to : destinations) {
    Rail& rail = rail_to(to.gpu);
    if (looked_at.emplace(&rail, true).second) {
      for (Entry& entry : rail.entries) {
        std::int64_t least = kUnreached;
        entry.nearest.clear();
        for (std::size_t door = 0; door < entry.at.size(); ++door) {
          const std::int64_t left = slope.left(entry.at[door]);
          if (left < least) {
            entry.nearest.clear();
            least = left;
          }
          if (left == least && left != kUnreached) {
            entry.nearest.push_back(door);
          }
        }
      }
    }
    const std::size_t choice = wiring_.routing == Routing::kSingle ? 0 : at(wiring_.port(to.gpu));
    const double all = enter(to, rail, choice);
    if (together) {
      arrive(to, switches.front(), all, choice);
      continue;
    }
    hashed() ? slope.run_split(flow_) : slope.run(flow_, choice);
    for (const std::size_t where : switches) {
      arrive(to, where, std::exchange(flow_.at_switch[where], 0.0), choice);
    }
  }
  if (together) {
    slope.run_split(flow_);
    flow_.at_switch[switches.front()] = 0.0;
  }
  for (const std::size_t where : switches) {
    flow_.variance_at_switch[where] = 0.0;
  }
}

/// What the doors of those who leave carry, and the NVLinks to who relays.
void PairLoads::leave(const Rail& rail) {
  for (const Departure& departure : rail.departures) {
    const Entry& entry = rail.entries[departure.entry];
    const auto members = static_cast<double>(departure.members.size());
    double served = 0.0;
    for (std::size_t door = 0; door < departure.doors.size(); ++door) {
      const double of_door = entry.served[door] - departure.in_node[door];
      add(departure.doors[door].links, members * of_door);
      served += of_door;
    }
    for (const std::int64_t gpu : departure.members) {
      if (gpu != departure.gpu && departure.gpu >= 0) {
        add({wiring_.to_hub[at(gpu)].up, wiring_.to_hub[at(departure.gpu)].down, -1}, served);
      }
    }
  }
}

/// Of many links with as many flows each, the fullest has about sqrt(2 V ln L) more than the mean.
void PairLoads::stray() {
  const auto random = static_cast<double>(std::count_if(
      flow_.variance_on_link.begin(), flow_.variance_on_link.end(), [](double variance) {
        return variance > 0.0;
      }));
  for (std::size_t link = 0; random > 1.0 && link < flow_.on_link.size(); ++link) {
    flow_.on_link[link] += std::sqrt(2.0 * flow_.variance_on_link[link] * std::log(random));
  }
}

}  // namespace

std::vector<double> Router::all_pairs(const std::vector<NodeMembers>& nodes) const {
  return PairLoads(*this, *wiring_, nodes).count();
}

}  // namespace foretrain
