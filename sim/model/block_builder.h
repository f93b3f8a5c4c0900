#pragma once

#include "foretrain/model.h"
#include "sim/model/block_shape.h"
#include "sim/model/operator_graph.h"
#include "sim/model/quantise.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace foretrain {

/// Names of a GEMM in the three passes.
struct GemmNames {
  std::string_view forward, input_gradient, weight_gradient;
};

/// How tensor parallelism cuts a weight matrix: by output columns, by input rows, or not at all
/// (every rank holds it and multiplies tokens of its own).
enum class WeightSplit { kColumns, kRows, kNone };

/// A linear layer y[rows, n] = x[rows, k] * W[k, n] on one rank; grouped: the rows are shared out
/// among `gemms` matrices.
struct Linear {
  GemmNames names;
  std::int64_t n = 0, k = 0;
  WeightSplit split = WeightSplit::kColumns;
  std::int64_t rows = 0;
  std::int64_t bias = 0;     ///< bias elements of the whole layer
  std::int64_t sharers = 1;  ///< ranks that hold the same rows and account for the bias together
  std::int64_t gemms = 1;
  bool never_narrow = false;  ///< computes in 16 bits whatever the recipe: a router, the logits
};

/// Where the activation bytes of a memory-bound operator come from: elements moved times their
/// width, plus bytes of dropout masks.
struct Traffic {
  std::int64_t elements = 0;
  std::int64_t mask_bytes = 0;
};

/// A collective of a block.
struct Transfer {
  std::string_view name;
  CollectiveKind kind = CollectiveKind::kAllReduce;
  MeshDimension dimension = MeshDimension::kTp;
  std::int64_t elements = 0;  ///< nccl-tests' size
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
  const Quantisation& quantisation() const { return quantisation_; }
  OperatorGraph& graph() { return graph_; }

  /// Forward operators added from here on are labelled with `pass` (kForward or kRecompute).
  void forward_as(Pass pass) { forward_pass_ = pass; }
  Pass forward_pass() const { return forward_pass_; }

  Vertex then(const Operator& op, Vertex waits_for_too = -1);
  Vertex path() const { return path_; }

  Operator collective(const Transfer& transfer, Pass pass) const;

  // Forward.
  /// All-gather of a tensor of `width` (sequence parallel only).
  void gather(std::int64_t width);
  /// The same of the input of a column-parallel layer, as narrow as the layer reads it.
  void gather_input(const Linear& layer);
  void reduce();  ///< reduce-scatter or all-reduce after a row-parallel GEMM
  void linear(const Linear& layer);
  void elementwise(std::string_view name, Traffic traffic);
  /// Of the hidden state. `added`: the residual add of the same kernel.
  void norm(std::string_view name, bool added);
  /// Of `elements` inside attention.
  void inner_norm(std::string_view name, std::int64_t parameters, std::int64_t elements);

  // Backward. A column-parallel layer gathers its saved input again for the weight gradient and
  // reduces its input gradient; a row-parallel one gathers its output gradient first.
  void linear_gradients(const Linear& layer);
  void gradient(std::string_view name, OperatorKind kind, Traffic traffic, Flops flops = {});
  /// `added`: the gradient of the residual path is added in the same kernel.
  void norm_gradient(std::string_view name, bool added);
  void inner_norm_gradient(std::string_view name, std::int64_t parameters, std::int64_t elements);
  /// Sums the gradients of a tensor of `width` that gather() gathered.
  void scatter_gradient(std::int64_t width);

  /// Bytes kept of the input of a linear layer until its weight gradient.
  std::int64_t kept_input(std::int64_t elements) const {
    return quantisation_.on() ? quantisation_.bytes(elements) : elements * shape_.element;
  }

  /// FLOPs of `parameters` norm parameters on this rank, one pass.
  Flops norm_flops(std::int64_t parameters) const;

 private:
  Operator tensor_collective(CollectiveKind kind, std::int64_t width, Pass pass) const;
  Operator gemm(const Linear& layer, std::string_view name, Pass pass) const;
  Bytes traffic_bytes(Traffic traffic) const;
  bool narrow(const Linear& layer) const { return quantisation_.on() && !layer.never_narrow; }
  Operator operand_gather(const Linear& layer, std::int64_t width, Bytes narrow, Pass pass) const;
  Operator pass_over(std::string_view name, Pass pass, std::int64_t bytes) const;
  /// Makes narrow copies of what lies on the path, `bytes` of them.
  void quantise(std::int64_t elements, std::int64_t bytes, Pass pass);
  /// Where weights come in 16 bits: the copy that one pass reads.
  void quantise_weights(const Linear& layer, Pass pass);
  Operator transpose(std::int64_t elements, Pass pass) const;
  void fetch_output_gradient(const Linear& layer);
  void weight_gradient(const Linear& layer, const std::vector<Vertex>& waits_for);

  ModelConfig model_;
  BlockContext context_;
  BlockShape shape_;
  Quantisation quantisation_;
  OperatorGraph graph_;
  Vertex path_ = -1;
  bool narrow_path_ = false;  ///< what lies on the path has been quantised
  Pass forward_pass_ = Pass::kForward;
};

}  // namespace foretrain
