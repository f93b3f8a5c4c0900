#include "sim/cluster/group_traffic.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Lanes of a multi-node ring, or none.
std::int64_t lane_count(const std::vector<NodeMembers>& nodes) {
  if (nodes.size() < 2) {
    return 0;
  }
  std::size_t fewest = nodes.front().ranks.size();
  for (const NodeMembers& at : nodes) {
    fewest = std::min(fewest, at.ranks.size());
  }
  return static_cast<std::int64_t>(fewest);
}

bool even(const std::vector<NodeMembers>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const NodeMembers& at) {
    return at.ranks.size() == nodes.front().ranks.size();
  });
}

}  // namespace

std::vector<NodeMembers> members_by_node(const ClusterLayout& layout,
                                         std::span<const std::int64_t> ranks) {
  std::vector<NodeMembers> runs;
  for (const std::int64_t rank : ranks) {
    const std::int64_t node = layout.node_of(rank);
    if (runs.empty() || runs.back().node != node) {
      runs.push_back({node, {}});
    }
    runs.back().ranks.push_back(rank);
  }
  std::vector<NodeMembers> sorted = runs;
  const auto by_node = [](const NodeMembers& a, const NodeMembers& b) { return a.node < b.node; };
  std::stable_sort(sorted.begin(), sorted.end(), by_node);
  std::vector<NodeMembers> merged;
  for (NodeMembers& run : sorted) {
    if (!merged.empty() && merged.back().node == run.node) {
      std::vector<std::int64_t>& all = merged.back().ranks;
      all.insert(all.end(), run.ranks.begin(), run.ranks.end());
    } else {
      merged.push_back(std::move(run));
    }
  }
  return merged.size() == runs.size() ? runs : merged;
}

RingTraffic ring_traffic(const std::vector<NodeMembers>& nodes) {
  RingTraffic ring;
  const std::int64_t lanes = lane_count(nodes);
  const double part = lanes > 0 ? 1.0 / static_cast<double>(lanes) : 0.0;
  const bool straight = even(nodes);
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const std::vector<std::int64_t>& here = nodes[at].ranks;
    const std::vector<std::int64_t>& next = nodes[(at + 1) % nodes.size()].ranks;
    std::vector<double> leaving(here.size(), 0.0);
    for (std::size_t lane = 0; lane < static_cast<std::size_t>(lanes); ++lane) {
      const std::size_t last = straight ? lane : (lane + here.size() - 1) % here.size();
      leaving[last] += part;
      ring.lanes.push_back({here[last], next[lane], part});
    }
    for (std::size_t member = 0; here.size() > 1 && member < here.size(); ++member) {
      const double stays = 1.0 - leaving[member];
      if (stays > 0.0) {
        ring.inside.push_back({here[member], here[(member + 1) % here.size()], stays});
      }
    }
  }
  return ring;
}

}  // namespace foretrain
