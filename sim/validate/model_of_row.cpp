#include "sim/validate/model_of_row.h"

#include "sim/scenario/json_value.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Members of a JSON object, in order.
class ModelMembers {
 public:
  void add(const std::string& key, const std::string& value) {
    text_ += (text_.empty() ? "" : ", ") + json_string(key) + ": " + value;
  }
  void add(const std::string& key, std::int64_t value) { add(key, std::to_string(value)); }
  void add_all(std::string_view members) {
    text_ += members.empty() ? "" : ", " + std::string(members);
  }
  std::string object() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

/// Heads of 128, or a little wider where that does not divide.
std::int64_t usual_heads(std::int64_t hidden, std::int64_t tp) {
  constexpr std::int64_t kUsualHead = 128;
  constexpr std::int64_t kMostHeads = 4096;
  for (std::int64_t heads = std::min(hidden / kUsualHead, kMostHeads); heads > 1; --heads) {
    if (hidden % heads == 0 && heads % tp == 0) {
      return heads;
    }
  }
  return 1;
}

void add_gpt(const PublishedRow& row, std::int64_t heads, ModelMembers& members) {
  members.add("n_embd", *row.hidden);
  members.add("n_layer", *row.layers);
  members.add("n_head", heads);
  members.add("n_positions", *row.seq);
}

void add_experts(const PublishedRow& row, std::string_view family, ModelMembers& members) {
  const bool deepseek = family.starts_with("deepseek");
  const char* const count = deepseek              ? "n_routed_experts"
                            : family == "mixtral" ? "num_local_experts"
                                                  : "num_experts";
  members.add(count, *row.experts);
  members.add("num_experts_per_tok", *row.topk);
  if (family == "qwen3_moe") {
    members.add("moe_intermediate_size", *row.ffn);
  }
}

}  // namespace

RowModel model_of_row(const PublishedRow& row, const ModelSpelling& spelling) {
  constexpr std::int64_t kUsualVocabulary = 51200;
  RowModel model;
  const std::string_view family = spelling.family;
  const bool gpt = family == "gpt2";
  if (!gpt && !row.ffn) {
    model.missing = "ffn";
  } else if (row.experts && !row.topk) {
    model.missing = "topk";
  }
  if (!model.missing.empty()) {
    return model;
  }
  const auto assume = [&model](const std::string& what) { model.assumed.push_back(what); };
  const std::int64_t heads = row.heads.value_or(usual_heads(*row.hidden, row.tp.value_or(1)));
  if (!row.heads) {
    assume(std::to_string(heads) + " heads");
  }
  if (!row.vocab) {
    assume("vocabulary " + std::to_string(kUsualVocabulary));
  }
  if (!row.ffn) {
    assume("MLP of 4 h");
  }
  if (!spelling.assumed.empty()) {
    assume(std::string(spelling.assumed));
  }
  ModelMembers members;
  members.add("name", json_string(row.model));
  members.add("model_type", json_string(std::string(family)));
  members.add("vocab_size", row.vocab.value_or(kUsualVocabulary));
  if (gpt) {
    add_gpt(row, heads, members);
    members.add("n_inner", row.ffn.value_or(4 * *row.hidden));
    return {members.object(), model.assumed, ""};
  }
  members.add("hidden_size", *row.hidden);
  members.add("num_hidden_layers", *row.layers);
  members.add("num_attention_heads", heads);
  if (spelling.more.find("kv_lora_rank") == std::string_view::npos) {
    members.add("num_key_value_heads", row.kv_heads.value_or(heads));
  }
  if (spelling.more.find("\"intermediate_size") == std::string_view::npos) {
    members.add("intermediate_size", *row.ffn);
  }
  if (row.experts) {
    add_experts(row, family, members);
  }
  members.add_all(spelling.more);
  return {members.object(), model.assumed, ""};
}

}  // namespace foretrain
