#include "sim/model/mlp.h"

#include "sim/model/parameters.h"

namespace foretrain {

namespace {

constexpr MlpNames kDenseNames{{"mlp up", "mlp up input gradient", "mlp up weight gradient"},
                               {"mlp down", "mlp down input gradient", "mlp down weight gradient"},
                               "swiglu",
                               "swiglu gradient",
                               "gelu",
                               "gelu gradient",
                               "gate output",
                               "up output",
                               "silu output",
                               "activation output"};

/// Reads gate and up, writes their product; eager code writes and reads what lies between.
void activation(BlockBuilder& builder, const Mlp& mlp) {
  const bool fused = builder.shape().fused;
  const bool gated = builder.model().gated_mlp;
  std::int64_t passes = gated ? (fused ? 3 : 5) : (fused ? 2 : 4);
  if (mlp.weighted && !fused)
    passes += 2;
  builder.elementwise(gated ? mlp.names->swiglu : mlp.names->gelu, {passes * mlp.width, 0});
}

void activation_gradient(BlockBuilder& builder, const Mlp& mlp) {
  const bool fused = builder.shape().fused;
  const bool gated = builder.model().gated_mlp;
  std::int64_t passes = gated ? (fused ? 5 : 9) : (fused ? 3 : 4);
  if (mlp.weighted && !fused)
    passes += 3;
  builder.gradient(gated ? mlp.names->swiglu_gradient : mlp.names->gelu_gradient,
                   OperatorKind::kElementwise,
                   {passes * mlp.width, 0});
}

}  // namespace

Mlp split_mlp(const BlockBuilder& builder, const MlpNames& names, std::int64_t width) {
  const BlockShape& shape = builder.shape();
  const ModelConfig& model = builder.model();
  const std::int64_t local = ceil_div(width, shape.tp);
  const std::int64_t factor = model.gated_mlp ? 2 : 1;
  Mlp mlp;
  mlp.names = &names;
  mlp.width = shape.tokens * local;
  mlp.up.names = names.up;
  mlp.up.n = factor * local;
  mlp.up.k = shape.hidden;
  mlp.up.rows = shape.tokens;
  mlp.up.bias = model.mlp_bias ? factor * width : 0;
  mlp.up.sharers = shape.tp;
  mlp.down = mlp.up;
  mlp.down.names = names.down;
  mlp.down.n = shape.hidden;
  mlp.down.k = local;
  mlp.down.split = WeightSplit::kRows;
  mlp.down.bias = model.mlp_bias ? shape.hidden : 0;
  return mlp;
}

Mlp dense_mlp(const BlockBuilder& builder) {
  return split_mlp(builder, kDenseNames, builder.model().ffn);
}

void mlp_forward(BlockBuilder& builder, const Mlp& mlp) {
  if (mlp.up.split == WeightSplit::kColumns)
    builder.gather_input(mlp.up);
  builder.linear(mlp.up);
  activation(builder, mlp);
  builder.linear(mlp.down);
  if (mlp.down.split == WeightSplit::kRows)
    builder.reduce();
}

void mlp_gradients(BlockBuilder& builder, const Mlp& mlp, bool activation_again) {
  if (activation_again)
    activation(builder, mlp);
  builder.linear_gradients(mlp.down);
  activation_gradient(builder, mlp);
  builder.linear_gradients(mlp.up);
}

void mlp_stash(const BlockBuilder& builder,
               const Mlp& mlp,
               bool activation_again,
               StashList& stash) {
  const std::int64_t bytes = mlp.width * builder.shape().element;
  if (builder.model().gated_mlp) {
    stash.add(mlp.names->gate_output, bytes);
    stash.add(mlp.names->up_output, bytes);
    if (!builder.shape().fused)
      stash.add(mlp.names->silu_output, bytes);
  } else {
    stash.add(mlp.names->up_output, bytes);
  }
  if (!activation_again)
    stash.add(mlp.names->activation_output, builder.kept_input(mlp.width));
}

}  // namespace foretrain
