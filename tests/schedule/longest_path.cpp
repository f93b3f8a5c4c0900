#include "tests/schedule/longest_path.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace foretrain::reference {
namespace {

struct Edge {
  std::size_t to;
  std::int64_t delay;
};

/// A node is what runs in one piece: an action, or both of an atomic overlapped unit.
struct Graph {
  std::vector<std::int64_t> cost;
  std::vector<std::size_t> rank;
  std::vector<std::vector<Edge>> edges;
  std::vector<int> inputs;
  std::vector<std::vector<std::size_t>> node_of;  ///< per rank, per action

  void connect(std::size_t from, std::size_t to, std::int64_t p2p) {
    edges[from].push_back({to, rank[from] == rank[to] ? 0 : p2p});
    ++inputs[to];
  }
};

/// Copy, stage, micro-batch, slice, and F, G (what hands a gradient on: B or I) or W.
using Key = std::tuple<int, int, int, int, char>;

char letter(ActionKind kind) {
  return kind == ActionKind::kForward ? 'F' : kind == ActionKind::kWeightGradient ? 'W' : 'G';
}

std::int64_t cost_of(const Action& action, const ScheduleCosts& costs) {
  const std::size_t stage = costs.stages.size() == 1 ? 0 : static_cast<std::size_t>(action.stage);
  const ChunkCosts& chunk = costs.stages[stage];
  const std::map<ActionKind, Duration> all = {{ActionKind::kForward, chunk.forward},
                                              {ActionKind::kBackward, chunk.backward},
                                              {ActionKind::kInputGradient, chunk.input_gradient},
                                              {ActionKind::kWeightGradient, chunk.weight_gradient}};
  return all.at(action.kind).count();
}

std::int64_t unit_cost(const Action& forward, const Action& backward, const ScheduleCosts& costs) {
  const std::size_t stage = costs.stages.size() == 1 ? 0 : static_cast<std::size_t>(forward.stage);
  return costs.stages[stage].overlapped ? costs.stages[stage].overlapped->count()
                                        : cost_of(forward, costs) + cost_of(backward, costs);
}

/// Nodes in the order of the lists, each rank's after those of the rank before.
void add_nodes(const Schedule& schedule, const ScheduleCosts& costs, Graph& graph) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& list = schedule.ranks[rank];
    graph.node_of.emplace_back();
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0 && list[i - 1].overlapped && !costs.sequential) {
        graph.cost.back() = unit_cost(list[i - 1], list[i], costs);
      } else {
        graph.cost.push_back(cost_of(list[i], costs));
        graph.rank.push_back(rank);
      }
      graph.node_of.back().push_back(graph.cost.size() - 1);
    }
  }
  graph.edges.resize(graph.cost.size());
  graph.inputs.resize(graph.cost.size());
}

Graph build(const Schedule& schedule, const ScheduleCosts& costs) {
  Graph graph;
  add_nodes(schedule, costs, graph);
  std::map<Key, std::size_t> node;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      const Action& a = schedule.ranks[rank][i];
      node[{a.copy, a.stage, a.micro_batch, a.slice, letter(a.kind)}] = graph.node_of[rank][i];
    }
  }
  for (std::size_t at = 1; at < graph.cost.size(); ++at) {
    if (graph.rank[at] == graph.rank[at - 1]) {  // a rank keeps its order
      graph.connect(at - 1, at, 0);
    }
  }
  const std::int64_t p2p = costs.p2p.count();
  for (const auto& [key, at] : node) {
    const auto [copy, stage, k, slice, kind] = key;
    const auto after = [&, to = at](const Key& input) {
      if (const auto from = node.find(input); from != node.end()) {
        graph.connect(from->second, to, p2p);
      }
    };
    if (kind == 'F') {
      after({copy, stage - 1, k, slice, 'F'});
      after({copy, stage, k, slice - 1, 'F'});
    } else if (kind == 'G') {
      after({copy, stage, k, slice, 'F'});
      after({copy, stage + 1, k, slice, 'G'});
      after({copy, stage, k, slice + 1, 'G'});
    } else {
      after({copy, stage, k, slice, 'G'});
    }
  }
  return graph;
}

}  // namespace

Times longest_path(const Schedule& schedule, const ScheduleCosts& costs) {
  Graph graph = build(schedule, costs);
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
  for (const auto& nodes : graph.node_of) {
    times.start.emplace_back();
    times.end.emplace_back();
    for (const std::size_t at : nodes) {
      times.start.back().push_back(start[at]);
      times.end.back().push_back(start[at] + graph.cost[at]);
    }
  }
  return times;
}

}  // namespace foretrain::reference
