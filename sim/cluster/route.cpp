#include "sim/base/check.h"
#include "sim/cluster/topology_graph.h"

#include <algorithm>
#include <string>
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

std::string Topology::why_unreachable() const {
  constexpr std::size_t kNamed = 3;
  const std::vector<std::string>& failed = graph_->layout.spec.failed_links;
  if (failed.empty()) {
    return "the fabric's cables do not join their switches";
  }
  std::string names;
  for (std::size_t at = 0; at < std::min(failed.size(), kNamed); ++at) {
    names += (at > 0 ? ", " : "") + failed[at];
  }
  return "failed links (" + names + (failed.size() > kNamed ? ", ..." : "") +
         ") take every way between them";
}

}  // namespace foretrain
