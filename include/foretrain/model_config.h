#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// A model as the field writes it down: the fields of a Hugging Face config.json, families folded
/// into one struct. Plain data; the derived numbers are in model.h.
namespace foretrain {

/// One transformer language model. Counts are per whole model, sizes in elements.
struct ModelConfig {
  std::string name;        ///< preset name or file stem, for display
  std::string model_type;  ///< llama, mistral, qwen2, qwen3, qwen3_moe, mixtral, deepseek_v3, gpt2

  std::int64_t hidden = 0;          ///< h
  std::int64_t layers = 0;          ///< L, transformer layers
  std::int64_t vocabulary = 0;      ///< V, unpadded
  std::int64_t heads = 0;           ///< a, query heads
  std::int64_t kv_heads = 0;        ///< key/value heads (grouped-query attention)
  std::int64_t head_dim = 0;        ///< d
  std::int64_t ffn = 0;             ///< f, width of the dense MLP
  std::int64_t max_positions = 0;   ///< learned positions only (gpt2), else 0
  std::int64_t sliding_window = 0;  ///< 0: none

  bool gated_mlp = true;           ///< three matrices (SwiGLU) instead of two
  bool tied_embeddings = false;    ///< head shares the embedding's weights
  bool qkv_bias = false;           ///< bias on q, k, v
  bool output_bias = false;        ///< bias on the attention output projection
  bool mlp_bias = false;           ///< bias on the MLP matrices
  bool layer_norm = false;         ///< LayerNorm (weight and bias) instead of RMSNorm (weight)
  bool qk_norm = false;            ///< norms of width d on q and k (qwen3)
  bool learned_positions = false;  ///< a max_positions x hidden table (gpt2)

  // Mixture of experts; experts == 0: dense model.
  std::int64_t experts = 0;            ///< routed experts per MoE layer
  std::int64_t experts_per_token = 0;  ///< top-k
  std::int64_t expert_ffn = 0;         ///< width of one routed expert
  std::int64_t shared_ffn = 0;         ///< summed width of the shared experts; 0: none
  std::int64_t dense_first = 0;        ///< leading layers with a dense MLP
  bool router_bias = false;            ///< one correction value per expert (deepseek_v3)
  std::int64_t expert_groups = 0;      ///< groups of experts a router chooses among; 0: no groups
  std::int64_t expert_groups_per_token = 0;  ///< groups a token may go to (node-limited routing)

  // Multi-latent attention; kv_lora_rank == 0: plain attention.
  std::int64_t q_lora_rank = 0;  ///< 0: full-rank query projection
  std::int64_t kv_lora_rank = 0;
  std::int64_t qk_nope_dim = 0;
  std::int64_t qk_rope_dim = 0;
  std::int64_t v_head_dim = 0;

  std::int64_t mtp_layers = 0;  ///< multi-token-prediction modules (not counted in `parameters`)

  bool operator==(const ModelConfig&) const = default;
};

}  // namespace foretrain
