#pragma once

#include "foretrain/topology.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

/// Routes by the rules of MODEL 4.1 written down plainly: shortest ways by relaxing every link
/// until nothing changes, then link by link. Slow, and knows nothing but devices, links and the
/// spec.
namespace foretrain::testing_support {

class PlainRoutes {
 public:
  using Links = std::vector<std::int32_t>;

  explicit PlainRoutes(const Topology& topology) : topology_(topology), spec_(topology.spec()) {}

  /// For hashed routes: some way, there exactly when one is.
  std::optional<Links> route(std::int64_t from, std::int64_t to, Routing routing) const {
    if (from == to) {
      return Links{};
    }
    if (topology_.node_of(from) == topology_.node_of(to)) {
      return over_the_hub(from, to);
    }
    for (const auto& [first, second] : relays(from, to)) {
      const bool relayed_at_source = second != from && first == from;
      std::optional<Links> head, tail;
      if (relayed_at_source) {
        head = over_the_hub(from, second);
        tail = between_nodes(second, to, to, routing);
      } else if (second != from) {
        head = between_nodes(from, second, to, routing);
        tail = over_the_hub(second, to);
      } else {
        head = Links{};
        tail = between_nodes(from, to, to, routing);
      }
      if (head && tail) {
        head->insert(head->end(), tail->begin(), tail->end());
        return head;
      }
    }
    return std::nullopt;
  }

  /// Joined end to end, and as short as the plain route, by latency and by turns taken.
  bool is_shortest(std::int64_t from, std::int64_t to, const Links& links) const {
    auto here = static_cast<std::int32_t>(from);
    for (const std::int32_t at : links) {
      if (link(at).from != here) {
        return false;
      }
      here = link(at).to;
    }
    const std::optional<Links> plain = route(from, to, Routing::kSingle);
    return here == to && plain && latency(links) == latency(*plain);
  }

 private:
  static constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 2;

  const Link& link(std::int32_t at) const {
    return topology_.links()[static_cast<std::size_t>(at)];
  }
  const Device& device(std::int32_t at) const {
    return topology_.devices()[static_cast<std::size_t>(at)];
  }

  std::int64_t latency(const Links& links) const {
    std::int64_t sum = 0;
    for (const std::int32_t at : links) {
      sum += link(at).latency.count();
    }
    return sum;
  }

  std::optional<std::int32_t> find(std::int32_t from, std::int32_t to) const {
    for (std::size_t at = 0; at < topology_.links().size(); ++at) {
      if (topology_.links()[at].from == from && topology_.links()[at].to == to) {
        return static_cast<std::int32_t>(at);
      }
    }
    return std::nullopt;
  }

  /// Inside a node always through its switch.
  std::optional<Links> over_the_hub(std::int64_t from, std::int64_t to) const {
    for (std::size_t at = 0; at < topology_.devices().size(); ++at) {
      const Device& hub = topology_.devices()[at];
      const bool is_hub = hub.kind == DeviceKind::kNvSwitch || hub.kind == DeviceKind::kPcieSwitch;
      if (is_hub && hub.node == topology_.node_of(from)) {
        const auto up = find(static_cast<std::int32_t>(from), static_cast<std::int32_t>(at));
        const auto down = find(static_cast<std::int32_t>(at), static_cast<std::int32_t>(to));
        return up && down ? std::optional(Links{*up, *down}) : std::nullopt;
      }
    }
    return std::nullopt;
  }

  bool has_rails() const {
    return spec_.fabric == FabricKind::kRailOptimized || spec_.fabric == FabricKind::kRailOnly;
  }
  std::int64_t local(std::int64_t gpu) const { return gpu % spec_.gpus_per_node; }

  /// NICs of a node that sit beside a GPU, by their numbers: shared when there are fewer of them.
  std::vector<std::int64_t> beside(std::int64_t gpu) const {
    std::vector<std::int64_t> nics;
    const std::int64_t gpus = spec_.gpus_per_node;
    for (std::int64_t nic = 0; nic < spec_.nics_per_node; ++nic) {
      const bool fewer = spec_.nics_per_node <= gpus;
      const std::int64_t per = fewer ? gpus / spec_.nics_per_node : spec_.nics_per_node / gpus;
      if (fewer ? local(gpu) / per == nic : nic / per == local(gpu)) {
        nics.push_back(nic);
      }
    }
    return nics;
  }

