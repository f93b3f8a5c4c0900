#pragma once

#include "foretrain/topology.h"
#include "foretrain/units.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
/// The default is the textbook's: one algorithm an operation, one protocol, nothing but the wire.
struct LinkModel {
  double inside_efficiency = 1.0;
  double across_efficiency = 1.0;
  double all_pairs_efficiency = 0.0;  ///< between nodes when all talk to all; 0: as across
  Duration inside_hop{};              ///< added per hop inside a node
  Duration across_hop{};              ///< added per hop between nodes
  Duration fixed{};                   ///< start-up of each collective
  bool topology_latency = true;       ///< count the links' own latencies
  bool free = false;                  ///< every transfer takes zero time
  /// Of a collective's shorter part (in-node or between nodes), the share hidden under the longer
  /// by pipelining chunks: 0 = phase after phase, 1 = only the longer counts.
  double phase_overlap = 0.0;
  // What a communication library adds (MODEL 4.3); none of it under textbook costs.
  bool tuned = false;     ///< the fastest of the algorithms and protocols NCCL would consider
  double own_pass = 0.0;  ///< a ring's own first read and last write, in steps
  double nvls_efficiency = 0.0;     ///< of NVLink while the switch reduces; 0: it cannot
  std::int64_t nvls_channels = 0;   ///< blocks that work on it side by side; 0: no pipeline to fill
  bool network_reduction = false;   ///< the switches between nodes reduce
  double low_latency_inside = 0.0;  ///< low-latency protocol, of the bulk rate; 0: there is none
  double low_latency_across = 0.0;
  Duration low_latency_fixed{};
  Duration low_latency_step{};  ///< per hop inside a node, the link's own latency included
  Duration low_latency_hop{};   ///< added per hop between nodes
  std::string_view algorithm;   ///< force this one (of `collective_algorithms`); empty: choose
};

/// The calibrated link model of a cluster: its file's constants, NCCL's choices.
LinkModel link_model(const TopologySpec& hardware);

/// Time of one collective and where it is spent.
struct CollectiveCost {
  Duration inside{};  ///< bytes over links inside the node
  Duration across{};  ///< bytes over NICs
  Duration latency{};
  std::int64_t sent_bytes = 0;  ///< by one rank
  std::string_view algorithm;   ///< "ring", "tree", ...; "none" (group of one)
  std::string_view protocol;    ///< "bulk" or "low latency"
  bool across_limits = false;   ///< which link bounds it
  Duration total() const { return inside + across + latency; }
};

/// `bytes` is nccl-tests' size: the whole buffer of a rank (all_gather: the gathered output;
/// reduce_scatter: the input; send_recv: the message).
CollectiveCost collective_cost(CollectiveKind kind,
                               Bytes bytes,
                               const GroupShape& group,
                               const LinkModel& links);

/// Names of the algorithms that can do this on such a group, for LinkModel::algorithm.
std::vector<std::string_view> collective_algorithms(CollectiveKind kind,
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

/// The id of the link that bounds a collective inside its nodes or between them.
const std::string& limiting_link(CollectiveKind kind, bool across, const GroupShape& group);

/// Bus bandwidth by the nccl-tests factors, bytes per second; 0 for zero time.
double bus_bandwidth(CollectiveKind kind, Bytes bytes, std::int64_t ranks, Duration time);

}  // namespace foretrain
