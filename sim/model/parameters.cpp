#include "sim/model/parameters.h"

#include "foretrain/model.h"

namespace foretrain {

namespace {

std::int64_t mla_parameters(const ModelConfig& model, std::int64_t tp) {
  const std::int64_t heads = ceil_div(model.heads, tp);
  const std::int64_t query_dim = model.qk_nope_dim + model.qk_rope_dim;
  // Down projections and their norms are replicated; up projections are split by heads.
  const std::int64_t query = model.q_lora_rank > 0
                                 ? model.hidden * model.q_lora_rank + model.q_lora_rank +
                                       model.q_lora_rank * heads * query_dim
                                 : model.hidden * heads * query_dim;
  const std::int64_t key_value =
      model.hidden * (model.kv_lora_rank + model.qk_rope_dim) + model.kv_lora_rank +
      model.kv_lora_rank * heads * (model.qk_nope_dim + model.v_head_dim);
  return query + key_value + heads * model.v_head_dim * model.hidden;
}

std::int64_t layer_parameters(const ModelConfig& model, BlockKind kind, std::int64_t tp) {
  const std::int64_t around = attention_parameters(model, tp) + 2 * norm_parameters(model);
  if (kind == BlockKind::kDense)
    return around + mlp_parameters(model, model.ffn, tp);
  return around + moe_parameters(model, model.experts, tp);
}

}  // namespace

std::int64_t norm_parameters(const ModelConfig& model) {
  return (model.layer_norm ? 2 : 1) * model.hidden;
}

std::int64_t attention_parameters(const ModelConfig& model, std::int64_t tp) {
  if (is_mla(model))
    return mla_parameters(model, tp);
  const std::int64_t heads = ceil_div(model.heads, tp);
  const std::int64_t qkv_width = (heads + 2 * local_kv_heads(model, tp)) * model.head_dim;
  std::int64_t count = model.hidden * qkv_width + heads * model.head_dim * model.hidden;
  if (model.qkv_bias)
    count += qkv_width;
  if (model.output_bias)
    count += model.hidden;
  if (model.qk_norm)
    count += 2 * model.head_dim;
  return count;
}

std::int64_t mlp_parameters(const ModelConfig& model, std::int64_t ffn, std::int64_t tp) {
  const std::int64_t width = ceil_div(ffn, tp);
  const std::int64_t up = model.gated_mlp ? 2 * width : width;
  const std::int64_t matrices = up * model.hidden + width * model.hidden;
  return model.mlp_bias ? matrices + up + model.hidden : matrices;
}

std::int64_t router_parameters(const ModelConfig& model) {
  return model.hidden * model.experts + (model.router_bias ? model.experts : 0);
}

std::int64_t moe_parameters(const ModelConfig& model, std::int64_t routed, std::int64_t tp) {
  const std::int64_t shared =
      model.shared_ffn > 0 ? mlp_parameters(model, model.shared_ffn, tp) : 0;
  return routed * mlp_parameters(model, model.expert_ffn, tp) + shared + router_parameters(model);
}

BlockKind last_layer(const ModelConfig& model) {
  return model_blocks(model).end()[-2];
}

std::int64_t prediction_parameters(const ModelConfig& model, std::int64_t routed) {
  const std::int64_t mlp = last_layer(model) == BlockKind::kMoe
                               ? moe_parameters(model, routed, 1)
                               : mlp_parameters(model, model.ffn, 1);
  // Two norms of the layer, two before the projection that joins embedding and state, one before
  // the head.
  return attention_parameters(model, 1) + mlp + 2 * model.hidden * model.hidden +
         5 * norm_parameters(model);
}

ParameterCount count_parameters(const ModelConfig& model) {
  const std::int64_t moe_layers = model.experts > 0 ? model.layers - model.dense_first : 0;
  const std::int64_t dense_layers = model.layers - moe_layers;
  const std::int64_t around = attention_parameters(model, 1) + 2 * norm_parameters(model);
  const std::int64_t table = model.vocabulary * model.hidden;
  const std::int64_t positions = model.learned_positions ? model.max_positions * model.hidden : 0;

  std::int64_t common = table + positions + norm_parameters(model) + model.layers * around;
  if (!model.tied_embeddings)
    common += table;
  common += dense_layers * (dense_layers > 0 ? mlp_parameters(model, model.ffn, 1) : 0);

  ParameterCount count;
  count.total = common;
  count.active = common;
  // A tied table also multiplies in the head, so only an untied one is free of FLOPs.
  count.input_embedding = positions + (model.tied_embeddings ? 0 : table);
  if (model.experts > 0) {
    const std::int64_t moe = moe_parameters(model, model.experts, 1);
    count.total += moe_layers * moe;
    count.active += moe_layers * moe_parameters(model, model.experts_per_token, 1);
  }
  count.mtp = model.mtp_layers * prediction_parameters(model, model.experts);
  return count;
}

std::int64_t active_prediction_parameters(const ModelConfig& model) {
  return prediction_parameters(model, model.experts_per_token) + model.vocabulary * model.hidden;
}

std::int64_t table_parameters(const ModelConfig& model, std::int64_t tp) {
  return ceil_div(model.vocabulary, tp) * model.hidden;
}

std::int64_t block_parameters(const ModelConfig& model, BlockKind kind, std::int64_t tp) {
  const std::int64_t table = table_parameters(model, tp);
  switch (kind) {
    case BlockKind::kEmbedding:
      return table + (model.learned_positions ? model.max_positions * model.hidden : 0);
    case BlockKind::kHead:
      return norm_parameters(model) + (model.tied_embeddings ? 0 : table);
    case BlockKind::kPrediction:
      // The third norm is the head's.
      return layer_parameters(model, last_layer(model), tp) +
             2 * model.hidden * ceil_div(model.hidden, tp) + 2 * norm_parameters(model);
    case BlockKind::kDense:
    case BlockKind::kMoe:
      break;
  }
  return layer_parameters(model, kind, tp);
}

RankParameters rank_parameters(const ModelConfig& model,
                               BlockKind kind,
                               const Parallelism& degrees) {
  RankParameters count;
  count.shared = block_parameters(model, kind, degrees.tp);
  const BlockKind layer = kind == BlockKind::kPrediction ? last_layer(model) : kind;
  if (layer == BlockKind::kMoe) {
    count.shared -= model.experts * mlp_parameters(model, model.expert_ffn, degrees.tp);
    count.experts =
        ceil_div(model.experts, degrees.ep) * mlp_parameters(model, model.expert_ffn, degrees.etp);
  }
  return count;
}

bool holds_embedding_table(const ModelConfig& model, const StageSlice& slice) {
  return slice.embedding || slice.predictions > 0 || (slice.head && model.tied_embeddings);
}

std::int64_t stage_parameters(const ModelConfig& model, const StageSlice& slice, std::int64_t tp) {
  std::int64_t count = 0;
  if (slice.embedding)
    count += block_parameters(model, BlockKind::kEmbedding, tp);
  const std::vector<BlockKind> blocks = model_blocks(model);
  for (std::int64_t i = 0; i < slice.layers; ++i)
    count +=
        block_parameters(model, blocks[static_cast<std::size_t>(1 + slice.first_layer + i)], tp);
  if (slice.head)
    count += block_parameters(model, BlockKind::kHead, tp);
  count += slice.predictions * block_parameters(model, BlockKind::kPrediction, tp);
  if (holds_embedding_table(model, slice) && !slice.embedding)
    count += table_parameters(model, tp);
  return count;
}

}  // namespace foretrain
