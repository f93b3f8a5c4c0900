#pragma once

#include "foretrain/collective.h"

/// What the algorithms share: a group on its links under one protocol (MODEL 4.3).
namespace foretrain {

/// A group on its links: rates after efficiency, one hop's latency, n ranks as N nodes of k.
struct GroupWire {
  std::int64_t n, nodes, k;
  std::int64_t lanes;  ///< members of a node that send side by side: the fewest of any node
  bool even;
  Bandwidth inside, across, across_all_pairs;
  Bandwidth in_switch;  ///< inside, while the NVLink switch reduces
  Duration inside_hop, across_hop, start;
  Duration quick_start;  ///< of the low-latency protocol, whatever the protocol
  double phase_overlap;
  double own_pass;
  double forwarded_share;
  bool network_reduction;
  std::int64_t nvls_channels;
};

/// How a library moves bytes: NCCL's Simple is `bulk`, its LL128 `low latency`.
enum class WireProtocol { kBulk, kLowLatency };

GroupWire wire_of(const GroupShape& group, const LinkModel& links, WireProtocol protocol);

Bandwidth derate(Bandwidth line, double efficiency);

/// bytes * part / whole over `rate`, one rounding up; at most 2^61 ps, which is 26 days.
Duration share_time(Bytes bytes, std::int64_t part, std::int64_t whole, Bandwidth rate);

std::int64_t share_bytes(Bytes bytes, std::int64_t part, std::int64_t whole);

/// How often the payload goes round: an all-reduce is a reduce-scatter and an all-gather.
std::int64_t rounds_of(CollectiveKind kind);

/// The shorter of the two parts is partly hidden under the longer.
void overlap_phases(CollectiveCost& cost, double overlap);

/// Hops from a binary tree's root to its deepest of `nodes`.
std::int64_t tree_depth(std::int64_t nodes);

}  // namespace foretrain
