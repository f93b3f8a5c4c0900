#pragma once

#include "tools/failed_parts.h"

#include "foretrain/collective.h"
#include "foretrain/diagnostic.h"
#include "foretrain/topology.h"

#include <cstdint>
#include <string>
#include <vector>

namespace foretrain {

/// The words of `foretrain collective`, as typed.
struct CollectiveWords {
  std::string op, topology, ranks, bytes, algorithm, sweep, json_target;
  std::vector<std::string> beside, measured;
  std::int64_t gpus = 0;  ///< 0: not given
  FailedParts failed;
};

/// One group on one cluster, ready to be priced.
struct CollectiveQuestion {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::string op;
  TopologySpec hardware;
  std::vector<std::int64_t> ranks;
  GroupShape shape;
  std::string algorithm;  ///< "": the fastest
  std::int64_t groups_beside = 0;

  CollectiveCost cost(Bytes bytes) const;
  double bus(Bytes bytes, double seconds) const;
  /// "": nothing moves.
  std::string limiting_link(const CollectiveCost& cost) const;
};

/// The operation by its name; the fault lists the names.
Expected<CollectiveKind> collective_kind(const std::string& op);

/// Builds the cluster and the group, `ranks` a list as typed. Every fault at once.
Expected<CollectiveQuestion> ask_collective(const CollectiveWords& words, const std::string& ranks);

/// Sizes of "MIN:MAX", doubling.
Expected<std::vector<Bytes>> sweep_sizes(const std::string& text);

/// "0-15" for 16.
std::string first_ranks(std::int64_t count);

}  // namespace foretrain
