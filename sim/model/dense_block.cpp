#include "sim/model/dense_block.h"

#include <algorithm>

namespace foretrain {

namespace {

Linear qkv(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const ModelConfig& model = builder.model();
  const std::int64_t bias =
      model.qkv_bias ? (model.heads + 2 * model.kv_heads) * model.head_dim : 0;
  return {{"qkv", "qkv input gradient", "qkv weight gradient"},
          shape.qkv_width(),
          shape.hidden,
          bias,
          true};
}

Linear output_projection(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  return {
      {"attention output", "attention output input gradient", "attention output weight gradient"},
      shape.hidden,
      shape.query_width,
      builder.model().output_bias ? shape.hidden : 0,
      false};
}

Linear mlp_up(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const ModelConfig& model = builder.model();
  const std::int64_t bias = model.mlp_bias ? (model.gated_mlp ? 2 : 1) * model.ffn : 0;
  return {{"mlp up", "mlp up input gradient", "mlp up weight gradient"},
          shape.up_width,
          shape.hidden,
          bias,
          true};
}

Linear mlp_down(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  return {{"mlp down", "mlp down input gradient", "mlp down weight gradient"},
          shape.hidden,
          shape.ffn,
          builder.model().mlp_bias ? shape.hidden : 0,
          false};
}

/// Query and key elements of all tokens.
std::int64_t query_key(const BlockShape& shape) {
  return shape.tokens * (shape.query_width + shape.kv_width);
}

void rotary(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  if (builder.model().qk_norm) {
    Operator op;
    op.name = "query key norm";
    op.kind = OperatorKind::kNorm;
    op.pass = builder.forward_pass();
    op.flops = builder.norm_flops(2 * builder.model().head_dim);
    op.bytes = Bytes{(shape.fused ? 2 : 5) * query_key(shape) * shape.element};
    builder.then(op);
  }
  // Eager: two products and a sum, each read and written.
  if (shape.rotary)
    builder.elementwise("rotary", {(shape.fused ? 2 : 6) * query_key(shape), 0});
}

void rotary_gradient(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  if (shape.rotary) {
    builder.gradient("rotary gradient",
                     OperatorKind::kElementwise,
                     {(shape.fused ? 2 : 6) * query_key(shape), 0});
  }
  if (builder.model().qk_norm) {
    builder.gradient("query key norm gradient",
                     OperatorKind::kNorm,
                     {(shape.fused ? 3 : 6) * query_key(shape), 0},
                     builder.norm_flops(2 * builder.model().head_dim) * 2);
  }
}

/// Elements moved by the activation function, in units of the local MLP width per token.
void activation(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const bool gated = builder.model().gated_mlp;
  const std::int64_t passes = gated ? (shape.fused ? 3 : 5) : (shape.fused ? 2 : 4);
  builder.elementwise(gated ? "swiglu" : "gelu", {passes * shape.tokens * shape.ffn, 0});
}

void activation_gradient(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const bool gated = builder.model().gated_mlp;
  const std::int64_t passes = gated ? (shape.fused ? 5 : 9) : (shape.fused ? 3 : 4);
  builder.gradient(gated ? "swiglu gradient" : "gelu gradient",
                   OperatorKind::kElementwise,
                   {passes * shape.tokens * shape.ffn, 0});
}

/// Bias, dropout and residual add: one kernel, or one each.
void residual_add(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const std::int64_t passes = shape.fused ? 3 : (shape.dropout ? 7 : 3);
  builder.elementwise("residual add", {passes * shape.split(), shape.dropout ? shape.split() : 0});
}

void dropout_gradient(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  if (shape.dropout) {
    builder.gradient(
        "dropout gradient", OperatorKind::kElementwise, {2 * shape.split(), shape.split()});
  }
}

void mlp_forward(BlockBuilder& builder) {
  builder.gather();
  builder.linear(mlp_up(builder));
  activation(builder);
  builder.linear(mlp_down(builder));
  builder.reduce();
}

void mlp_backward(BlockBuilder& builder, const Recomputation& again) {
  builder.forward_as(Pass::kRecompute);
  if (again.norms)
    builder.norm("norm 2", false);
  if (again.mlp)
    mlp_forward(builder);
  dropout_gradient(builder);
  builder.linear_gradients(mlp_down(builder));
  activation_gradient(builder);
  builder.linear_gradients(mlp_up(builder));
  builder.norm_gradient("norm 2 gradient", true);
}

void attention_backward(BlockBuilder& builder, const Recomputation& again) {
  builder.forward_as(Pass::kRecompute);
  if (again.norms)
    builder.norm("norm 1", false);
  dropout_gradient(builder);
  builder.linear_gradients(output_projection(builder));
  if (again.attention)
    attention_forward(builder);
  attention_gradients(builder);
  rotary_gradient(builder);
  builder.linear_gradients(qkv(builder));
  builder.norm_gradient("norm 1 gradient", true);
}

}  // namespace

Recomputation recomputation(const BlockContext& context) {
  const auto named = [&](const char* name) {
    const auto& modules = context.recompute_modules;
    return context.recompute == RecomputeMode::kModules &&
           std::find(modules.begin(), modules.end(), name) != modules.end();
  };
  Recomputation again;
  again.block = context.recompute == RecomputeMode::kFull;
  again.attention = context.recompute == RecomputeMode::kSelective || named("core_attn");
  again.norms = named("layernorm");
  again.mlp = named("mlp");
  return again;
}

void dense_forward(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  builder.norm("norm 1", false);
  builder.gather();
  builder.linear(qkv(builder));
  rotary(builder);
  attention_forward(builder);
  builder.linear(output_projection(builder));
  builder.reduce();
  if (!shape.fused)
    residual_add(builder);
  builder.norm("norm 2", shape.fused);
  mlp_forward(builder);
  residual_add(builder);
}

void dense_backward(BlockBuilder& builder) {
  const Recomputation again = recomputation(builder.context());
  if (again.block) {
    builder.forward_as(Pass::kRecompute);
    dense_forward(builder);
  }
  mlp_backward(builder, again);
  attention_backward(builder, again);
}

}  // namespace foretrain
