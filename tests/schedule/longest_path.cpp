#include "tests/schedule/longest_path.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace foretrain::reference {
namespace {

struct Edge {
  std::size_t to;
  std::int64_t delay;
};

struct Graph {
  std::vector<std::int64_t> cost;
  std::vector<std::vector<Edge>> edges;
  std::vector<int> inputs;

  void connect(std::size_t from, std::size_t to, std::int64_t delay) {
    edges[from].push_back({to, delay});
    ++inputs[to];
  }
};

using Key = std::tuple<int, char, int>;  // stage, kind, micro-batch

Graph build(const Schedule& schedule,
            std::int64_t forward,
            std::int64_t backward,
            std::int64_t p2p) {
  Graph graph;
  std::map<Key, std::size_t> node;
  for (const auto& list : schedule.ranks) {
    for (const Action& action : list) {
      const bool is_forward = action.kind == ActionKind::kForward;
      node[{action.stage, is_forward ? 'F' : 'B', action.micro_batch}] = graph.cost.size();
      graph.cost.push_back(is_forward ? forward : backward);
    }
  }
  graph.edges.resize(graph.cost.size());
  graph.inputs.resize(graph.cost.size());
  std::size_t next = 0;
  for (const auto& list : schedule.ranks) {  // a rank keeps its order
    for (std::size_t i = 0; i < list.size(); ++i, ++next) {
      if (i > 0) {
        graph.connect(next - 1, next, 0);
      }
    }
  }
  const int pp = schedule.size.pp;
  const int last = schedule.size.pp * schedule.size.vpp - 1;
  const std::int64_t hop = pp > 1 ? p2p : 0;  // neighbours in a loop share a rank only when alone
  for (int k = 0; k < schedule.size.micro_batches; ++k) {
    for (int stage = 0; stage < last; ++stage) {
      graph.connect(node.at({stage, 'F', k}), node.at({stage + 1, 'F', k}), hop);
      graph.connect(node.at({stage + 1, 'B', k}), node.at({stage, 'B', k}), hop);
    }
    graph.connect(node.at({last, 'F', k}), node.at({last, 'B', k}), 0);
  }
  return graph;
}

}  // namespace

Times longest_path(const Schedule& schedule,
                   std::int64_t forward,
                   std::int64_t backward,
                   std::int64_t p2p) {
  Graph graph = build(schedule, forward, backward, p2p);
  std::vector<std::int64_t> start(graph.cost.size());
  std::queue<std::size_t> ready;
  for (std::size_t i = 0; i < graph.cost.size(); ++i) {
    if (graph.inputs[i] == 0) {
      ready.push(i);
    }
  }
  std::size_t seen = 0;
  Times times;
  for (; !ready.empty(); ready.pop()) {
    const std::size_t at = ready.front();
    ++seen;
    const std::int64_t end = start[at] + graph.cost[at];
    times.makespan = std::max(times.makespan, end);
    for (const Edge& edge : graph.edges[at]) {
      start[edge.to] = std::max(start[edge.to], end + edge.delay);
      if (--graph.inputs[edge.to] == 0) {
        ready.push(edge.to);
      }
    }
  }
  times.acyclic = seen == graph.cost.size();
  std::size_t next = 0;
  for (const auto& list : schedule.ranks) {
    times.end.emplace_back();
    for (std::size_t i = 0; i < list.size(); ++i, ++next) {
      times.end.back().push_back(start[next] + graph.cost[next]);
    }
  }
  return times;
}

}  // namespace foretrain::reference
