#include "sim/model/block_builder.h"

namespace foretrain {

BlockBuilder::BlockBuilder(const ModelConfig& model, const BlockContext& context)
    : model_(model), context_(context), shape_(model, context) {}

BlockBuilder::Vertex BlockBuilder::then(const Operator& op) {
  path_ = graph_.add(op, {path_});
  return path_;
}

Operator BlockBuilder::collective(std::string_view name, CollectiveKind kind, Pass pass) const {
  Operator op;
  op.name = name;
  op.kind = OperatorKind::kCollective;
  op.pass = pass;
  op.collective = kind;
  op.dimension = MeshDimension::kTp;
  op.payload = Bytes{shape_.full() * shape_.element};
  return op;
}

Operator BlockBuilder::gemm(
    std::string_view name, Pass pass, std::int64_t m, std::int64_t n, std::int64_t k) const {
  Operator op;
  op.name = name;
  op.kind = OperatorKind::kGemm;
  op.pass = pass;
  op.flops = Flops{2 * m * n * k};
  op.bytes = Bytes{(m * k + k * n + m * n) * shape_.element};
  op.m = m;
  op.n = n;
  op.k = k;
  return op;
}

Bytes BlockBuilder::traffic_bytes(Traffic traffic) const {
  return Bytes{traffic.elements * shape_.element + traffic.mask_bytes};
}

Flops BlockBuilder::norm_flops(std::int64_t parameters) const {
  return Flops{2 * parameters * shape_.tokens / shape_.tp};
}

void BlockBuilder::gather() {
  if (shape_.sequence_parallel)
    then(collective("tp all-gather", CollectiveKind::kAllGather, forward_pass_));
}

void BlockBuilder::reduce() {
  if (shape_.tp == 1)
    return;
  if (shape_.sequence_parallel)
    then(collective("tp reduce-scatter", CollectiveKind::kReduceScatter, forward_pass_));
  else
    then(collective("tp all-reduce", CollectiveKind::kAllReduce, forward_pass_));
}

void BlockBuilder::linear(const Linear& layer) {
  Operator op = gemm(layer.names.forward, forward_pass_, shape_.tokens, layer.n, layer.k);
  op.flops += norm_flops(layer.bias);
  then(op);
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

void BlockBuilder::weight_gradient(const Linear& layer, const std::vector<Vertex>& waits_for) {
  // dW[k, n] = x^T[k, tokens] * dy[tokens, n].
  Operator op =
      gemm(layer.names.weight_gradient, Pass::kWeightGradient, layer.k, layer.n, shape_.tokens);
  op.flops += norm_flops(layer.bias);
  const std::int64_t weights = layer.k * layer.n;
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
  const bool split = shape_.sequence_parallel;
  if (split && !layer.column_parallel)
    then(collective("tp all-gather", CollectiveKind::kAllGather, Pass::kInputGradient));
  const Vertex output_gradient = path_;
  Vertex saved_input = -1;
  if (split && layer.column_parallel && !context_.textbook) {
    saved_input =
        graph_.add(collective("tp all-gather", CollectiveKind::kAllGather, Pass::kWeightGradient),
                   {output_gradient});
  }
  // dx[tokens, k] = dy[tokens, n] * W^T[n, k].
  Operator op =
      gemm(layer.names.input_gradient, Pass::kInputGradient, shape_.tokens, layer.k, layer.n);
  op.flops += norm_flops(layer.bias);
  const Vertex input_gradient = then(op);
  if (shape_.tp > 1 && layer.column_parallel) {
    then(split
             ? collective("tp reduce-scatter", CollectiveKind::kReduceScatter, Pass::kInputGradient)
             : collective("tp all-reduce", CollectiveKind::kAllReduce, Pass::kInputGradient));
  }
  const Vertex before = context_.textbook ? path_ : input_gradient;
  weight_gradient(layer, {output_gradient, saved_input, before});
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

}  // namespace foretrain
