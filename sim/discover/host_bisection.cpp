#include "sim/discover/host_bisection.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <queue>
#include <vector>

namespace foretrain {
namespace {

/// Max-flow by shortest blocking flows (Dinitz 1970). Hosts forward nothing, so all hosts of a half
/// are one node; cables side by side are one edge.
class MaxFlow {
 public:
  explicit MaxFlow(std::size_t nodes) : edges_of_(nodes), level_(nodes), next_(nodes) {}

  void add(std::size_t from, std::size_t to, std::int64_t forth, std::int64_t back) {
    edges_of_[from].push_back(edges_.size());
    edges_.push_back({to, forth});
    edges_of_[to].push_back(edges_.size());
    edges_.push_back({from, back});
  }

  std::int64_t between(std::size_t source, std::size_t sink) {
    std::int64_t total = 0;
    while (layer(source, sink)) {
      std::fill(next_.begin(), next_.end(), 0);
      for (std::int64_t sent = 1; sent > 0; total += sent) {
        sent = push(source, sink);
      }
    }
    return total;
  }

 private:
  struct Edge {
    std::size_t to;
    std::int64_t left;
  };

  bool layer(std::size_t source, std::size_t sink) {
    std::fill(level_.begin(), level_.end(), -1);
    level_[source] = 0;
    std::queue<std::size_t> open;
    open.push(source);
    while (!open.empty()) {
      const std::size_t node = open.front();
      open.pop();
      for (const std::size_t edge : edges_of_[node]) {
        if (edges_[edge].left > 0 && level_[edges_[edge].to] < 0) {
          level_[edges_[edge].to] = level_[node] + 1;
          open.push(edges_[edge].to);
        }
      }
    }
    return level_[sink] >= 0;
  }

  /// One path in the layers, found with a stack of its own: a chain of switches may be long.
  std::int64_t push(std::size_t source, std::size_t sink) {
    std::vector<std::size_t> path;
    std::size_t node = source;
    while (node != sink) {
      if (next_[node] < edges_of_[node].size()) {
        const std::size_t edge = edges_of_[node][next_[node]];
        if (edges_[edge].left > 0 && level_[edges_[edge].to] == level_[node] + 1) {
          path.push_back(edge);
          node = edges_[edge].to;
        } else {
          ++next_[node];
        }
      } else if (path.empty()) {
        return 0;
      } else {
        node = edges_[path.back() ^ 1U].to;
        path.pop_back();
        ++next_[node];
      }
    }
    std::int64_t sent = std::numeric_limits<std::int64_t>::max();
    for (const std::size_t edge : path) {
      sent = std::min(sent, edges_[edge].left);
    }
    for (const std::size_t edge : path) {
      edges_[edge].left -= sent;
      edges_[edge ^ 1U].left += sent;
    }
    return sent;
  }

  std::vector<Edge> edges_;  ///< an edge and its reverse side by side
  std::vector<std::vector<std::size_t>> edges_of_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
};

}  // namespace

Bandwidth host_bisection(const DiscoveredFabric& fabric) {
  const std::size_t switches = fabric.switches.size();
  const std::size_t source = switches;
  const std::size_t sink = switches + 1;
  MaxFlow flow(switches + 2);
  for (const DiscoveredFabric::Cable& cable : fabric.cables) {
    const std::int64_t rate = cable.rate.bytes_per_second;
    flow.add(static_cast<std::size_t>(cable.a), static_cast<std::size_t>(cable.b), rate, rate);
  }
  for (std::size_t host = 0; host < fabric.hosts.size(); ++host) {
    for (const DiscoveredFabric::Adapter& adapter : fabric.hosts[host].adapters) {
      const auto at = static_cast<std::size_t>(adapter.at);
      if (host < fabric.hosts.size() / 2) {
        flow.add(source, at, adapter.rate.bytes_per_second, 0);
      } else {
        flow.add(at, sink, adapter.rate.bytes_per_second, 0);
      }
    }
  }
  return {flow.between(source, sink)};
}

}  // namespace foretrain
