#pragma once

#include "foretrain/model.h"

#include <cstdint>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

namespace foretrain {

/// The operators of one pass as a directed acyclic graph: an edge means "waits for". Vertices are
/// numbered in the order they are added, which is the framework's issue order.
class OperatorGraph {
 public:
  using Vertex = std::int32_t;

  /// `waits_for`: earlier vertices; negative entries mean "nothing" and are skipped.
  Vertex add(const Operator& op, const std::vector<Vertex>& waits_for);

  const Operator& at(Vertex vertex) const;
  Operator& at(Vertex vertex);
  Vertex size() const;

  /// A topological order: of the operators that are ready, the lowest number first. `inputs` of the
  /// result are positions in it.
  std::vector<Operator> in_order() const;

  /// The same for one half of a split backward; dependencies on the other half are left to the
  /// order of the two calls.
  std::vector<Operator> in_order(bool weight_gradients) const;

 private:
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, Operator>;
  std::vector<Vertex> ready_order() const;
  std::vector<Operator> list(const std::vector<Vertex>& order) const;

  Graph graph_;
};

/// Whether an operator runs in the weight-gradient half of a split backward.
bool in_weight_half(const Operator& op);

}  // namespace foretrain
