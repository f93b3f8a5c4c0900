#include "sim/model/operator_graph.h"

#include "sim/base/check.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>

#include <boost/graph/topological_sort.hpp>

namespace foretrain {

namespace {

std::size_t index(OperatorGraph::Vertex vertex) {
  return static_cast<std::size_t>(vertex);
}

}  // namespace

bool in_weight_half(const Operator& op) {
  return op.pass == Pass::kWeightGradient;
}

OperatorGraph::Vertex OperatorGraph::add(const Operator& op, const std::vector<Vertex>& waits_for) {
  const Vertex vertex = size();
  boost::add_vertex(op, graph_);
  for (const Vertex input : waits_for) {
    FORETRAIN_CHECK(input < vertex, "an operator waits for one that is not there yet");
    if (input < 0 || boost::edge(index(input), index(vertex), graph_).second)
      continue;
    boost::add_edge(index(input), index(vertex), graph_);
  }
  return vertex;
}

const Operator& OperatorGraph::at(Vertex vertex) const {
  return graph_[index(vertex)];
}

Operator& OperatorGraph::at(Vertex vertex) {
  return graph_[index(vertex)];
}

OperatorGraph::Vertex OperatorGraph::size() const {
  return static_cast<Vertex>(boost::num_vertices(graph_));
}

std::vector<OperatorGraph::Vertex> OperatorGraph::ready_order() const {
  // topological_sort proves that there is no cycle (it throws not_a_dag, which add() rules out);
  // its order depends on its traversal, so the order that is seen comes from a ready queue.
  std::vector<std::size_t> reversed;
  boost::topological_sort(graph_, std::back_inserter(reversed));

  std::vector<std::size_t> waiting(reversed.size());
  std::priority_queue<Vertex, std::vector<Vertex>, std::greater<>> ready;
  for (const std::size_t vertex : reversed) {
    waiting[vertex] = boost::in_degree(vertex, graph_);
    if (waiting[vertex] == 0)
      ready.push(static_cast<Vertex>(vertex));
  }
  std::vector<Vertex> order;
  while (!ready.empty()) {
    const Vertex vertex = ready.top();
    ready.pop();
    order.push_back(vertex);
    const auto [first, last] = boost::out_edges(index(vertex), graph_);
    for (auto edge = first; edge != last; ++edge) {
      const std::size_t target = boost::target(*edge, graph_);
      if (--waiting[target] == 0)
        ready.push(static_cast<Vertex>(target));
    }
  }
  return order;
}

std::vector<Operator> OperatorGraph::list(const std::vector<Vertex>& order) const {
  std::vector<Vertex> position(boost::num_vertices(graph_), -1);
  std::vector<Operator> operators;
  for (const Vertex vertex : order) {
    position[index(vertex)] = static_cast<Vertex>(operators.size());
    Operator op = graph_[index(vertex)];
    op.inputs.clear();
    const auto [first, last] = boost::in_edges(index(vertex), graph_);
    for (auto edge = first; edge != last; ++edge) {
      const Vertex input = position[boost::source(*edge, graph_)];
      if (input >= 0)
        op.inputs.push_back(input);
    }
    std::sort(op.inputs.begin(), op.inputs.end());
    operators.push_back(std::move(op));
  }
  return operators;
}

std::vector<Operator> OperatorGraph::in_order() const {
  return list(ready_order());
}

std::vector<Operator> OperatorGraph::in_order(bool weight_gradients) const {
  std::vector<Vertex> half;
  for (const Vertex vertex : ready_order()) {
    if (in_weight_half(at(vertex)) == weight_gradients)
      half.push_back(vertex);
  }
  return list(half);
}

}  // namespace foretrain
