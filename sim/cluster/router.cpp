#include "sim/cluster/router.h"

#include "sim/cluster/wiring.h"

#include <algorithm>
#include <array>

#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/range/iterator_range.hpp>

namespace foretrain {
namespace {

/// A fixed hash of a flow and the device where it chooses: 64-bit finaliser of SplitMix64 (Steele,
/// Lea and Flood 2014), so that choices at successive switches are independent.
std::uint64_t flow_hash(std::int64_t from, std::int64_t to, std::int64_t where) {
  const auto mix = [](std::uint64_t value) {
    value += 0x9e3779b97f4a7c15U;
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
    value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
    return value ^ (value >> 31U);
  };
  return mix(mix(mix(static_cast<std::uint64_t>(from)) + static_cast<std::uint64_t>(to)) +
             static_cast<std::uint64_t>(where));
}

using Links = std::vector<std::int32_t>;

void append(const Doorway& door, Links& links) {
  for (const std::int32_t link : door.links) {
    if (link >= 0) {
      links.push_back(link);
    }
  }
}

}  // namespace

Router::Wiring::Wiring(const ClusterLayout& of, const Drawing& drawn, Routing chosen)
    : layout(of), drawing(drawn), routing(chosen) {
  const std::size_t devices = drawing.devices.size();
  vertex_of.assign(devices, -1);
  uplink.resize(devices);
  switch_of.resize(devices);
  to_hub.resize(at(layout.gpus));
  nics_of.resize(at(layout.nodes));
  slots.resize(at(layout.behind_pcie() ? layout.nodes : layout.gpus));
  std::int64_t switches = 0;
  for (std::size_t device = 0; device < devices; ++device) {
    if (drawing.devices[device].node < 0) {
      vertex_of[device] = switches++;
    } else if (drawing.devices[device].kind == DeviceKind::kNic) {
      nics_of[at(drawing.devices[device].node)].push_back(static_cast<std::int32_t>(device));
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> ends;
  std::vector<SwitchCable> cables;
  measured_ = std::vector<std::once_flag>(at(switches));
  distance_.resize(at(switches));
  for (std::size_t index = 0; index < drawing.links.size(); ++index) {
    const Link& link = drawing.links[index];
    if (link.kind == LinkKind::kFabric) {
      ends.emplace_back(at(vertex_of[at(link.from)]), at(vertex_of[at(link.to)]));
      cables.push_back({static_cast<std::int32_t>(index), link.latency.count()});
    } else {
      wire_node(link, static_cast<std::int32_t>(index));
    }
  }
  graph = SwitchGraph(
      boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), cables.begin(), at(switches));
}

void Router::Wiring::wire_node(const Link& link, std::int32_t index) {
  const Device& from = drawing.devices[at(link.from)];
  const Device& to = drawing.devices[at(link.to)];
  if (to.kind == DeviceKind::kNic && from.node >= 0) {
    slots[at(from.kind == DeviceKind::kGpu ? link.from : from.node)].push_back(
        {link.to, {index, -1}});
  } else if (from.kind == DeviceKind::kNic && to.node >= 0) {
    for (Slot& slot : slots[at(to.kind == DeviceKind::kGpu ? link.to : to.node)]) {
      slot.pcie.down = slot.nic == link.from ? index : slot.pcie.down;
    }
  } else if (from.kind == DeviceKind::kNic) {
    uplink[at(link.from)].up = index;
    switch_of[at(link.from)] = at(vertex_of[at(link.to)]);
  } else if (to.kind == DeviceKind::kNic) {
    uplink[at(link.to)].down = index;
  } else if (from.kind == DeviceKind::kGpu) {
    to_hub[at(link.from)].up = index;
  } else {
    to_hub[at(link.to)].down = index;
  }
}

const std::vector<std::int64_t>& Router::Wiring::distances(std::size_t to) const {
  std::call_once(measured_[to], [&] {
    std::vector<std::int64_t>& distance = distance_[to];
    distance.assign(num_vertices(graph), kUnreached);
    boost::dijkstra_shortest_paths(graph,
                                   to,
                                   boost::weight_map(get(&SwitchCable::latency, graph))
                                       .distance_map(boost::make_iterator_property_map(
                                           distance.begin(), get(boost::vertex_index, graph)))
                                       .distance_inf(kUnreached));
  });
  return distance_[to];
}

std::vector<Doorway> Router::Wiring::doorways(std::int64_t gpu, bool out) const {
  const bool pcie = layout.behind_pcie();
  const CablePair& hub = to_hub[at(gpu)];
  std::vector<Doorway> doors;
  for (const Slot& slot : slots[at(pcie ? layout.node_of(gpu) : gpu)]) {
    const CablePair& cable = uplink[at(slot.nic)];
    if (!cable.works() || !slot.pcie.works() || (pcie && !hub.works())) {
      continue;
    }
    const std::int32_t none = -1;
    doors.push_back({slot.nic,
                     switch_of[at(slot.nic)],
                     out ? std::array{pcie ? hub.up : none, slot.pcie.up, cable.up}
                         : std::array{cable.down, slot.pcie.down, pcie ? hub.down : none}});
  }
  return doors;
}

std::int64_t Router::Wiring::port(std::int64_t gpu) const {
  const std::vector<std::int32_t>& nics = nics_of[at(layout.node_of(gpu))];
  if (nics.empty()) {
    return 0;
  }
  const std::int64_t gpus = layout.spec.gpus_per_node;
  const std::int64_t own = gpu % gpus * static_cast<std::int64_t>(nics.size()) / gpus;
  return drawing.port_of[at(nics[at(own)])];
}

/// One route being found.
class Router::Search {
 public:
  Search(const Wiring& wiring, std::int64_t from, std::int64_t to)
      : wiring_(wiring), layout_(wiring.layout), from_(from), to_(to), key_(wiring.port(to)) {}

  std::optional<Links> find() {
    if (from_ == to_) {
      return Links{};
    }
    const bool same_node = layout_.node_of(from_) == layout_.node_of(to_);
    const bool found = same_node            ? inside(from_, to_)
                       : layout_.forwards() ? along_a_rail()
                                            : across(from_, to_);
    return found ? std::optional<Links>(std::move(links_)) : std::nullopt;
  }

 private:
  bool inside(std::int64_t from, std::int64_t to);
  bool along_a_rail();
  bool relayed(std::int64_t node, std::int64_t rail_of, bool at_source);
  bool across(std::int64_t from, std::int64_t to);
  bool walk(std::size_t from, const std::vector<Doorway>& targets);
  std::int64_t beyond(std::size_t from, const std::vector<Doorway>& targets) const;

  std::size_t choose(std::size_t count, std::int64_t where) const {
    switch (wiring_.routing) {
      case Routing::kDestination:
        return at(key_) % count;
      case Routing::kHashed:
        return static_cast<std::size_t>(flow_hash(from_, to_, where) % count);
      case Routing::kSingle:
        break;
    }
    return 0;
  }

  const Wiring& wiring_;
  const ClusterLayout& layout_;
  std::int64_t from_, to_;
  std::int64_t key_;
  Links links_;
};

bool Router::Search::inside(std::int64_t from, std::int64_t to) {
  const std::int32_t up = wiring_.to_hub[at(from)].up;
  const std::int32_t down = wiring_.to_hub[at(to)].down;
  if (up < 0 || down < 0) {
    return false;
  }
  links_.push_back(up);
  links_.push_back(down);
  return true;
}

std::int64_t Router::Search::beyond(std::size_t from, const std::vector<Doorway>& targets) const {
  std::int64_t least = kUnreached;
  for (const Doorway& target : targets) {
    least = std::min(least, wiring_.distances(target.at)[from]);
  }
  return least;
}

/// Along tight links: in integer time d(u) = w + d(v) holds exactly.
bool Router::Search::walk(std::size_t from, const std::vector<Doorway>& targets) {
  std::size_t here = from;
  std::vector<std::pair<std::int32_t, std::size_t>> tight;
  for (std::int64_t left = beyond(here, targets); left > 0; left = beyond(here, targets)) {
    tight.clear();
    for (const auto edge : boost::make_iterator_range(out_edges(here, wiring_.graph))) {
      const SwitchCable& cable = wiring_.graph[edge];
      const std::int64_t rest = beyond(target(edge, wiring_.graph), targets);
      if (rest != kUnreached && left == cable.latency + rest) {
        tight.emplace_back(cable.link, target(edge, wiring_.graph));
      }
    }
    const auto& [link, next] = tight[choose(tight.size(), static_cast<std::int64_t>(here))];
    links_.push_back(link);
    here = next;
  }
  std::vector<const Doorway*> doors;
  for (const Doorway& target : targets) {
    if (target.at == here) {
      doors.push_back(&target);
    }
  }
  append(*doors[choose(doors.size(), static_cast<std::int64_t>(here))], links_);
  return true;
}

bool Router::Search::across(std::int64_t from, std::int64_t to) {
  const std::vector<Doorway> targets = wiring_.doorways(to, false);
  std::vector<Doorway> nearest;
  std::int64_t least = kUnreached;
  for (const Doorway& door : wiring_.doorways(from, true)) {
    const std::int64_t rest = beyond(door.at, targets);
    if (rest < least) {
      nearest.clear();
      least = rest;
    }
    if (rest != kUnreached && rest == least) {
      nearest.push_back(door);
    }
  }
  if (nearest.empty()) {
    return false;
  }
  const Doorway& door = nearest[choose(nearest.size(), -1 - from)];
  append(door, links_);
  return walk(door.at, targets);
}

/// By way of a GPU of `node` beside a NIC of the rails that `rail_of` sits on.
bool Router::Search::relayed(std::int64_t node, std::int64_t rail_of, bool at_source) {
  for (const Wiring::Slot& slot : wiring_.slots[at(rail_of)]) {
    const std::int64_t nic = wiring_.drawing.devices[at(slot.nic)].index;
    const std::int64_t local = layout_.gpu_beside(node, nic);
    const std::int64_t relay = node * layout_.spec.gpus_per_node + local;
    links_.clear();
    if (local >= 0 && (at_source ? inside(from_, relay) && across(relay, to_)
                                 : across(from_, relay) && inside(relay, to_))) {
      return true;
    }
  }
  return false;
}

/// Over the sender's NVLink to the destination's rail; where no GPU of that rail is left to relay,
/// over the receiver's; then, where rails meet, over a spine.
bool Router::Search::along_a_rail() {
  if (layout_.nic_of(from_) == layout_.nic_of(to_) && across(from_, to_)) {
    return true;
  }
  if (relayed(layout_.node_of(from_), to_, true) || relayed(layout_.node_of(to_), from_, false)) {
    return true;
  }
  links_.clear();
  return layout_.planes == 1 && across(from_, to_);
}

Router::Router(const ClusterLayout& layout, const Drawing& drawing, Routing routing)
    : wiring_(std::make_unique<Wiring>(layout, drawing, routing)) {}

Router::~Router() = default;

std::optional<Links> Router::route(std::int64_t from, std::int64_t to) const {
  return Search(*wiring_, from, to).find();
}

}  // namespace foretrain
