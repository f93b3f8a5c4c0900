#include "sim/model/dense_block.h"

namespace foretrain {

namespace {

Operator attention_operator(const BlockBuilder& builder, std::string_view name, Pass pass) {
  const BlockShape& shape = builder.shape();
  Operator op;
  op.name = name;
  op.kind = OperatorKind::kAttention;
  op.pass = pass;
  op.m = builder.context().sequence_length;
  op.n = shape.query_width / builder.model().head_dim;
  op.k = builder.model().head_dim;
  return op;
}

/// Queries, keys, values and the output, each moved once.
std::int64_t operands(const BlockShape& shape) {
  return shape.tokens * (2 * shape.query_width + 2 * shape.kv_width);
}

/// Half of the attention: a batched GEMM with an s x s operand.
void half_attention(BlockBuilder& builder,
                    std::string_view name,
                    Pass pass,
                    std::int64_t score_passes,
                    std::int64_t flops) {
  const BlockShape& shape = builder.shape();
  Operator op = attention_operator(builder, name, pass);
  op.flops = Flops{flops};
  op.bytes = Bytes{(score_passes * shape.score_count + operands(shape) / 2) * shape.element};
  builder.then(op);
}

}  // namespace

void attention_forward(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const Pass pass = builder.forward_pass();
  if (shape.flash) {
    Operator op = attention_operator(builder, "attention", pass);
    op.flops = Flops{shape.attention_flops};
    op.bytes = Bytes{operands(shape) * shape.element + 4 * shape.statistics};
    builder.then(op);
    return;
  }
  half_attention(builder, "attention scores", pass, 1, shape.attention_flops / 2);
  // Scale, mask and softmax in one pass or in three; dropout reads and writes once more.
  const std::int64_t passes = (shape.fused ? 2 : 6) + (shape.dropout ? 2 : 0);
  builder.elementwise("softmax",
                      {passes * shape.score_count, shape.dropout ? shape.score_count : 0});
  half_attention(builder, "attention values", pass, 1, shape.attention_flops / 2);
}

void attention_gradients(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  if (shape.flash) {
    Operator op = attention_operator(builder, "attention gradient", Pass::kInputGradient);
    op.flops = Flops{2 * shape.attention_flops};
    // Reads q, k, v, o, do and the statistics; writes dq, dk, dv.
    const std::int64_t moved = 4 * shape.query_width + 4 * shape.kv_width;
    op.bytes = Bytes{shape.tokens * moved * shape.element + 4 * shape.statistics};
    builder.then(op);
    return;
  }
  half_attention(
      builder, "attention values gradient", Pass::kInputGradient, 2, shape.attention_flops);
  const std::int64_t passes = (shape.fused ? 3 : 6) + (shape.dropout ? 2 : 0);
  builder.gradient("softmax gradient",
                   OperatorKind::kElementwise,
                   {passes * shape.score_count, shape.dropout ? shape.score_count : 0});
  half_attention(
      builder, "attention scores gradient", Pass::kInputGradient, 2, shape.attention_flops);
}

}  // namespace foretrain