  /// Ways to try, in order: (from, from) is straight, (from, r) by r in the sender's node, (r, r)
  /// by r in the receiver's. Where rails do not meet, or traffic is not to cross a spine between
  /// them, another rail is reached by a GPU beside its NIC.
  std::vector<std::pair<std::int64_t, std::int64_t>> relays(std::int64_t from,
                                                            std::int64_t to) const {
    const bool over_nvlink =
        has_rails() && spec_.nics_per_node > 1 && spec_.node_interconnect != "pcie" &&
        (spec_.fabric == FabricKind::kRailOnly || spec_.off_rail == OffRail::kNvlink);
    std::vector<std::pair<std::int64_t, std::int64_t>> ways;
    if (!over_nvlink || beside(from) == beside(to)) {
      ways.emplace_back(from, from);
    }
    for (const bool at_source : {true, false}) {
      const std::int64_t node = topology_.node_of(at_source ? from : to);
      for (const std::int64_t nic :
           over_nvlink ? beside(at_source ? to : from) : std::vector<std::int64_t>{}) {
        const std::optional<std::int64_t> relay = first_beside(node, nic);
        if (relay) {
          ways.emplace_back(at_source ? from : *relay, *relay);
        }
      }
    }
    if (over_nvlink && spec_.fabric != FabricKind::kRailOnly) {
      ways.emplace_back(from, from);
    }
    return ways;
  }

  std::optional<std::int64_t> first_beside(std::int64_t node, std::int64_t nic) const {
    for (std::int64_t gpu = node * spec_.gpus_per_node; gpu < topology_.gpus(); ++gpu) {
      const std::vector<std::int64_t> nics = beside(gpu);
      if (topology_.node_of(gpu) == node &&
          std::find(nics.begin(), nics.end(), nic) != nics.end()) {
        return gpu;
      }
    }
    return std::nullopt;
  }

  /// The port on its leaf of the NIC a GPU calls its own: leaves count NICs of their nodes, node by
  /// node, whether those have failed or not. A node's number stands in its NIC's name.
  std::int64_t port(std::int64_t gpu) const {
    const std::int64_t nic = beside(gpu).front();
    std::int64_t number = 0;
    for (const Device& at : topology_.devices()) {
      if (at.kind == DeviceKind::kNic && at.node == topology_.node_of(gpu)) {
        number = std::stoll(at.name.substr(1));
      }
    }
    if (spec_.fabric == FabricKind::kClos && spec_.gpus_per_pod > 0) {
      number %= spec_.gpus_per_pod / spec_.gpus_per_node;
    }
    const std::int64_t place = number % spec_.nodes_per_leaf_group;
    return has_rails() ? place : place * spec_.nics_per_node + nic;
  }

  /// What a route between two nodes may touch: the switches outside, and in the nodes the two GPUs,
  /// NICs and PCIe switches.
  bool passable(std::int32_t at, std::int64_t from, std::int64_t to) const {
    const Device& here = device(at);
    const bool ours =
        here.node == topology_.node_of(from) || here.node == topology_.node_of(to) || here.node < 0;
    return ours && (here.kind != DeviceKind::kGpu || at == from || at == to);
  }

  std::vector<std::int64_t> distances(std::int64_t from, std::int64_t to) const {
    std::vector<std::int64_t> left(topology_.devices().size(), kFar);
    left[static_cast<std::size_t>(to)] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (const Link& at : topology_.links()) {
        std::int64_t& here = left[static_cast<std::size_t>(at.from)];
        const std::int64_t by = left[static_cast<std::size_t>(at.to)] + at.latency.count();
        if (by < here && passable(at.from, from, to) && passable(at.to, from, to)) {
          here = by;
          changed = true;
        }
      }
    }
    return left;
  }

  std::optional<Links> between_nodes(std::int64_t from,
                                     std::int64_t to,
                                     std::int64_t destination,
                                     Routing routing) const {
    const std::vector<std::int64_t> left = distances(from, to);
    if (left[static_cast<std::size_t>(from)] == kFar) {
      return std::nullopt;
    }
    Links links;
    for (auto here = static_cast<std::int32_t>(from); here != to;) {
      Links tight;
      for (std::size_t at = 0; at < topology_.links().size(); ++at) {
        const Link& next = topology_.links()[at];
        if (next.from == here && left[static_cast<std::size_t>(next.to)] < kFar &&
            left[static_cast<std::size_t>(here)] ==
                next.latency.count() + left[static_cast<std::size_t>(next.to)]) {
          tight.push_back(static_cast<std::int32_t>(at));
        }
      }
      const std::size_t chosen = routing == Routing::kDestination
                                     ? static_cast<std::size_t>(port(destination)) % tight.size()
                                     : 0;
      links.push_back(tight[chosen]);
      here = link(tight[chosen]).to;
    }
    return links;
  }

  const Topology& topology_;
  const TopologySpec& spec_;
};

}  // namespace foretrain::testing_support
