#include "sim/scenario/read_model.h"

#include "sim/base/edit_distance.h"
#include "sim/base/format.h"
#include "sim/scenario/model_families.h"

#include <algorithm>
#include <array>

namespace foretrain {

namespace {

/// Keys of published config.json files that do not change shapes or counts.
constexpr std::string_view kIrrelevantKeys[] = {"_attn_implementation",
                                                "_name_or_path",
                                                "activation_function",
                                                "architectures",
                                                "attention_dropout",
                                                "attn_pdrop",
                                                "auto_map",
                                                "aux_loss_alpha",
                                                "bos_token_id",
                                                "dtype",
                                                "embd_pdrop",
                                                "eos_token_id",
                                                "ep_size",
                                                "hidden_act",
                                                "initializer_range",
                                                "layer_norm_epsilon",
                                                "max_position_embeddings",
                                                "n_ctx",
                                                "n_group",
                                                "norm_eps",
                                                "norm_topk_prob",
                                                "output_router_logits",
                                                "pad_token_id",
                                                "partial_rotary_factor",
                                                "pretraining_tp",
                                                "quantization_config",
                                                "reorder_and_upcast_attn",
                                                "resid_pdrop",
                                                "rms_norm_eps",
                                                "rope_interleave",
                                                "rope_parameters",
                                                "rope_scaling",
                                                "rope_theta",
                                                "routed_scaling_factor",
                                                "router_aux_loss_coef",
                                                "router_jitter_noise",
                                                "scale_attn_by_inverse_layer_idx",
                                                "scale_attn_weights",
                                                "scoring_func",
                                                "seq_aux",
                                                "summary_activation",
                                                "summary_first_dropout",
                                                "summary_proj_to_labels",
                                                "summary_type",
                                                "summary_use_proj",
                                                "task_specific_params",
                                                "topk_group",
                                                "topk_method",
                                                "torch_dtype",
                                                "transformers_version",
                                                "use_cache"};

std::string known_types() {
  std::string list;
  for (const ModelFamily& family : model_families())
    list += (list.empty() ? "" : ", ") + std::string(family.type);
  return list;
}

const ModelFamily* find_family(JsonCursor& cursor) {
  const std::optional<JsonCursor> type = cursor.require("model_type", "one of: " + known_types());
  const std::optional<std::string> name = type ? type->string() : std::nullopt;
  if (!name)
    return nullptr;
  std::vector<std::string> types;
  for (const ModelFamily& family : model_families()) {
    if (family.type == *name)
      return &family;
    types.emplace_back(family.type);
  }
  const std::string near = did_you_mean(*name, types);
  type->fault("unknown model_type \"" + *name + "\"",
              (near.empty() ? "" : near + " ") + "known: " + known_types());
  return nullptr;
}

std::string quoted(std::string_view key, std::int64_t value) {
  return std::string(key) + " " + std::to_string(value);
}

/// Contradictions between fields; a field at fault already is 0 and is left out.
void check_attention(const JsonCursor& cursor, const ModelConfig& model) {
  if (model.heads == 0 || model.hidden == 0 || model.kv_lora_rank > 0)
    return;
  if (model.head_dim == 0 && model.hidden % model.heads != 0) {
    cursor.fault(quoted("hidden size", model.hidden) + " is not divisible by " +
                     std::to_string(model.heads) + " heads",
                 "set head_dim if it is meant");
  }
  if (model.kv_heads > 0 && model.heads % model.kv_heads != 0) {
    cursor.fault(quoted("key/value heads", model.kv_heads) + " do not divide " +
                     quoted("attention heads", model.heads),
                 "query heads share key/value heads in groups of equal size");
  }
}

void check_experts(const JsonCursor& cursor, const ModelConfig& model) {
  if (model.experts > 0 && model.experts_per_token > model.experts) {
    cursor.fault("num_experts_per_tok " + std::to_string(model.experts_per_token) + " of " +
                     std::to_string(model.experts) + " " + plural("expert", model.experts),
                 "at most all experts");
  }
  if (model.expert_groups > 0 && (model.experts % model.expert_groups != 0 ||
                                  model.expert_groups_per_token > model.expert_groups)) {
    cursor.fault("n_group " + std::to_string(model.expert_groups) + ", topk_group " +
                     std::to_string(model.expert_groups_per_token) + " of " +
                     std::to_string(model.experts) + " experts",
                 "n_group divides the experts, topk_group is at most n_group");
  }
  if (model.layers > 0 && model.dense_first > model.layers) {
    cursor.fault("first_k_dense_replace " + std::to_string(model.dense_first) + " of " +
                     std::to_string(model.layers) + " " + plural("layer", model.layers),
                 "at most all layers");
  }
}

/// Every count stays exact in a double (2^53), so no later sum can overflow.
void check_size(const JsonCursor& cursor, const ModelConfig& model) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double width =
      real(model.heads) *
      (real(model.head_dim) + real(model.qk_nope_dim + model.qk_rope_dim) + real(model.v_head_dim));
  const double ranks = real(model.q_lora_rank + model.kv_lora_rank);
  const double ffn =
      real(model.ffn) + real(model.shared_ffn) + real(model.experts) * (real(model.expert_ffn) + 1);
  const double layer =
      4 * (real(model.hidden) + ranks) * (width + ranks) + 3 * real(model.hidden) * ffn;
  const double tables =
      real(model.hidden) * (2 * real(model.vocabulary) + real(model.max_positions));
  if (real(model.layers + model.mtp_layers) * layer + tables > real(kLargestInteger))
    cursor.fault("more than 2^53 parameters", "check the sizes");
}

void fill_derived(ModelConfig& model) {
  if (model.kv_heads == 0)
    model.kv_heads = model.heads;
  if (model.head_dim == 0 && model.heads > 0)
    model.head_dim = model.hidden / model.heads;
}

/// Multimodal configurations keep the language model in text_config; a tie stated outside it counts
/// when the inside says nothing.
bool nested_text(JsonCursor& cursor) {
  return cursor.value().find("text_config") != nullptr &&
         cursor.value().find("num_hidden_layers") == nullptr;
}

}  // namespace

ModelConfig read_config_object(JsonCursor& cursor) {
  ModelConfig model;
  if (!cursor.expect_object())
    return model;
  if (nested_text(cursor)) {
    std::optional<JsonCursor> text = cursor.member("text_config");
    model = read_config_object(*text);
    if (text->is_object() && text->value().find("tie_word_embeddings") == nullptr)
      cursor.read("tie_word_embeddings", model.tied_embeddings);
    for (const std::string& key : cursor.value().keys)
      cursor.member(key);
    return model;
  }
  cursor.ignore(kIrrelevantKeys);
  cursor.read("name", model.name);
  const ModelFamily* family = find_family(cursor);
  if (family == nullptr) {
    for (const std::string& key : cursor.value().keys)
      cursor.member(key);
    return model;
  }
  model.model_type = family->type;
  ConfigFields fields(cursor);
  family->read(fields, model);
  check_attention(cursor, model);
  check_experts(cursor, model);
  fill_derived(model);
  check_size(cursor, model);
  return model;
}

ModelConfig read_model_object(JsonCursor& cursor) {
  ModelConfig model = read_config_object(cursor);
  if (cursor.is_object())
    cursor.finish();
  return model;
}

}  // namespace foretrain
