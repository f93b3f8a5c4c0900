#include "sim/lower/link_traffic.h"

#include <numeric>

namespace foretrain {
namespace {

/// What one rank of a template sends in a step.
struct Sent {
  std::vector<std::int64_t> to_group;  ///< per group kind
  std::array<std::int64_t, kPeerSlots> to_peer{};
  std::vector<std::size_t> account;  ///< per group kind: whose traffic it is
};

Sent sent_by(const Program& program, const Template& list) {
  Sent sent;
  sent.to_group.assign(program.group_kinds.size(), 0);
  sent.account.assign(program.group_kinds.size(), 0);
  for (const Call& call : list.calls) {
    for (const Task& task : program.blocks[static_cast<std::size_t>(call.block)].tasks) {
      if (task.kind == TaskKind::kSend) {
        sent.to_peer[static_cast<std::size_t>(task.peer_slot)] += task.bytes;
      } else if (task.kind == TaskKind::kCollective) {
        const auto kind = static_cast<std::size_t>(task.group_kind);
        sent.to_group[kind] += task.bytes;
        sent.account[kind] = static_cast<std::size_t>(
            program.streams[static_cast<std::size_t>(task.stream)].account);
      }
    }
  }
  return sent;
}

std::vector<std::int64_t> ranks_of(const Program& full, const std::vector<std::int32_t>& group) {
  std::vector<std::int64_t> ranks;
  for (const std::int32_t member : group) {
    ranks.push_back(full.instances[static_cast<std::size_t>(member)].rank);
  }
  return ranks;
}

std::vector<Sent> sent_by_templates(const Program& program) {
  std::vector<Sent> sent;
  for (const Template& list : program.templates) {
    sent.push_back(sent_by(program, list));
  }
  return sent;
}

/// Calls `put` with the members of every group of every kind that sends anything, and what its
/// members send in a step, on average.
template <typename Put>
void for_each_group(const Program& full, const std::vector<Sent>& sent, Put put) {
  for (std::size_t kind = 0; kind < full.groups.size(); ++kind) {
    for (const std::vector<std::int32_t>& group : full.groups[kind]) {
      double bytes = 0;
      for (const std::int32_t member : group) {
        const Instance& instance = full.instances[static_cast<std::size_t>(member)];
        bytes += static_cast<double>(
            sent[static_cast<std::size_t>(instance.template_index)].to_group[kind]);
      }
      if (bytes > 0) {
        const Instance& first = full.instances[static_cast<std::size_t>(group.front())];
        put(kind,
            group,
            bytes / static_cast<double>(group.size()),
            sent[static_cast<std::size_t>(first.template_index)].account[kind]);
      }
    }
  }
}

/// Calls `put` with every rank that sends to a peer.
template <typename Put>
void for_each_message(const Program& full, const std::vector<Sent>& sent, Put put) {
  for (const Instance& instance : full.instances) {
    for (std::size_t slot = 0; slot < kPeerSlots; ++slot) {
      const std::int64_t bytes =
          sent[static_cast<std::size_t>(instance.template_index)].to_peer[slot];
      if (bytes > 0) {
        const std::int32_t peer = instance.peers[slot];
        put(instance,
            static_cast<std::int32_t>(slot),
            full.instances[static_cast<std::size_t>(peer)].rank,
            static_cast<double>(bytes));
      }
    }
  }
}

}  // namespace

double LinkTraffic::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

TrafficPattern pattern_of(const Scenario& scenario, GroupKind kind) {
  const std::string& dispatcher = scenario.stack.dispatcher;
  if (kind == kExpertGroup && (dispatcher == "deepep" || dispatcher == "flex")) {
    return TrafficPattern::kForwarded;
  }
  const bool tokens_to_experts = kind == kExpertGroup && dispatcher != "allgather";
  const bool heads_for_tokens =
      kind == kContextGroup && scenario.parallelism.cp_kind == ContextKind::kUlysses;
  return tokens_to_experts || heads_for_tokens ? TrafficPattern::kAllPairs : TrafficPattern::kRing;
}

std::vector<LinkTraffic> link_traffic(const Scenario& scenario,
                                      const Program& full,
                                      const Topology& topology) {
  std::vector<LinkTraffic> traffic(topology.links().size());
  const std::vector<Sent> sent = sent_by_templates(full);
  for_each_group(
      full,
      sent,
      [&](std::size_t kind, const std::vector<std::int32_t>& group, double bytes, std::size_t of) {
        const TrafficPattern pattern = pattern_of(scenario, static_cast<GroupKind>(kind));
        for (const LinkUse& use : topology.pattern_loads(ranks_of(full, group), pattern)) {
          traffic[static_cast<std::size_t>(use.link)].bytes[of] += use.weight * bytes;
        }
      });
  for_each_message(
      full, sent, [&](const Instance& from, std::int32_t, std::int64_t to, double bytes) {
        for (const std::int32_t link : topology.route(from.rank, to)) {
          traffic[static_cast<std::size_t>(link)].bytes[kPipelineTraffic] += bytes;
        }
      });
  return traffic;
}

std::vector<LinkCrossing> crossings_of(const Scenario& scenario,
                                       const Program& full,
                                       const Topology& topology,
                                       std::int32_t link) {
  std::vector<LinkCrossing> crossings;
  const std::vector<Sent> sent = sent_by_templates(full);
  for_each_group(
      full,
      sent,
      [&](std::size_t kind, const std::vector<std::int32_t>& group, double, std::size_t) {
        const TrafficPattern pattern = pattern_of(scenario, static_cast<GroupKind>(kind));
        for (const LinkUse& use : topology.pattern_loads(ranks_of(full, group), pattern)) {
          if (use.link == link) {
            crossings.push_back({group.front(), static_cast<std::int32_t>(kind), -1, use.weight});
          }
        }
      });
  for_each_message(
      full, sent, [&](const Instance& from, std::int32_t slot, std::int64_t to, double) {
        for (const std::int32_t crossed : topology.route(from.rank, to)) {
          if (crossed == link) {
            crossings.push_back({from.rank, -1, slot, 1.0});
          }
        }
      });
  return crossings;
}

}  // namespace foretrain
