#include "sim/cluster/shared_resources.h"

namespace foretrain {
std::int32_t LinkResources::count() const {
  return static_cast<std::int32_t>(topology_.links().size());
}

double LinkResources::capacity(std::int32_t resource) const {
  const Link& link = topology_.links()[static_cast<std::size_t>(resource)];
  return static_cast<double>(link.capacity.bytes_per_second);
}

std::string LinkResources::link_id(std::int32_t resource) const {
  return topology_.links()[static_cast<std::size_t>(resource)].id;
}

Duration LinkResources::lane(std::int64_t from,
                             std::int64_t to,
                             std::vector<ResourceLoad>& loads) const {
  Duration latency{};
  if (topology_.reachable(from, to)) {
    for (const std::int32_t link : topology_.route(from, to)) {
      loads.push_back({link, 1.0});
      latency += topology_.links()[static_cast<std::size_t>(link)].latency;
    }
  }
  return latency;
}

void LinkResources::all_pairs(const std::vector<NodeMembers>& nodes,
                              std::vector<ResourceLoad>& loads) const {
  std::size_t size = 0;
  for (const NodeMembers& node : nodes) {
    size += node.ranks.size();
  }
  if (routing_ == Routing::kHashed && size * size <= kMostPairs) {
    for (const NodeMembers& here : nodes) {
      for (const NodeMembers& there : nodes) {
        for (const std::int64_t from : here.ranks) {
          for (std::size_t to = 0; &here != &there && to < there.ranks.size(); ++to) {
            lane(from, there.ranks[to], loads);
          }
        }
      }
    }
    return;
  }
  const std::vector<double> by_link = router_.all_pairs(nodes);
  for (std::size_t link = 0; link < by_link.size(); ++link) {
    if (by_link[link] > 0.0) {
      loads.push_back({static_cast<std::int32_t>(link), by_link[link]});
    }
  }
}

}  // namespace foretrain
