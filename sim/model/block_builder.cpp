#include "sim/model/block_builder.h"

#include "sim/model/parameters.h"

namespace foretrain {

BlockBuilder::BlockBuilder(const ModelConfig& model, const BlockContext& context)
    : model_(model), context_(context), shape_(model, context) {}

BlockBuilder::Vertex BlockBuilder::then(const Operator& op, Vertex waits_for_too) {
  path_ = graph_.add(op, {path_, waits_for_too});
  return path_;
}

Operator BlockBuilder::collective(const Transfer& transfer, Pass pass) const {
  Operator op;
  op.name = transfer.name;
  op.kind = OperatorKind::kCollective;
  op.pass = pass;
  op.collective = transfer.kind;
  op.dimension = transfer.dimension;
  op.payload = Bytes{transfer.elements * shape_.element};
  return op;
}

Operator BlockBuilder::tensor_collective(CollectiveKind kind, std::int64_t width, Pass pass) const {
  const std::string_view name = kind == CollectiveKind::kAllGather       ? "tp all-gather"
                                : kind == CollectiveKind::kReduceScatter ? "tp reduce-scatter"
                                                                         : "tp all-reduce";
  return collective({name, kind, MeshDimension::kTp, shape_.tokens * width}, pass);
}

Operator BlockBuilder::gemm(const Linear& layer, std::string_view name, Pass pass) const {
  const std::int64_t rows = ceil_div(layer.rows, layer.gemms);
  Operator op;
  op.name = name;
  op.kind = OperatorKind::kGemm;
  op.pass = pass;
  op.flops =
      Flops{2 * layer.rows * layer.n * layer.k + 2 * layer.bias * layer.rows / layer.sharers};
  op.bytes =
      Bytes{(layer.rows * (layer.k + layer.n) + layer.gemms * layer.k * layer.n) * shape_.element};
  op.gemms = layer.gemms;
  if (pass == Pass::kInputGradient) {  // dx[rows, k] = dy[rows, n] * W^T[n, k]
    op.m = rows, op.n = layer.k, op.k = layer.n;
  } else if (pass == Pass::kWeightGradient) {  // dW[k, n] = x^T[k, rows] * dy[rows, n]
    op.m = layer.k, op.n = layer.n, op.k = rows;
  } else {
    op.m = rows, op.n = layer.n, op.k = layer.k;
  }
  return op;
}

Bytes BlockBuilder::traffic_bytes(Traffic traffic) const {
  return Bytes{traffic.elements * shape_.element + traffic.mask_bytes};
}

Flops BlockBuilder::norm_flops(std::int64_t parameters) const {
  return Flops{2 * parameters * shape_.tokens / shape_.tp};
}

void BlockBuilder::gather(std::int64_t width) {
  if (shape_.sequence_parallel)
    then(tensor_collective(CollectiveKind::kAllGather, width, forward_pass_));
}

void BlockBuilder::reduce() {
  if (shape_.tp == 1)
    return;
  const CollectiveKind kind =
      shape_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  then(tensor_collective(kind, shape_.hidden, forward_pass_));
}

void BlockBuilder::linear(const Linear& layer) {
  then(gemm(layer, layer.names.forward, forward_pass_));
}

void BlockBuilder::elementwise(std::string_view name, Traffic traffic) {
  Operator op;
  op.name = name;
  op.kind = OperatorKind::kElementwise;
  op.pass = forward_pass_;
  op.bytes = traffic_bytes(traffic);
  then(op);
}

void BlockBuilder::norm(std::string_view name, bool added) {
  Operator op;
  op.name = name;
  op.kind = OperatorKind::kNorm;
  op.pass = forward_pass_;
  op.flops = norm_flops((model_.layer_norm ? 2 : 1) * shape_.hidden);
  // Fused: read and write once (with the residual add: two in, two out). Eager: one pass for the
  // statistics, one to normalise, one to scale.
  Traffic traffic;
  traffic.elements = (shape_.fused ? (added ? 4 : 2) : 5) * shape_.split();
  if (added && shape_.dropout)
    traffic.mask_bytes = shape_.split();
  op.bytes = traffic_bytes(traffic);
  then(op);
}

void BlockBuilder::inner_norm(std::string_view name,
                              std::int64_t parameters,
                              std::int64_t elements) {
  Operator op;
  op.name = name;
  op.kind = OperatorKind::kNorm;
  op.pass = forward_pass_;
  op.flops = norm_flops(parameters);
  op.bytes = traffic_bytes({(shape_.fused ? 2 : 5) * elements, 0});
  then(op);
}

void BlockBuilder::weight_gradient(const Linear& layer, const std::vector<Vertex>& waits_for) {
  Operator op = gemm(layer, layer.names.weight_gradient, Pass::kWeightGradient);
  const std::int64_t weights = layer.gemms * layer.k * layer.n;
  if (context_.fused_gradient_accumulation)
    op.bytes += Bytes{weights * (2 * context_.grad_element_bytes - shape_.element)};
  const Vertex vertex = graph_.add(op, waits_for);
  if (context_.fused_gradient_accumulation)
    return;
  Operator add;
  add.name = "gradient accumulation";
  add.kind = OperatorKind::kElementwise;
  add.pass = Pass::kWeightGradient;
  add.bytes = Bytes{weights * (shape_.element + 2 * context_.grad_element_bytes)};
  graph_.add(add, {vertex});
}

void BlockBuilder::linear_gradients(const Linear& layer) {
  const bool columns = layer.split == WeightSplit::kColumns;
  if (shape_.sequence_parallel && layer.split == WeightSplit::kRows)
    then(tensor_collective(CollectiveKind::kAllGather, layer.n, Pass::kInputGradient));
  const Vertex output_gradient = path_;
  Vertex saved_input = -1;
  if (shape_.sequence_parallel && columns && !context_.textbook) {
    saved_input =
        graph_.add(tensor_collective(CollectiveKind::kAllGather, layer.k, Pass::kWeightGradient),
                   {output_gradient});
  }
  const Vertex input_gradient = then(gemm(layer, layer.names.input_gradient, Pass::kInputGradient));
  if (columns)
    scatter_gradient(layer.k);
  const Vertex before = context_.textbook ? path_ : input_gradient;
  weight_gradient(layer, {output_gradient, saved_input, before});
}

void BlockBuilder::scatter_gradient(std::int64_t width) {
  if (shape_.tp == 1)
    return;
  const CollectiveKind kind =
      shape_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  then(tensor_collective(kind, width, Pass::kInputGradient));
}

void BlockBuilder::gradient(std::string_view name,
                            OperatorKind kind,
                            Traffic traffic,
                            Flops flops) {
  Operator op;
  op.name = name;
  op.kind = kind;
  op.pass = Pass::kInputGradient;
  op.flops = flops;
  op.bytes = traffic_bytes(traffic);
  then(op);
}

void BlockBuilder::norm_gradient(std::string_view name, bool added) {
  const std::int64_t parameters = (model_.layer_norm ? 2 : 1) * shape_.hidden;
  const Flops one_pass = norm_flops(parameters);
  // Fused: read dy and x, write dx (and read the residual gradient). Eager: the statistics once
  // more, two passes of products.
  Traffic traffic;
  traffic.elements = (shape_.fused ? (added ? 4 : 3) : 6) * shape_.split();
  // Input and parameter gradients are one kernel: both passes' FLOPs are here.
  gradient(name, OperatorKind::kNorm, traffic, one_pass * 2);
  if (added && !shape_.fused)
    gradient("residual gradient", OperatorKind::kElementwise, {3 * shape_.split(), 0});
}

void BlockBuilder::inner_norm_gradient(std::string_view name,
                                       std::int64_t parameters,
                                       std::int64_t elements) {
  gradient(name,
           OperatorKind::kNorm,
           {(shape_.fused ? 3 : 6) * elements, 0},
           norm_flops(parameters) * 2);
}

}  // namespace foretrain
