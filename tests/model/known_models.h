#pragma once

#include "foretrain/model_config.h"

/// Published architectures, written down field by field, so that these tests need no reader.
namespace foretrain::known {

inline ModelConfig llama(std::int64_t hidden,
                         std::int64_t layers,
                         std::int64_t heads,
                         std::int64_t kv_heads,
                         std::int64_t ffn,
                         std::int64_t vocabulary) {
  ModelConfig model;
  model.model_type = "llama";
  model.hidden = hidden;
  model.layers = layers;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_dim = hidden / heads;
  model.ffn = ffn;
  model.vocabulary = vocabulary;
  return model;
}

inline ModelConfig llama2_7b() {
  return llama(4096, 32, 32, 32, 11008, 32000);
}
inline ModelConfig llama3_8b() {
  return llama(4096, 32, 32, 8, 14336, 128256);
}
inline ModelConfig llama3_70b() {
  return llama(8192, 80, 64, 8, 28672, 128256);
}
inline ModelConfig llama3_405b() {
  return llama(16384, 126, 128, 8, 53248, 128256);
}
inline ModelConfig llama32_1b() {
  ModelConfig model = llama(2048, 16, 32, 8, 8192, 128256);
  model.tied_embeddings = true;
  return model;
}
inline ModelConfig qwen25_7b() {
  ModelConfig model = llama(3584, 28, 28, 4, 18944, 152064);
  model.model_type = "qwen2";
  model.qkv_bias = true;
  return model;
}
inline ModelConfig qwen3_30b_a3b() {
  ModelConfig model = llama(2048, 48, 32, 4, 6144, 151936);
  model.model_type = "qwen3_moe";
  model.head_dim = 128;
  model.qk_norm = true;
  model.experts = 128;
  model.experts_per_token = 8;
  model.expert_ffn = 768;
  return model;
}
inline ModelConfig mixtral_8x7b() {
  ModelConfig model = llama(4096, 32, 32, 8, 14336, 32000);
  model.model_type = "mixtral";
  model.experts = 8;
  model.experts_per_token = 2;
  model.expert_ffn = 14336;
  return model;
}
inline ModelConfig deepseek_v3() {
  ModelConfig model = llama(7168, 61, 128, 128, 18432, 129280);
  model.model_type = "deepseek_v3";
  model.experts = 256;
  model.experts_per_token = 8;
  model.expert_ffn = 2048;
  model.shared_ffn = 2048;
  model.dense_first = 3;
  model.router_bias = true;
  model.q_lora_rank = 1536;
  model.kv_lora_rank = 512;
  model.qk_nope_dim = 128;
  model.qk_rope_dim = 64;
  model.v_head_dim = 128;
  model.mtp_layers = 1;
  return model;
}
inline ModelConfig gpt(std::int64_t hidden,
                       std::int64_t layers,
                       std::int64_t heads,
                       std::int64_t vocabulary,
                       std::int64_t positions) {
  ModelConfig model = llama(hidden, layers, heads, heads, 4 * hidden, vocabulary);
  model.model_type = "gpt2";
  model.max_positions = positions;
  model.gated_mlp = false;
  model.tied_embeddings = true;
  model.qkv_bias = model.output_bias = model.mlp_bias = true;
  model.layer_norm = model.learned_positions = true;
  return model;
}
inline ModelConfig gpt2() {
  return gpt(768, 12, 12, 50257, 1024);
}
inline ModelConfig gpt3_175b() {
  return gpt(12288, 96, 96, 51200, 2048);
}

}  // namespace foretrain::known
