#include "sim/model/block_builder.h"

#include "sim/model/parameters.h"

namespace foretrain {

namespace {

/// Two narrow operands and a wide result.
Bytes narrow_gemm_bytes(const Linear& layer,
                        const Quantisation& quantisation,
                        Pass pass,
                        std::int64_t wide) {
  const std::int64_t input = layer.rows * layer.k;
  const std::int64_t output = layer.rows * layer.n;
  const std::int64_t weights = layer.gemms * layer.k * layer.n;
  const auto read = [&](std::int64_t a, std::int64_t b) {
    return quantisation.bytes(a) + quantisation.bytes(b);
  };
  if (pass == Pass::kInputGradient)
    return Bytes{read(output, weights) + input * wide};
  if (pass == Pass::kWeightGradient)
    return Bytes{read(input, output) + weights * wide};
  return Bytes{read(input, weights) + output * wide};
}

}  // namespace

BlockBuilder::BlockBuilder(const ModelConfig& model, const BlockContext& context)
    : model_(model), context_(context), shape_(model, context), quantisation_(context) {}

BlockBuilder::Vertex BlockBuilder::then(const Operator& op, Vertex waits_for_too) {
  path_ = graph_.add(op, {path_, waits_for_too});
  narrow_path_ = false;
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
  op.precision = quantisation_.on() ? context_.precision.attention : context_.precision.compute;
  if (narrow(layer)) {
    op.precision = context_.precision.compute;
    op.bytes = narrow_gemm_bytes(layer, quantisation_, pass, shape_.element);
  }
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

void BlockBuilder::gather_input(const Linear& layer) {
  if (!shape_.sequence_parallel)
    return;
  const std::int64_t split = shape_.split_tokens * layer.k;
  if (narrow(layer))
    quantise(split, quantisation_.gathered_bytes(split), forward_pass_);
  const std::int64_t whole = shape_.tokens * layer.k;
  then(operand_gather(layer, layer.k, Bytes{quantisation_.bytes(whole)}, forward_pass_));
  narrow_path_ = narrow(layer);
}

Operator BlockBuilder::operand_gather(const Linear& layer,
                                      std::int64_t width,
                                      Bytes narrow_payload,
                                      Pass pass) const {
  Operator op = tensor_collective(CollectiveKind::kAllGather, width, pass);
  if (narrow(layer))
    op.payload = narrow_payload;
  return op;
}

Operator BlockBuilder::pass_over(std::string_view name, Pass pass, std::int64_t bytes) const {
  Operator op;
  op.name = name;
  op.kind = OperatorKind::kElementwise;
  op.pass = pass;
  op.bytes = Bytes{bytes};
  return op;
}

void BlockBuilder::quantise(std::int64_t elements, std::int64_t bytes, Pass pass) {
  const std::int64_t wide = elements * shape_.element;
  const bool after_norm = shape_.fused && path_ >= 0 &&
                          graph_.at(path_).kind == OperatorKind::kNorm && pass == forward_pass_;
  if (after_norm && quantisation_.inside_norm()) {
    graph_.at(path_).bytes += Bytes{bytes - wide};  // the copies are written instead
    return;
  }
  if (quantisation_.scans() && !(after_norm && quantisation_.norm_scans()))
    then(pass_over("largest value", pass, wide));
  then(pass_over("quantise", pass, wide + bytes));
}

void BlockBuilder::quantise_weights(const Linear& layer, Pass pass) {
  if (!narrow(layer) || !context_.weights_arrive_wide)
    return;
  const std::int64_t weights = layer.gemms * layer.k * layer.n;
  const std::int64_t read = (quantisation_.scans() ? 2 : 1) * weights * shape_.element;
  then(pass_over("quantise weights", pass, read + quantisation_.bytes(weights)));
}

Operator BlockBuilder::transpose(std::int64_t elements, Pass pass) const {
  return pass_over("transpose", pass, 2 * quantisation_.bytes(elements));
}

void BlockBuilder::reduce() {
  if (shape_.tp == 1)
    return;
  const CollectiveKind kind =
      shape_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  then(tensor_collective(kind, shape_.hidden, forward_pass_));
}

void BlockBuilder::linear(const Linear& layer) {
  if (narrow(layer) && !narrow_path_) {
    const std::int64_t elements = layer.rows * layer.k;
    quantise(elements, quantisation_.copied_bytes(elements), forward_pass_);
  }
  quantise_weights(layer, forward_pass_);
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

/// Brings the output gradient to the layer's GEMMs: quantised, and gathered for a row-parallel one.
void BlockBuilder::fetch_output_gradient(const Linear& layer) {
  const bool gathered = shape_.sequence_parallel && layer.split == WeightSplit::kRows;
  const Pass pass = Pass::kInputGradient;
  if (!gathered) {
    const std::int64_t elements = layer.rows * layer.n;
    if (narrow(layer))
      quantise(elements, quantisation_.copied_bytes(elements), pass);
    return;
  }
  const std::int64_t split = shape_.split_tokens * layer.n;
  if (narrow(layer))
    quantise(split, quantisation_.gathered_bytes(split), pass);
  const std::int64_t whole = shape_.tokens * layer.n;
  then(operand_gather(layer, layer.n, Bytes{quantisation_.gathered_bytes(whole)}, pass));
  if (narrow(layer) && quantisation_.transposes())
    then(transpose(whole, pass));
}

void BlockBuilder::linear_gradients(const Linear& layer) {
  const bool columns = layer.split == WeightSplit::kColumns;
  fetch_output_gradient(layer);
  const Vertex output_gradient = path_;
  Vertex saved_input = -1;
  const std::int64_t input = shape_.tokens * layer.k;
  if (shape_.sequence_parallel && columns && !context_.textbook) {
    saved_input = graph_.add(
        operand_gather(layer, layer.k, Bytes{quantisation_.bytes(input)}, Pass::kWeightGradient),
        {output_gradient});
  }
  quantise_weights(layer, Pass::kInputGradient);
  const Vertex input_gradient = then(gemm(layer, layer.names.input_gradient, Pass::kInputGradient));
  if (columns)
    scatter_gradient(layer.k);
  const Vertex before = context_.textbook ? path_ : input_gradient;
  if (saved_input >= 0 && narrow(layer) && quantisation_.transposes())
    saved_input = graph_.add(transpose(input, Pass::kWeightGradient), {saved_input, before});
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
