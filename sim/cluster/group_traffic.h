#pragma once

#include "sim/cluster/layout.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Who sends to whom in a group, and how much.
namespace foretrain {

struct NodeMembers {
  std::int64_t node = 0;
  std::vector<std::int64_t> ranks;  ///< in the group's order
};

/// The group's nodes in the order the group first meets them; by number when it comes back to one.
std::vector<NodeMembers> members_by_node(const ClusterLayout& layout,
                                         std::span<const std::int64_t> ranks);

/// Bytes from one rank to another per byte that each rank of the group sends.
struct RankFlow {
  std::int64_t from = 0, to = 0;
  double bytes = 0.0;
};

/// Pairs of one group whose routes are worth finding one by one.
constexpr std::size_t kMostPairs = 1 << 20;

/// Rings that together use every NIC: in a node each member sends to the next; between nodes there
/// are as many lanes as the emptiest node has members, each with its part of the bytes. Where all
/// nodes hold the same number a lane joins members of the same place; else ring c enters a node at
/// member c and leaves it at the member before. Every rank sends and receives 1.
struct RingTraffic {
  std::vector<RankFlow> inside;
  std::vector<RankFlow> lanes;
};
RingTraffic ring_traffic(const std::vector<NodeMembers>& nodes);

}  // namespace foretrain
