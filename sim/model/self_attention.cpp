#include "sim/model/attention.h"
#include "sim/model/parameters.h"

namespace foretrain {

namespace {

Linear qkv(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const ModelConfig& model = builder.model();
  Linear layer;
  layer.names = {"qkv", "qkv input gradient", "qkv weight gradient"};
  layer.n = shape.qkv_width();
  layer.k = shape.hidden;
  layer.rows = shape.tokens;
  layer.bias = model.qkv_bias ? (model.heads + 2 * model.kv_heads) * model.head_dim : 0;
  layer.sharers = shape.tp;
  return layer;
}

Linear output_projection(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  Linear layer;
  layer.names = {
      "attention output", "attention output input gradient", "attention output weight gradient"};
  layer.n = shape.hidden;
  layer.k = shape.output_width;
  layer.split = WeightSplit::kRows;
  layer.rows = shape.tokens;
  layer.bias = builder.model().output_bias ? shape.hidden : 0;
  layer.sharers = shape.tp;
  return layer;
}

/// Query and key elements of all tokens.
std::int64_t query_key(const BlockShape& shape) {
  return shape.tokens * (shape.query_width + shape.key_width);
}

void projections(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  builder.gather_input(qkv(builder));
  builder.linear(qkv(builder));
  if (builder.model().qk_norm)
    builder.inner_norm("query key norm", 2 * builder.model().head_dim, query_key(shape));
  // Eager: two products and a sum, each read and written.
  if (shape.rotary)
    builder.elementwise("rotary", {(shape.fused ? 2 : 6) * query_key(shape), 0});
}

void projection_gradients(BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  if (shape.rotary) {
    builder.gradient("rotary gradient",
                     OperatorKind::kElementwise,
                     {(shape.fused ? 2 : 6) * query_key(shape), 0});
  }
  if (builder.model().qk_norm) {
    builder.inner_norm_gradient(
        "query key norm gradient", 2 * builder.model().head_dim, query_key(shape));
  }
  builder.linear_gradients(qkv(builder));
}

}  // namespace

void attention_forward(BlockBuilder& builder) {
  if (is_mla(builder.model())) {
    latent_down(builder);
    latent_up(builder);
  } else {
    projections(builder);
  }
  core_attention(builder);
  builder.linear(output_projection(builder));
  builder.reduce();
}

void attention_gradients(BlockBuilder& builder, const Recomputation& again) {
  const bool latent = is_mla(builder.model());
  builder.linear_gradients(output_projection(builder));
  if (latent && again.latent_up)
    latent_up(builder);
  if (again.attention)
    core_attention(builder);
  core_attention_gradients(builder);
  if (latent)
    latent_gradients(builder);
  else
    projection_gradients(builder);
}

void attention_stash(const BlockBuilder& builder, const Recomputation& again, StashList& stash) {
  const bool latent = is_mla(builder.model());
  if (latent)
    latent_stash(builder, again, stash);
  core_attention_stash(builder, latent && again.latent_up, again.attention, stash);
  if (builder.model().qk_norm)
    stash.add("query key norm input", query_key(builder.shape()) * builder.shape().element);
}

}  // namespace foretrain
