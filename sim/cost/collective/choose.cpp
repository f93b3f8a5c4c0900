#include "sim/base/check.h"
#include "sim/cost/collective/algorithms.h"

#include <algorithm>

/// Which algorithm and protocol a collective takes (MODEL 4.3).
namespace foretrain {
namespace {

struct Question {
  CollectiveKind kind;
  const GroupShape& group;
  const LinkModel& links;
  bool spans() const { return group.nodes > 1; }
  bool reduces_or_gathers() const {
    return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kAllGather ||
           kind == CollectiveKind::kReduceScatter;
  }
};

bool no_one(const Question& /*ask*/) {
  return false;
}
bool always(const Question& /*ask*/) {
  return true;
}
bool ring_applies(const Question& ask) {
  return ask.reduces_or_gathers();
}
/// The textbook takes the ring inside a node, over one rank a node, and over uneven nodes.
bool ring_chosen(const Question& ask) {
  return ask.links.tuned || !ask.spans() || ask.group.ranks_per_node == 1 || !ask.group.even;
}
bool phases_apply(const Question& ask) {
  return ask.reduces_or_gathers() && ask.spans() && ask.group.even && ask.group.ranks_per_node > 1;
}
bool textbook(const Question& ask) {
  return !ask.links.tuned;
}
bool tree_applies(const Question& ask) {
  return (ask.kind == CollectiveKind::kAllReduce || ask.kind == CollectiveKind::kBroadcast) &&
         ask.spans() && ask.group.even;
}
bool tuned(const Question& ask) {
  return ask.links.tuned;
}
bool nvls_applies(const Question& ask) {
  return ask.kind == CollectiveKind::kAllReduce && !ask.spans() && ask.links.nvls_efficiency > 0;
}
/// NCCL prefers the ring on up to four GPUs (stas00/ml-engineering: H200, B200).
bool more_than_four(const Question& ask) {
  return ask.links.tuned && ask.group.size > 4;
}
bool nvls_tree_applies(const Question& ask) {
  return ask.kind == CollectiveKind::kAllReduce && ask.spans() && ask.group.even &&
         ask.group.ranks_per_node > 1 && ask.links.nvls_efficiency > 0;
}
bool exchanges(const Question& ask) {
  return ask.kind == CollectiveKind::kAllToAll;
}
bool gathered_applies(const Question& ask) {
  return exchanges(ask) && ask.spans() && ask.group.even && ask.group.ranks_per_node > 1;
}
bool broadcasts(const Question& ask) {
  return ask.kind == CollectiveKind::kBroadcast;
}
bool sends(const Question& ask) {
  return ask.kind == CollectiveKind::kSendReceive;
}

struct Algorithm {
  std::string_view name;
  bool (*applies)(const Question& ask);
  bool (*considered)(const Question& ask);  ///< without being asked for
  CollectiveCost (*cost)(CollectiveKind kind, Bytes bytes, const GroupWire& wire);
  bool low_latency;   ///< has that protocol too
  bool peer_to_peer;  ///< messages between pairs: no ring or tree to set up
};

constexpr Algorithm kAlgorithms[] = {
    {"ring", ring_applies, ring_chosen, ring_cost, true, false},
    {"hierarchical", phases_apply, textbook, hierarchical_cost, false, false},
    {"tree", tree_applies, tuned, tree_cost, true, false},
    {"nvls", nvls_applies, more_than_four, nvls_cost, false, false},
    {"nvls_tree", nvls_tree_applies, tuned, nvls_tree_cost, false, false},
    {"pairwise", exchanges, always, pairwise_cost, false, true},
    {"hierarchical", gathered_applies, no_one, gathered_pairwise_cost, false, true},
    {"chain", broadcasts, always, chain_cost, true, false},
    {"send", sends, always, send_cost, false, true},
};

/// NCCL's tuner holds the tree at half the wire's rate whatever the nodes, so that on two nodes,
/// where it would be fastest, large buffers go round the ring (tuning.cc, "ratio *= .5").
bool passed_over(const Algorithm& algorithm, const Question& ask, WireProtocol protocol) {
  return algorithm.cost == tree_cost && ask.kind == CollectiveKind::kAllReduce &&
         ask.group.nodes == 2 && protocol == WireProtocol::kBulk;
}

CollectiveCost priced(const Algorithm& algorithm,
                      const Question& ask,
                      Bytes bytes,
                      WireProtocol protocol) {
  GroupWire wire = wire_of(ask.group, ask.links, protocol);
  if (!ask.links.tuned && algorithm.cost == ring_cost) {
    // The textbook's ring is one ring: its slowest link sets the pace.
    wire.lanes = 1;
    wire.phase_overlap = 1.0;
  }
  if (algorithm.peer_to_peer && ask.links.low_latency_inside > 0) {
    // One pair's connection has none of the set-up of a ring or tree of many channels.
    const GroupWire quick = wire_of(ask.group, ask.links, WireProtocol::kLowLatency);
    wire.start = quick.start;
    wire.across_hop = std::min(wire.across_hop, quick.across_hop);
  }
  CollectiveCost cost = algorithm.cost(ask.kind, bytes, wire);
  cost.algorithm = algorithm.name;
  cost.protocol = protocol == WireProtocol::kBulk ? "bulk" : "low latency";
  cost.across_limits = cost.across > cost.inside;
  cost.latency += wire.start;
  return cost;
}

}  // namespace

CollectiveCost collective_cost(CollectiveKind kind,
                               Bytes bytes,
                               const GroupShape& group,
                               const LinkModel& links) {
  FORETRAIN_CHECK(group.size >= 1 && group.nodes >= 1 && bytes.value >= 0, "a legal group");
  CollectiveCost best;
  best.algorithm = "none";
  if (group.size == 1 || bytes.value == 0) {
    return best;
  }
  const Question ask{kind, group, links};
  const bool forced = !links.algorithm.empty();
  bool found = false;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (!algorithm.applies(ask) ||
        (forced ? algorithm.name != links.algorithm : !algorithm.considered(ask))) {
      continue;
    }
    for (const WireProtocol protocol : {WireProtocol::kBulk, WireProtocol::kLowLatency}) {
      const bool quick = protocol == WireProtocol::kLowLatency;
      if ((quick && !(algorithm.low_latency && links.low_latency_inside > 0)) ||
          (!forced && passed_over(algorithm, ask, protocol))) {
        continue;
      }
      const CollectiveCost cost = priced(algorithm, ask, bytes, protocol);
      if (!found || cost.total() < best.total()) {
        best = cost;
        found = true;
      }
    }
  }
  FORETRAIN_CHECK(found, "an algorithm that applies");
  if (links.free) {
    best.inside = best.across = best.latency = Duration{};
  }
  return best;
}

std::vector<std::string_view> collective_algorithms(CollectiveKind kind,
                                                    const GroupShape& group,
                                                    const LinkModel& links) {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (group.size > 1 && algorithm.applies({kind, group, links})) {
      names.push_back(algorithm.name);
    }
  }
  return names;
}

}  // namespace foretrain
