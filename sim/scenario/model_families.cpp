#include "sim/scenario/model_families.h"

#include <algorithm>
#include <string>

namespace foretrain {

std::optional<JsonCursor> ConfigFields::member(std::string_view key) {
  std::optional<JsonCursor> found = cursor_.member(key);
  return found && !found->is_null() ? found : std::nullopt;
}

std::int64_t ConfigFields::size(std::string_view key) {
  const std::optional<JsonCursor> found = cursor_.require(key);
  return found ? found->integer(kPositiveInt).value_or(0) : 0;
}

std::int64_t ConfigFields::size_or(std::string_view key, std::int64_t otherwise) {
  const std::optional<JsonCursor> found = member(key);
  return found ? found->integer(kPositiveInt).value_or(0) : otherwise;
}

std::int64_t ConfigFields::count_or(std::string_view key, std::int64_t otherwise) {
  const std::optional<JsonCursor> found = member(key);
  return found ? found->integer({0, kPositiveInt.most}).value_or(0) : otherwise;
}

bool ConfigFields::flag(std::string_view key, bool otherwise) {
  const std::optional<JsonCursor> found = member(key);
  return found ? found->boolean().value_or(otherwise) : otherwise;
}

namespace {

/// What nearly every family shares.
void read_common(ConfigFields& fields, ModelConfig& model) {
  model.hidden = fields.size("hidden_size");
  model.layers = fields.size("num_hidden_layers");
  model.vocabulary = fields.size("vocab_size");
  model.heads = fields.size("num_attention_heads");
  model.kv_heads = fields.size_or("num_key_value_heads", 0);
  model.head_dim = fields.size_or("head_dim", 0);
  model.ffn = fields.size("intermediate_size");
  // False in each of these families' own classes, although the shared default is true.
  model.tied_embeddings = fields.flag("tie_word_embeddings", false);
}

/// Per-layer attention kinds: all alike or refused. True: every layer is windowed.
bool all_layers_windowed(ConfigFields& fields, bool otherwise) {
  const std::optional<JsonCursor> types = fields.member("layer_types");
  if (!types)
    return otherwise;
  std::size_t windowed = 0;
  const std::vector<JsonCursor> layers = types->elements();
  for (const JsonCursor& layer : layers) {
    const std::string_view known[] = {"full_attention", "sliding_attention"};
    windowed += layer.choice(known) == "sliding_attention" ? 1 : 0;
  }
  if (windowed != 0 && windowed != layers.size()) {
    types->fault("layers with and without a sliding window in one model are not simulated yet",
                 "one kind for all layers");
  }
  return windowed != 0 && windowed == layers.size();
}

/// mistral, mixtral: a window whenever one is given.
void read_window(ConfigFields& fields, ModelConfig& model) {
  const std::int64_t window = fields.size_or("sliding_window", 0);
  if (all_layers_windowed(fields, window > 0))
    model.sliding_window = window;
}

/// qwen: a window only when switched on, from layer max_window_layers up.
void read_optional_window(ConfigFields& fields, ModelConfig& model) {
  const std::int64_t window = fields.size_or("sliding_window", 0);
  const bool on = fields.flag("use_sliding_window", false);
  const std::int64_t first = fields.count_or("max_window_layers", 0);
  if (on && first > 0 && first < model.layers) {
    fields.cursor().fault("sliding windows from layer " + std::to_string(first) + " of " +
                              std::to_string(model.layers) + " are not simulated yet",
                          "use_sliding_window false, or max_window_layers 0");
  }
  if (all_layers_windowed(fields, on && first < model.layers) && on)
    model.sliding_window = window;
}

void read_llama(ConfigFields& fields, ModelConfig& model) {
  read_common(fields, model);
  model.qkv_bias = fields.flag("attention_bias", false);
  model.output_bias = model.qkv_bias;
  model.mlp_bias = fields.flag("mlp_bias", false);
}

void read_mistral(ConfigFields& fields, ModelConfig& model) {
  read_common(fields, model);
  read_window(fields, model);
}

void read_qwen2(ConfigFields& fields, ModelConfig& model) {
  read_common(fields, model);
  read_optional_window(fields, model);
  model.qkv_bias = true;
}

void read_qwen3(ConfigFields& fields, ModelConfig& model) {
  read_common(fields, model);
  read_optional_window(fields, model);
  model.qkv_bias = fields.flag("attention_bias", false);
  model.output_bias = model.qkv_bias;
  model.qk_norm = true;
}

void read_mixtral(ConfigFields& fields, ModelConfig& model) {
  read_mistral(fields, model);
  model.experts = fields.size("num_local_experts");
  model.experts_per_token = fields.size("num_experts_per_tok");
  model.expert_ffn = model.ffn;
}

/// A key that may only say that every layer is alike.
void refuse_other_than_one(ConfigFields& fields, std::string_view key) {
  const std::optional<JsonCursor> found = fields.member(key);
  if (found && found->integer(kPositiveInt).value_or(1) != 1)
    found->fault("MoE layers at intervals are not simulated yet", "1");
}

void read_qwen3_moe(ConfigFields& fields, ModelConfig& model) {
  read_qwen3(fields, model);
  model.experts = fields.size("num_experts");
  model.experts_per_token = fields.size("num_experts_per_tok");
  model.expert_ffn = fields.size("moe_intermediate_size");
  refuse_other_than_one(fields, "decoder_sparse_step");
  const std::optional<JsonCursor> dense = fields.member("mlp_only_layers");
  if (dense && !dense->elements().empty())
    dense->fault("single dense layers are not simulated yet", "[]");
}

void read_latent_attention(ConfigFields& fields, ModelConfig& model) {
  model.q_lora_rank = fields.size_or("q_lora_rank", 0);
  model.kv_lora_rank = fields.size("kv_lora_rank");
  model.qk_nope_dim = fields.size("qk_nope_head_dim");
  model.qk_rope_dim = fields.size("qk_rope_head_dim");
  model.v_head_dim = fields.size("v_head_dim");
  // Keys and values come from the latent vector, one per query head, whatever the file says.
  model.kv_heads = model.heads;
  model.head_dim = model.qk_nope_dim + model.qk_rope_dim;
  if (fields.flag("attention_bias", false))
    fields.member("attention_bias")->fault("biases in latent attention are not known", "false");
}

void read_deepseek(ConfigFields& fields, ModelConfig& model) {
  read_common(fields, model);
  read_latent_attention(fields, model);
  model.experts = fields.size("n_routed_experts");
  model.experts_per_token = fields.size("num_experts_per_tok");
  model.expert_ffn = fields.size("moe_intermediate_size");
  model.shared_ffn = fields.count_or("n_shared_experts", 0) * model.expert_ffn;
  model.dense_first = fields.count_or("first_k_dense_replace", 0);
  // One group is no limit.
  model.expert_groups = fields.size_or("n_group", 1);
  model.expert_groups_per_token = fields.size_or("topk_group", model.expert_groups);
  if (model.expert_groups_per_token == model.expert_groups)
    model.expert_groups = model.expert_groups_per_token = 0;
  refuse_other_than_one(fields, "moe_layer_freq");
}

void read_deepseek_v3(ConfigFields& fields, ModelConfig& model) {
  read_deepseek(fields, model);
  model.router_bias = true;
  model.mtp_layers = fields.count_or("num_nextn_predict_layers", 0);
}

/// Squared ReLU: no gate. Norms have weight and bias.
void read_nemotron(ConfigFields& fields, ModelConfig& model) {
  read_llama(fields, model);
  model.gated_mlp = false;
  model.layer_norm = true;
}

void read_gpt2(ConfigFields& fields, ModelConfig& model) {
  model.hidden = fields.size("n_embd");
  model.layers = fields.size("n_layer");
  model.heads = fields.size("n_head");
  model.vocabulary = fields.size("vocab_size");
  model.max_positions = fields.size("n_positions");
  model.ffn = fields.size_or("n_inner", 4 * model.hidden);
  model.tied_embeddings = fields.flag("tie_word_embeddings", true);
  model.gated_mlp = false;
  model.qkv_bias = true;
  model.output_bias = true;
  model.mlp_bias = true;
  model.layer_norm = true;
  model.learned_positions = true;
}

constexpr ModelFamily kFamilies[] = {
    {"deepseek_v2", read_deepseek},
    {"deepseek_v3", read_deepseek_v3},
    {"gpt2", read_gpt2},
    {"llama", read_llama},
    {"mistral", read_mistral},
    {"mixtral", read_mixtral},
    {"nemotron", read_nemotron},
    {"qwen2", read_qwen2},
    {"qwen3", read_qwen3},
    {"qwen3_moe", read_qwen3_moe},
};

}  // namespace

std::span<const ModelFamily> model_families() {
  return kFamilies;
}

}  // namespace foretrain
