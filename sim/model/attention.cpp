#include "sim/model/attention.h"

#include <algorithm>

namespace foretrain {

namespace {

Operator attention_operator(const BlockBuilder& builder,
                            const AttentionKernel& kernel,
                            std::string_view name,
                            Pass pass) {
  Operator op;
  op.name = name;
  op.kind = OperatorKind::kAttention;
  op.pass = pass;
  op.m = kernel.sequence;
  op.n = kernel.heads;
  op.k = builder.shape().qk_dim;
  return op;
}

/// Queries, keys, values and the output, each moved once.
std::int64_t operands(const AttentionKernel& kernel) {
  return kernel.query_elements + kernel.key_value_elements + kernel.output_elements;
}

/// Half of the attention: a batched GEMM with an s x s operand.
void half_attention(BlockBuilder& builder,
                    const AttentionKernel& kernel,
                    std::string_view name,
                    Pass pass,
                    std::int64_t score_passes,
                    std::int64_t flops,
                    BlockBuilder::Vertex arrived) {
  Operator op = attention_operator(builder, kernel, name, pass);
  op.flops = Flops{flops};
  op.bytes = Bytes{(score_passes * kernel.scores + operands(kernel) / 2) * builder.shape().element};
  builder.then(op, arrived);
}

}  // namespace

AttentionKernel::AttentionKernel(const BlockShape& shape)
    : flops(shape.attention_flops),
      sequence(std::min(shape.sequence, shape.document)),
      heads(shape.heads),
      scores(shape.score_count),
      statistics(shape.statistics),
      query_elements(shape.tokens * shape.query_width),
      key_value_elements(shape.tokens * (shape.key_width + shape.value_width)),
      output_elements(shape.tokens * shape.output_width) {}

void attention_kernel(BlockBuilder& builder,
                      const AttentionKernel& kernel,
                      BlockBuilder::Vertex arrived) {
  const BlockShape& shape = builder.shape();
  const Pass pass = builder.forward_pass();
  if (shape.flash) {
    Operator op = attention_operator(builder, kernel, "attention", pass);
    op.flops = Flops{kernel.flops};
    op.bytes = Bytes{operands(kernel) * shape.element + 4 * kernel.statistics};
    builder.then(op, arrived);
    return;
  }
  half_attention(builder, kernel, "attention scores", pass, 1, kernel.flops / 2, arrived);
  // Scale, mask and softmax in one pass or in three; dropout reads and writes once more.
  const std::int64_t passes = (shape.fused ? 2 : 6) + (shape.dropout ? 2 : 0);
  builder.elementwise("softmax", {passes * kernel.scores, shape.dropout ? kernel.scores : 0});
  half_attention(builder, kernel, "attention values", pass, 1, kernel.flops - kernel.flops / 2, -1);
}

void attention_kernel_gradient(BlockBuilder& builder,
                               const AttentionKernel& kernel,
                               BlockBuilder::Vertex arrived) {
  const BlockShape& shape = builder.shape();
  const Pass pass = Pass::kInputGradient;
  if (shape.flash) {
    Operator op = attention_operator(builder, kernel, "attention gradient", pass);
    op.flops = Flops{2 * kernel.flops};
    // Reads q, k, v, o, do and the statistics; writes dq, dk, dv.
    op.bytes = Bytes{2 * operands(kernel) * shape.element + 4 * kernel.statistics};
    builder.then(op, arrived);
    return;
  }
  half_attention(builder, kernel, "attention values gradient", pass, 2, kernel.flops, arrived);
  const std::int64_t passes = (shape.fused ? 3 : 6) + (shape.dropout ? 2 : 0);
  builder.gradient("softmax gradient",
                   OperatorKind::kElementwise,
                   {passes * kernel.scores, shape.dropout ? kernel.scores : 0});
  half_attention(builder, kernel, "attention scores gradient", pass, 2, kernel.flops, -1);
}

}  // namespace foretrain
