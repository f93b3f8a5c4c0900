#include "sim/cluster/group_traffic.h"
#include "sim/cluster/shared_resources.h"
#include "sim/cluster/topology_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>

/// Groups whose traffic crosses a slowed link go as fast as it lets them; nobody else notices.
namespace foretrain {
namespace {

/// What slowed links leave of a rate: the slowest of a group's links, as they are and as they were.
class Slowing {
 public:
  Slowing(const std::vector<Link>& links, const std::map<std::string, double>& slow)
      : links_(links), slow_(slow), total_(links.size(), 0.0) {}

  void add(const std::vector<ResourceLoad>& loads) {
    for (const ResourceLoad& load : loads) {
      total_[static_cast<std::size_t>(load.resource)] += load.amount;
    }
  }

  struct Left {
    double share = 1.0;  ///< of the rate without slowed links
    std::string link;    ///< that bounds it; empty: none does
  };
  Left of(const std::vector<ResourceLoad>& loads) const {
    double before = std::numeric_limits<double>::infinity();
    double after = before;
    Left left;
    for (const ResourceLoad& load : loads) {
      const Link& link = links_[static_cast<std::size_t>(load.resource)];
      const auto found = slow_.find(link.id);
      const double factor = found == slow_.end() ? 1.0 : found->second;
      const double rate = static_cast<double>(link.capacity.bytes_per_second) /
                          total_[static_cast<std::size_t>(load.resource)];
      before = std::min(before, rate * factor);
      if (rate < after) {
        after = rate;
        left.link = factor > 1.0 ? link.id : "";
      }
    }
    left.share = loads.empty() ? 1.0 : std::min(after / before, 1.0);
    return left;
  }

 private:
  const std::vector<Link>& links_;
  const std::map<std::string, double>& slow_;
  std::vector<double> total_;
};

Bandwidth part_of(Bandwidth rate, double share) {
  const double part = static_cast<double>(rate.bytes_per_second) * share;
  return {std::max<std::int64_t>(std::llround(part), 1)};
}

}  // namespace

void slow_down_inside(const Topology& topology,
                      const std::vector<NodeMembers>& nodes,
                      const std::map<std::string, double>& slow,
                      GroupShape& shape) {
  for (const RankFlow& flow : ring_traffic(nodes).inside) {
    for (const std::int32_t at : topology.route(flow.from, flow.to)) {
      const Link& link = topology.links()[static_cast<std::size_t>(at)];
      const auto found = slow.find(link.id);
      if (found != slow.end() && part_of(shape.inside, 1.0) > link.capacity) {
        shape.inside = link.capacity;
        shape.slowest_link_inside = link.id;
      }
    }
  }
}

void slow_down_across(const Topology& topology,
                      const LinkResources& resources,
                      const std::vector<std::vector<NodeMembers>>& groups,
                      const std::map<std::string, double>& slow,
                      std::vector<GroupShape>& shapes) {
  const std::vector<Link> links(topology.links().begin(), topology.links().end());
  Slowing lanes(links, slow), pairs(links, slow);
  std::vector<std::vector<ResourceLoad>> lane_loads(groups.size()), pair_loads(groups.size());
  for (std::size_t at = 0; at < groups.size(); ++at) {
    if (shapes[at].nodes == 1) {
      continue;
    }
    for (const RankFlow& flow : ring_traffic(groups[at]).lanes) {
      resources.lane(flow.from, flow.to, lane_loads[at]);
    }
    resources.all_pairs(groups[at], pair_loads[at]);
    lanes.add(lane_loads[at]);
    pairs.add(pair_loads[at]);
  }
  for (std::size_t at = 0; at < groups.size(); ++at) {
    const Slowing::Left lane = lanes.of(lane_loads[at]);
    if (lane.share < 1.0) {
      shapes[at].across = part_of(shapes[at].across, lane.share);
      shapes[at].slowest_link_across = lane.link;
    }
    const Slowing::Left pair = pairs.of(pair_loads[at]);
    if (pair.share < 1.0 && shapes[at].across_all_pairs.bytes_per_second > 0) {
      shapes[at].across_all_pairs = part_of(shapes[at].across_all_pairs, pair.share);
      shapes[at].slowest_link_all_pairs = pair.link;
    }
  }
}

}  // namespace foretrain
