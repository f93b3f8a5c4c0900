#include "foretrain/collective.h"
#include "sim/base/check.h"

#include <algorithm>
#include <bit>
#include <cmath>

/// Every formula here is MODEL 4.
namespace foretrain {
namespace {

/// A group on its links: rates after efficiency, one hop's latency, n ranks as N nodes of k.
struct Wire {
  std::int64_t n, nodes, k;
  Bandwidth inside, across, across_all_pairs;
  Duration inside_hop, across_hop;
  double phase_overlap;
};

Bandwidth derate(Bandwidth line, double efficiency) {
  const auto rate = std::llround(static_cast<double>(line.bytes_per_second) * efficiency);
  return {std::max<std::int64_t>(rate, 1)};
}

Wire wire_of(const GroupShape& group, const LinkModel& links) {
  Wire wire{};
  wire.n = group.size;
  wire.nodes = group.nodes;
  wire.k = group.ranks_per_node;
  wire.inside = derate(group.inside, links.inside_efficiency);
  wire.across = derate(group.across, links.across_efficiency);
  const bool same = group.across_all_pairs.bytes_per_second <= 0;
  wire.across_all_pairs =
      same ? wire.across : derate(group.across_all_pairs, links.across_efficiency);
  wire.inside_hop = links.inside_hop + (links.topology_latency ? group.inside_latency : Duration{});
  wire.across_hop = links.across_hop + (links.topology_latency ? group.across_latency : Duration{});
  wire.phase_overlap = links.phase_overlap;
  return wire;
}

/// bytes * part / whole over `rate`, one rounding up.
Duration share_time(Bytes bytes, std::int64_t part, std::int64_t whole, Bandwidth rate) {
  const Int128 scaled = Int128{bytes.value} * part * 1'000'000'000'000;
  const Int128 divisor = Int128{whole} * rate.bytes_per_second;
  return Duration{static_cast<std::int64_t>((scaled + divisor - 1) / divisor)};
}

std::int64_t share_bytes(Bytes bytes, std::int64_t part, std::int64_t whole) {
  return static_cast<std::int64_t>((Int128{bytes.value} * part + whole - 1) / whole);
}

/// How often the payload goes round the ring: an all-reduce is a reduce-scatter and an all-gather.
std::int64_t rounds_of(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce ? 2 : 1;
}

/// The shorter of the two parts is partly hidden under the longer.
void overlap_phases(CollectiveCost& cost, double overlap) {
  Duration& shorter = cost.inside < cost.across ? cost.inside : cost.across;
  const double left = static_cast<double>(shorter.count()) * (1.0 - overlap);
  shorter = Duration{static_cast<std::int64_t>(std::ceil(left))};
}

/// One ring through all members; every step waits for its slowest hop.
CollectiveCost flat_ring(CollectiveKind kind, Bytes bytes, const Wire& wire) {
  CollectiveCost cost;
  const std::int64_t rounds = rounds_of(kind);
  const bool leaves_node = wire.nodes > 1;
  const bool nic_bound = leaves_node && (wire.k == 1 || wire.across <= wire.inside);
  const Duration time =
      share_time(bytes, rounds * (wire.n - 1), wire.n, nic_bound ? wire.across : wire.inside);
  (leaves_node && nic_bound ? cost.across : cost.inside) = time;
  const std::int64_t far_hops = leaves_node ? std::min(wire.nodes, wire.n - 1) : 0;
  cost.latency = rounds * (far_hops * wire.across_hop + (wire.n - 1 - far_hops) * wire.inside_hop);
  cost.sent_bytes = share_bytes(bytes, rounds * (wire.n - 1), wire.n);
  cost.algorithm = "ring";
  return cost;
}

/// k members in each of N nodes: rings inside the nodes, and k rings between nodes, each over its
/// members' own NICs with 1/k of the bytes. The bytes a rank sends are those of the flat ring.
CollectiveCost hierarchical(CollectiveKind kind, Bytes bytes, const Wire& wire) {
  CollectiveCost cost;
  const std::int64_t rounds = rounds_of(kind);
  cost.inside = share_time(bytes, rounds * (wire.k - 1), wire.k, wire.inside);
  cost.across = share_time(bytes, rounds * (wire.nodes - 1), wire.nodes * wire.k, wire.across);
  cost.latency = rounds * ((wire.k - 1) * wire.inside_hop + (wire.nodes - 1) * wire.across_hop);
  cost.sent_bytes = share_bytes(bytes, rounds * (wire.n - 1), wire.n);
  cost.algorithm = "hierarchical";
  overlap_phases(cost, wire.phase_overlap);
  return cost;
}

/// Each rank sends 1/n of its buffer to each other rank; NVLink and NIC work side by side.
CollectiveCost all_to_all(Bytes bytes, const Wire& wire, bool even) {
  CollectiveCost cost;
  const std::int64_t near = wire.k - 1;
  // With uneven nodes the worst rank may be alone in its node.
  const std::int64_t far = wire.n - (even ? wire.k : 1);
  cost.inside = share_time(bytes, near, wire.n, wire.inside);
  cost.across = share_time(bytes, far, wire.n, wire.across_all_pairs);
  overlap_phases(cost, 1.0);
  cost.latency = near * wire.inside_hop + (wire.nodes - 1) * wire.across_hop;
  cost.sent_bytes = share_bytes(bytes, wire.n - 1, wire.n);
  cost.algorithm = "pairwise";
  return cost;
}

/// A pipelined chain from the root: every link carries the whole buffer once. Between nodes the k
/// members of a node take 1/k each.
CollectiveCost broadcast(Bytes bytes, const Wire& wire, bool even) {
  CollectiveCost cost;
  const std::int64_t channels = even ? wire.k : 1;
  if (wire.k > 1) {
    cost.inside = share_time(bytes, 1, 1, wire.inside);
  }
  if (wire.nodes > 1) {
    cost.across = share_time(bytes, 1, channels, wire.across);
  }
  overlap_phases(cost, 1.0);
  cost.latency = (wire.k - 1) * wire.inside_hop + (wire.nodes - 1) * wire.across_hop;
  cost.sent_bytes = bytes.value;
  cost.algorithm = "pipelined chain";
  return cost;
}

std::int64_t tree_depth(std::int64_t nodes) {
  return std::bit_width(static_cast<std::uint64_t>(nodes - 1));
}

/// Double binary tree between nodes, a chain inside them (NCCL 2.4): log2 N hops up and down
/// instead of N - 1 around, for the whole of each member's share instead of (N - 1)/N of it.
CollectiveCost tree_all_reduce(Bytes bytes, const Wire& wire) {
  CollectiveCost cost;
  cost.inside = share_time(bytes, 2 * (wire.k - 1), wire.k, wire.inside);
  cost.across = share_time(bytes, 2, wire.k, wire.across);
  cost.latency = 2 * ((wire.k - 1) * wire.inside_hop + tree_depth(wire.nodes) * wire.across_hop);
  cost.sent_bytes = share_bytes(bytes, 2 * (wire.n - 1), wire.n);
  cost.algorithm = "tree";
  overlap_phases(cost, wire.phase_overlap);
  return cost;
}

/// The faster of what is there and a tree; a tree needs as many members in every node.
CollectiveCost or_tree(CollectiveKind kind, Bytes bytes, const Wire& wire, CollectiveCost cost) {
  if (kind == CollectiveKind::kAllReduce) {
    const CollectiveCost tree = tree_all_reduce(bytes, wire);
    return tree.total() < cost.total() ? tree : cost;
  }
  if (kind == CollectiveKind::kBroadcast && tree_depth(wire.nodes) < wire.nodes - 1) {
    cost.latency -= (wire.nodes - 1 - tree_depth(wire.nodes)) * wire.across_hop;
    cost.algorithm = "tree";
  }
  return cost;
}

CollectiveCost send_receive(Bytes bytes, const Wire& wire) {
  CollectiveCost cost;
  if (wire.nodes > 1) {
    cost.across = share_time(bytes, 1, 1, wire.across);
    cost.latency = wire.across_hop;
  } else {
    cost.inside = share_time(bytes, 1, 1, wire.inside);
    cost.latency = wire.inside_hop;
  }
  cost.sent_bytes = bytes.value;
  cost.algorithm = "send";
  return cost;
}

CollectiveCost cost_of(CollectiveKind kind, Bytes bytes, const Wire& wire, bool even) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return wire.nodes > 1 && wire.k > 1 && even ? hierarchical(kind, bytes, wire)
                                                  : flat_ring(kind, bytes, wire);
    case CollectiveKind::kAllToAll:
      return all_to_all(bytes, wire, even);
    case CollectiveKind::kBroadcast:
      return broadcast(bytes, wire, even);
    case CollectiveKind::kSendReceive:
      return send_receive(bytes, wire);
  }
  return {};
}

}  // namespace

CollectiveCost collective_cost(CollectiveKind kind,
                               Bytes bytes,
                               const GroupShape& group,
                               const LinkModel& links) {
  FORETRAIN_CHECK(group.size >= 1 && group.nodes >= 1 && bytes.value >= 0, "a legal group");
  CollectiveCost cost;
  cost.algorithm = "none";
  if (group.size == 1 || bytes.value == 0) {
    return cost;
  }
  const Wire wire = wire_of(group, links);
  cost = cost_of(kind, bytes, wire, group.even);
  if (links.trees && group.nodes > 1 && group.even) {
    cost = or_tree(kind, bytes, wire, cost);
  }
  cost.across_limits = cost.across > cost.inside;
  cost.latency += links.fixed;
  if (links.free) {
    cost.inside = cost.across = cost.latency = Duration{};
  }
  return cost;
}

}  // namespace foretrain
