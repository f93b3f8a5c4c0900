#include "sim/scenario/read_model.h"

#include <nlohmann/json.hpp>

namespace foretrain {

namespace {

using Json = nlohmann::ordered_json;

Json gpt2_object(const ModelConfig& model) {
  return {{"model_type", model.model_type},
          {"n_embd", model.hidden},
          {"n_layer", model.layers},
          {"n_head", model.heads},
          {"n_inner", model.ffn},
          {"n_positions", model.max_positions},
          {"vocab_size", model.vocabulary},
          {"tie_word_embeddings", model.tied_embeddings}};
}

void put_experts(Json& object, const ModelConfig& model, bool latent) {
  const char* count = latent                          ? "n_routed_experts"
                      : model.model_type == "mixtral" ? "num_local_experts"
                                                      : "num_experts";
  object[count] = model.experts;
  object["num_experts_per_tok"] = model.experts_per_token;
  if (model.model_type != "mixtral")
    object["moe_intermediate_size"] = model.expert_ffn;
  if (!latent)
    return;
  object["n_shared_experts"] = model.shared_ffn / model.expert_ffn;
  object["first_k_dense_replace"] = model.dense_first;
  if (model.expert_groups > 0) {
    object["n_group"] = model.expert_groups;
    object["topk_group"] = model.expert_groups_per_token;
  }
}

void put_latent_attention(Json& object, const ModelConfig& model) {
  object["q_lora_rank"] = model.q_lora_rank > 0 ? Json(model.q_lora_rank) : Json(nullptr);
  object["kv_lora_rank"] = model.kv_lora_rank;
  object["qk_nope_head_dim"] = model.qk_nope_dim;
  object["qk_rope_head_dim"] = model.qk_rope_dim;
  object["v_head_dim"] = model.v_head_dim;
  if (model.mtp_layers > 0)
    object["num_nextn_predict_layers"] = model.mtp_layers;
}

void put_attention(Json& object, const ModelConfig& model) {
  object["num_key_value_heads"] = model.kv_heads;
  object["head_dim"] = model.head_dim;
  if (model.sliding_window > 0) {
    object["sliding_window"] = model.sliding_window;
    if (model.model_type.rfind("qwen", 0) == 0)
      object["use_sliding_window"] = true;
  }
  if (model.qkv_bias && model.model_type != "qwen2")
    object["attention_bias"] = true;
  if (model.mlp_bias)
    object["mlp_bias"] = true;
}

}  // namespace

std::string write_model_object(const ModelConfig& model) {
  Json object;
  if (!model.name.empty())
    object["name"] = model.name;
  if (model.model_type == "gpt2") {
    object.update(gpt2_object(model));
    return object.dump();
  }
  object.update(Json{{"model_type", model.model_type},
                     {"hidden_size", model.hidden},
                     {"num_hidden_layers", model.layers},
                     {"vocab_size", model.vocabulary},
                     {"num_attention_heads", model.heads},
                     {"intermediate_size", model.ffn},
                     {"tie_word_embeddings", model.tied_embeddings}});
  const bool latent = model.kv_lora_rank > 0;
  if (latent)
    put_latent_attention(object, model);
  else
    put_attention(object, model);
  if (model.experts > 0)
    put_experts(object, model, latent);
  return object.dump();
}

}  // namespace foretrain
