#pragma once

#include "foretrain/model.h"

#include <cstdint>

/// Parameter counts of the pieces of a layer (MODEL 2.1), whole and as one of `tp` ranks holds
/// them: column- and row-parallel matrices are divided, norms and row-parallel biases replicated.
namespace foretrain {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

inline bool is_mla(const ModelConfig& model) {
  return model.kv_lora_rank > 0;
}

/// Key/value heads of one rank: at least one (replicated when tp exceeds them).
inline std::int64_t local_kv_heads(const ModelConfig& model, std::int64_t tp) {
  return ceil_div(model.kv_heads, tp);
}

/// One norm over the hidden dimension.
std::int64_t norm_parameters(const ModelConfig& model);

/// Projections, their biases and inner norms; not the block's own norm.
std::int64_t attention_parameters(const ModelConfig& model, std::int64_t tp);

/// A dense MLP of width `ffn`.
std::int64_t mlp_parameters(const ModelConfig& model, std::int64_t ffn, std::int64_t tp);

/// Router and its correction values.
std::int64_t router_parameters(const ModelConfig& model);

/// The MoE part of a layer with `routed` of the experts (all of them, or top-k for the active
/// count).
std::int64_t moe_parameters(const ModelConfig& model, std::int64_t routed, std::int64_t tp);

/// The kind of the model's last layer, which its prediction modules share.
BlockKind last_layer(const ModelConfig& model);

/// One multi-token-prediction module with its last norm: a layer with `routed` of the experts, the
/// 2h x h projection that joins embedding and state, three norms.
std::int64_t prediction_parameters(const ModelConfig& model, std::int64_t routed);

/// Parameters that one token multiplies in one prediction module, its use of the head included.
std::int64_t active_prediction_parameters(const ModelConfig& model);

}  // namespace foretrain
