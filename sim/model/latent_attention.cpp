#include "sim/model/attention.h"

// Multi-latent attention (DeepSeek-V2 report, section 2.1) as Megatron-Core runs it: the down
// projections are not split over tp but multiply the rank's own tokens, latents are gathered for
// the up projections.
namespace foretrain {

namespace {

Linear down(const BlockBuilder& builder, const GemmNames& names, std::int64_t width) {
  Linear layer;
  layer.names = names;
  layer.n = width;
  layer.k = builder.shape().hidden;
  layer.split = WeightSplit::kNone;
  layer.rows = builder.shape().split_tokens;
  return layer;
}

Linear query_down(const BlockBuilder& builder) {
  return down(builder,
              {"query down", "query down input gradient", "query down weight gradient"},
              builder.model().q_lora_rank);
}

Linear key_value_down(const BlockBuilder& builder) {
  return down(builder,
              {"key value down", "key value down input gradient", "key value down weight gradient"},
              builder.model().kv_lora_rank + builder.model().qk_rope_dim);
}

Linear up(const BlockBuilder& builder, const GemmNames& names, std::int64_t n, std::int64_t k) {
  Linear layer;
  layer.names = names;
  layer.n = n;
  layer.k = k;
  layer.rows = builder.shape().tokens;
  layer.sharers = builder.shape().tp;
  return layer;
}

/// From the query latent, or from the hidden state where queries have none.
Linear query_up(const BlockBuilder& builder) {
  const std::int64_t rank = builder.model().q_lora_rank;
  return up(builder,
            {"query up", "query up input gradient", "query up weight gradient"},
            builder.shape().query_width,
            rank > 0 ? rank : builder.shape().hidden);
}

Linear key_value_up(const BlockBuilder& builder) {
  const ModelConfig& model = builder.model();
  return up(builder,
            {"key value up", "key value up input gradient", "key value up weight gradient"},
            builder.shape().heads * (model.qk_nope_dim + model.v_head_dim),
            model.kv_lora_rank);
}

/// Rotates the position part of queries and of the one key that all heads share, and puts keys and
/// values together. Eager: rotations in six passes, then a copy of each of q, k and v.
std::int64_t rotary_elements(const BlockBuilder& builder) {
  const BlockShape& shape = builder.shape();
  const std::int64_t rope = builder.model().qk_rope_dim;
  const std::int64_t rotated = shape.heads * rope + rope;
  const std::int64_t moved = shape.fused ? 2 * shape.heads * rope + rope + key_value_up(builder).n +
                                               shape.key_width + shape.value_width
                                         : 6 * rotated + 2 * shape.qkv_width();
  return shape.tokens * moved;
}

}  // namespace

void latent_down(BlockBuilder& builder) {
  if (builder.model().q_lora_rank > 0)
    builder.linear(query_down(builder));
  builder.linear(key_value_down(builder));
  builder.gather(builder.model().qk_rope_dim);
}

void latent_up(BlockBuilder& builder) {
  const ModelConfig& model = builder.model();
  const std::int64_t tokens = builder.shape().split_tokens;
  if (model.q_lora_rank > 0)
    builder.inner_norm("query norm", model.q_lora_rank, tokens * model.q_lora_rank);
  builder.gather_input(query_up(builder));
  builder.linear(query_up(builder));
  builder.inner_norm("key value norm", model.kv_lora_rank, tokens * model.kv_lora_rank);
  builder.gather_input(key_value_up(builder));
  builder.linear(key_value_up(builder));
  builder.elementwise("rotary", {rotary_elements(builder), 0});
}

void latent_gradients(BlockBuilder& builder) {
  const ModelConfig& model = builder.model();
  const BlockShape& shape = builder.shape();
  builder.gradient("rotary gradient", OperatorKind::kElementwise, {rotary_elements(builder), 0});
  builder.linear_gradients(key_value_up(builder));
  builder.inner_norm_gradient(
      "key value norm gradient", model.kv_lora_rank, shape.split_tokens * model.kv_lora_rank);
  builder.linear_gradients(query_up(builder));
  if (model.q_lora_rank > 0) {
    builder.inner_norm_gradient(
        "query norm gradient", model.q_lora_rank, shape.split_tokens * model.q_lora_rank);
  }
  builder.scatter_gradient(model.qk_rope_dim);
  builder.linear_gradients(key_value_down(builder));
  if (model.q_lora_rank > 0)
    builder.linear_gradients(query_down(builder));
  builder.gradient("latent gradient sum", OperatorKind::kElementwise, {3 * shape.split(), 0});
}

void latent_stash(const BlockBuilder& builder, const Recomputation& again, StashList& stash) {
  const ModelConfig& model = builder.model();
  const BlockShape& shape = builder.shape();
  const std::int64_t query = shape.split_tokens * model.q_lora_rank * shape.element;
  const std::int64_t key_value = shape.split_tokens * model.kv_lora_rank * shape.element;
  stash.add("query latent", query);
  stash.add("key value latent", key_value);
  if (again.latent_up) {
    stash.add("rotary key", shape.tokens * model.qk_rope_dim * shape.element);
  } else {
    stash.add("query norm output", builder.kept_input(shape.split_tokens * model.q_lora_rank));
    stash.add("key value norm output", builder.kept_input(shape.split_tokens * model.kv_lora_rank));
  }
}

}  // namespace foretrain
