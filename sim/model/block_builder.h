#pragma once

#include "foretrain/model.h"
#include "sim/model/block_shape.h"
#include "sim/model/operator_graph.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace foretrain {

/// Names of a GEMM in the three passes.
struct GemmNames {
  std::string_view forward, input_gradient, weight_gradient;
};

/// A linear layer y[tokens, n] = x[tokens, k] * W[k, n] on one rank.
struct Linear {
  GemmNames names;
  std::int64_t n = 0, k = 0;
  std::int64_t bias = 0;  ///< bias elements this rank accounts for
  bool column_parallel = true;
};

/// Where the activation bytes of a memory-bound operator come from: elements moved times their
/// width, plus bytes of dropout masks.
struct Traffic {
  std::int64_t elements = 0;
  std::int64_t mask_bytes = 0;
};

/// Adds operators to a graph in issue order. `path` is the chain that everything on the compute
/// path hangs on: an operator added with then() waits for the one before it.
class BlockBuilder {
 public:
  using Vertex = OperatorGraph::Vertex;

  BlockBuilder(const ModelConfig& model, const BlockContext& context);

  const ModelConfig& model() const { return model_; }
  const BlockContext& context() const { return context_; }
  const BlockShape& shape() const { return shape_; }
  OperatorGraph& graph() { return graph_; }

  /// Forward operators added from here on are labelled with `pass` (kForward or kRecompute).
  void forward_as(Pass pass) { forward_pass_ = pass; }
  Pass forward_pass() const { return forward_pass_; }

  Vertex then(const Operator& op);
  Vertex path() const { return path_; }

  // Forward.
  void gather();  ///< all-gather before a column-parallel GEMM (sequence parallel only)
  void reduce();  ///< reduce-scatter or all-reduce after a row-parallel GEMM
  void linear(const Linear& layer);
  void elementwise(std::string_view name, Traffic traffic);
  /// `added`: the residual add of the same kernel.
  void norm(std::string_view name, bool added);

  // Backward. A column-parallel layer gathers its saved input again for the weight gradient and
  // reduces its input gradient; a row-parallel one gathers its output gradient first.
  void linear_gradients(const Linear& layer);
  void gradient(std::string_view name, OperatorKind kind, Traffic traffic, Flops flops = {});
  /// `added`: the gradient of the residual path is added in the same kernel.
  void norm_gradient(std::string_view name, bool added);

  /// FLOPs of `parameters` norm parameters on this rank, one pass.
  Flops norm_flops(std::int64_t parameters) const;

 private:
  Operator collective(std::string_view name, CollectiveKind kind, Pass pass) const;
  Operator gemm(
      std::string_view name, Pass pass, std::int64_t m, std::int64_t n, std::int64_t k) const;
  Bytes traffic_bytes(Traffic traffic) const;
  void weight_gradient(const Linear& layer, const std::vector<Vertex>& waits_for);

  ModelConfig model_;
  BlockContext context_;
  BlockShape shape_;
  OperatorGraph graph_;
  Vertex path_ = -1;
  Pass forward_pass_ = Pass::kForward;
};

}  // namespace foretrain
