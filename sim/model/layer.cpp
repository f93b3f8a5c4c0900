#include "sim/model/layer.h"

#include "sim/model/attention.h"
#include "sim/model/experts.h"
#include "sim/model/mlp.h"

#include <algorithm>

namespace foretrain {

namespace {

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

void layer_forward(BlockBuilder& builder, bool experts) {
  const bool fused = builder.shape().fused;
  builder.norm("norm 1", false);
  attention_forward(builder);
  if (!fused)
    residual_add(builder);
  builder.norm("norm 2", fused);
  if (experts)
    moe_forward(builder);
  else
    mlp_forward(builder, dense_mlp(builder));
  residual_add(builder);
}

void mlp_backward(BlockBuilder& builder, bool experts, const Recomputation& again) {
  if (again.norms)
    builder.norm("norm 2", false);
  if (again.mlp && !experts)
    mlp_forward(builder, dense_mlp(builder));
  dropout_gradient(builder);
  if (experts)
    moe_gradients(builder, again);
  else
    mlp_gradients(builder, dense_mlp(builder), false);
  builder.norm_gradient("norm 2 gradient", true);
}

void layer_backward(BlockBuilder& builder, bool experts) {
  const Recomputation again = recomputation(builder.context());
  builder.forward_as(Pass::kRecompute);
  if (again.block)
    layer_forward(builder, experts);
  mlp_backward(builder, experts, again);
  if (again.norms)
    builder.norm("norm 1", false);
  dropout_gradient(builder);
  attention_gradients(builder, again);
  builder.norm_gradient("norm 1 gradient", true);
}

std::vector<Stash> layer_stash(const BlockBuilder& builder, bool experts) {
  const BlockShape& shape = builder.shape();
  const Recomputation again = recomputation(builder.context());
  const std::int64_t hidden_state = shape.split() * shape.element;
  const std::int64_t mask = shape.dropout ? shape.split() : 0;
  StashList stash;
  if (again.block) {
    stash.add("block input", hidden_state);
    return stash.take();
  }
  stash.add("norm 1 input", hidden_state);
  stash.add("qkv input", again.norms ? 0 : builder.kept_input(shape.split()));
  attention_stash(builder, again, stash);
  stash.add("attention dropout mask", mask);
  stash.add("norm 2 input", hidden_state);
  // The router reads the hidden state in 16 bits.
  const std::int64_t mlp_input = experts ? hidden_state : builder.kept_input(shape.split());
  stash.add(experts ? "experts input" : "mlp input", again.norms ? 0 : mlp_input);
  if (experts)
    moe_stash(builder, again, stash);
  else if (!again.mlp)
    mlp_stash(builder, dense_mlp(builder), false, stash);
  stash.add("mlp dropout mask", mask);
  return stash.take();
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
  again.moe = named("moe");
  again.moe_activation = named("moe_act");
  again.shared_experts = named("shared_experts");
  again.latent_up = named("mla_up_proj");
  return again;
}

void dense_forward(BlockBuilder& builder) {
  layer_forward(builder, false);
}

void dense_backward(BlockBuilder& builder) {
  layer_backward(builder, false);
}

std::vector<Stash> dense_stash(const BlockBuilder& builder) {
  return layer_stash(builder, false);
}

void moe_layer_forward(BlockBuilder& builder) {
  layer_forward(builder, true);
}

void moe_layer_backward(BlockBuilder& builder) {
  layer_backward(builder, true);
}

std::vector<Stash> moe_layer_stash(const BlockBuilder& builder) {
  return layer_stash(builder, true);
}

}  // namespace foretrain
