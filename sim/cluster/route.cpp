#include "sim/base/check.h"
#include "sim/cluster/topology_graph.h"

#include <vector>

namespace foretrain {

std::vector<std::int32_t> Topology::route(std::int64_t from, std::int64_t to) const {
  const std::int64_t gpus = graph_->layout.gpus;
  FORETRAIN_CHECK(from >= 0 && from < gpus && to >= 0 && to < gpus, "known ranks");
  std::optional<std::vector<std::int32_t>> links = graph_->router().route(from, to);
  FORETRAIN_CHECK(links.has_value(),
                  "no route from gpu%lld to gpu%lld",
                  static_cast<long long>(from),
                  static_cast<long long>(to));
  return *std::move(links);
}

bool Topology::reachable(std::int64_t from, std::int64_t to) const {
  const std::int64_t gpus = graph_->layout.gpus;
  FORETRAIN_CHECK(from >= 0 && from < gpus && to >= 0 && to < gpus, "known ranks");
  return graph_->router().route(from, to).has_value();
}

}  // namespace foretrain
