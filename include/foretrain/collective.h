#pragma once

#include "foretrain/topology.h"
#include "foretrain/units.h"

#include <cstdint>
#include <string>
#include <string_view>

/// Collectives in closed form: alpha-beta over a group's slowest links (MODEL 4).
namespace foretrain {

enum class CollectiveKind {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kSendReceive
};
std::string_view to_string(CollectiveKind kind);

/// What the wire gives: efficiencies of line rate and extra latency on top of the topology's own.
struct LinkModel {
  double inside_efficiency = 1.0;
  double across_efficiency = 1.0;
  Duration inside_hop{};         ///< added per hop inside a node
  Duration across_hop{};         ///< added per hop between nodes
  Duration fixed{};              ///< start-up of each collective
  bool topology_latency = true;  ///< count the links' own latencies
  /// Reductions and broadcasts between nodes may take a tree where it is faster than the ring, as
  /// NCCL does for small buffers.
  bool trees = false;
  bool free = false;  ///< every transfer takes zero time
  /// Of a hierarchical collective's shorter part (in-node or between nodes), the share hidden under
  /// the longer by pipelining chunks: 0 = phase after phase, 1 = only the longer counts.
  double phase_overlap = 0.0;
};

/// Time of one collective and where it is spent.
struct CollectiveCost {
  Duration inside{};  ///< bytes over links inside the node
  Duration across{};  ///< bytes over NICs
  Duration latency{};
  std::int64_t sent_bytes = 0;  ///< by one rank
  std::string_view algorithm;   ///< "ring", "hierarchical", "tree", "none" (group of one)
  bool across_limits = false;   ///< which link bounds it
  Duration total() const { return inside + across + latency; }
};

/// `bytes` is nccl-tests' size: the whole buffer of a rank (all_gather: the gathered output;
/// reduce_scatter: the input; send_recv: the message).
CollectiveCost collective_cost(CollectiveKind kind,
                               Bytes bytes,
                               const GroupShape& group,
                               const LinkModel& links);

/// An all-to-all of tokens whose dispatcher sends each token once to every node that needs it and
/// forwards it over NVLink (DeepSeek-AI 2025, DeepEP). `bytes` holds every token `copies` times;
/// `nodes_per_token`: distinct nodes a token's copies go to, its own included, on average.
CollectiveCost forwarding_all_to_all(Bytes bytes,
                                     std::int64_t copies,
                                     double nodes_per_token,
                                     const GroupShape& group,
                                     const LinkModel& links);

/// Bus bandwidth by the nccl-tests factors, bytes per second; 0 for zero time.
double bus_bandwidth(CollectiveKind kind, Bytes bytes, std::int64_t ranks, Duration time);

}  // namespace foretrain
