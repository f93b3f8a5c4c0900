#include "sim/scenario/read_model.h"

#include "tests/model/known_models.h"

#include "foretrain/model.h"
#include "foretrain/scenario.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

struct Read {
  ModelConfig model;
  std::vector<Diagnostic> faults;
};

Read read_inline(const std::string& text) {
  Read read;
  const Expected<JsonValue> value = parse_json(text);
  EXPECT_TRUE(value.has_value()) << text;
  JsonCursor cursor(*value, "/model", read.faults);
  read.model = read_model_object(cursor);
  return read;
}

const std::string kLlama =
    R"("model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"vocab_size":128256,)"
    R"("num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336)";

std::string llama_with(const std::string& more) {
  return "{" + kLlama + (more.empty() ? "" : "," + more) + "}";
}

/// kLlama with the value of one key replaced.
std::string llama_but(const std::string& key, const std::string& value) {
  std::string text = "{" + kLlama + "}";
  const std::size_t at = text.find("\"" + key + "\":") + key.size() + 3;
  return text.replace(at, text.find_first_of(",}", at) - at, value);
}

void expect_fault(const std::string& text, const std::string& pointer) {
  const Read read = read_inline(text);
  ASSERT_FALSE(read.faults.empty()) << text;
  EXPECT_EQ(read.faults.front().pointer, pointer) << text << read.faults.front().message;
}

// Rule: every preset reads without a fault and has the published number of parameters; where only
// a rounded figure is known, within 1 % of it.
TEST(ReadModel, PresetsHoldTheModelsTheyName) {
  struct Preset {
    const char* name;
    double parameters;
    double tolerance;
  };
  const Preset presets[] = {
      {"llama2-7b", 6'738'415'616, 0},
      {"llama2-13b", 13'015'864'320, 0},
      {"llama2-70b", 68'976'648'192, 0},
      {"llama3-8b", 8'030'261'248, 0},
      {"llama3-70b", 70'553'706'496, 0},
      {"llama3-405b", 405'853'388'800, 0},
      {"llama3.2-1b", 1'235'814'400, 0},
      {"qwen2.5-7b", 7'615'616'512, 0},
      {"qwen3-30b-a3b", 30'532'122'624, 0},
      {"mixtral-8x7b", 46'702'792'704, 0},
      {"deepseek-v3", 671'026'419'200, 0},
      {"gpt2", 124'439'808, 0},
      {"mixtral-8x22b", 140.6e9, 0.01},
      {"qwen3-235b-a22b", 235e9, 0.01},
      {"gpt3-175b", 174.6e9, 0.01},
      {"gpt-145b", 145.6e9, 0.01},
      {"gpt-1t", 1008e9, 0.01},
  };
  for (const Preset& preset : presets) {
    const Expected<ModelConfig> model = read_model(preset.name);
    ASSERT_TRUE(model.has_value()) << preset.name << model.error().list.front().message;
    EXPECT_EQ(model->name, preset.name);
    EXPECT_NEAR(static_cast<double>(count_parameters(*model).total),
                preset.parameters,
                preset.tolerance * preset.parameters)
        << preset.name;
  }
  EXPECT_EQ(model_presets().size(), std::size(presets));
}

// Rule: Narayanan et al. 2021, equation 2: 12 l h^2 (1 + 13 / (12 h) + (V + s) / (12 l h))
// parameters, for the GPT presets; their count has no final norm (2 h).
TEST(ReadModel, GptPresetsFollowTheirPaper) {
  for (const char* name : {"gpt3-175b", "gpt-145b", "gpt-1t"}) {
    const ModelConfig model = *read_model(name);
    const std::int64_t h = model.hidden;
    const std::int64_t paper =
        12 * model.layers * h * h + 13 * model.layers * h + 51200 * h + 2048 * h;
    EXPECT_EQ(count_parameters(model).total, paper + 2 * h) << name;
  }
}

// Rule: Nemotron has no gate, norms with a bias, and ties nothing. The report of Nemotron-4 340B
// (arXiv 2406.11704) counts 9.4B parameters of embeddings and 331.6B others.
TEST(ReadModel, NemotronOfItsConfig) {
  const Read read = read_inline(
      R"({"model_type":"nemotron","hidden_size":18432,"num_hidden_layers":96,"vocab_size":256000,
          "num_attention_heads":96,"num_key_value_heads":8,"intermediate_size":73728,
          "hidden_act":"relu2","norm_eps":1e-5,"partial_rotary_factor":0.5,"attention_bias":false,
          "mlp_bias":false,"tie_word_embeddings":false})");
  ASSERT_TRUE(read.faults.empty()) << read.faults.front().message;
  const ParameterCount count = count_parameters(read.model);
  EXPECT_NEAR(static_cast<double>(count.total), 341e9, 0.3e9);
  EXPECT_EQ(count.input_embedding, std::int64_t{256000} * 18432);
  EXPECT_FALSE(read.model.gated_mlp);
}

// Rule: what is read equals what was written down by hand.
TEST(ReadModel, FieldsOfEachFamily) {
  const std::pair<const char*, ModelConfig> rows[] = {
      {"llama3-8b", known::llama3_8b()},
      {"llama3.2-1b", known::llama32_1b()},
      {"qwen2.5-7b", known::qwen25_7b()},
      {"qwen3-30b-a3b", known::qwen3_30b_a3b()},
      {"mixtral-8x7b", known::mixtral_8x7b()},
      {"gpt3-175b", known::gpt3_175b()},
  };
  for (auto [name, expected] : rows) {
    expected.name = name;
    EXPECT_TRUE(*read_model(name) == expected) << name;
  }
}

// Rule: writing a configuration and reading it back changes nothing.
TEST(ReadModel, WrittenModelsReadBack) {
  for (const std::string& name : model_presets()) {
    const ModelConfig model = *read_model(name);
    const Read read = read_inline(write_model_object(model));
    EXPECT_TRUE(read.faults.empty()) << name;
    EXPECT_TRUE(read.model == model) << name;
  }
  const Read biased =
      read_inline(llama_with(R"("attention_bias":true,"mlp_bias":true,"head_dim":64)"));
  EXPECT_TRUE(read_inline(write_model_object(biased.model)).model == biased.model);
}

// Rule: defaults of the classes: heads share nothing, head_dim is h / a, embeddings are tied in
// gpt2 only, null means "not given".
TEST(ReadModel, Defaults) {
  const Read llama = read_inline(
      R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"vocab_size":100,)"
      R"("num_attention_heads":4,"intermediate_size":128,"head_dim":null})");
  EXPECT_TRUE(llama.faults.empty());
  EXPECT_EQ(llama.model.kv_heads, 4);
  EXPECT_EQ(llama.model.head_dim, 16);
  EXPECT_FALSE(llama.model.tied_embeddings);
  const Read gpt =
      read_inline(R"({"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":4,"n_positions":32,)"
                  R"("vocab_size":100,"n_inner":null})");
  EXPECT_TRUE(gpt.faults.empty());
  EXPECT_EQ(gpt.model.ffn, 256);
  EXPECT_TRUE(gpt.model.tied_embeddings);
}

// Rule: attention_bias of llama covers the output projection too, and mlp_bias all three matrices:
// (a + 2 kv) d + h and 2 f + h more a layer.
TEST(ReadModel, Biases) {
  const std::int64_t plain = count_parameters(read_inline(llama_with("")).model).total;
  const Read attention = read_inline(llama_with(R"("attention_bias":true)"));
  EXPECT_EQ(count_parameters(attention.model).total - plain, 32 * ((32 + 16) * 128 + 4096));
  const Read mlp = read_inline(llama_with(R"("mlp_bias":true)"));
  EXPECT_EQ(count_parameters(mlp.model).total - plain, 32 * (2 * 14336 + 4096));
}

// Rule: a sliding window counts in mistral when given, in qwen only when switched on.
TEST(ReadModel, SlidingWindows) {
  const auto family = [](const std::string& type, const std::string& more) {
    std::string text = llama_with(more);
    return read_inline(text.replace(text.find("llama"), 5, type));
  };
  EXPECT_EQ(family("mistral", R"("sliding_window":4096)").model.sliding_window, 4096);
  EXPECT_EQ(family("mistral", R"("sliding_window":null)").model.sliding_window, 0);
  const std::string off = R"("sliding_window":4096,"use_sliding_window":false)";
  EXPECT_EQ(family("qwen2", off).model.sliding_window, 0);
  const std::string on = R"("sliding_window":4096,"use_sliding_window":true)";
  EXPECT_EQ(family("qwen3", on).model.sliding_window, 4096);
  EXPECT_FALSE(family("qwen2", on + R"(,"max_window_layers":16)").faults.empty());
}

// Rule: multimodal files nest the language model; the tie may stand outside.
TEST(ReadModel, TextConfigOfAMultimodalModel) {
  const Read read = read_inline(R"({"model_type":"llava","vision_config":{"hidden_size":1},)"
                                R"("tie_word_embeddings":true,"text_config":)" +
                                llama_with("") + "}");
  EXPECT_TRUE(read.faults.empty());
  EXPECT_EQ(read.model.hidden, 4096);
  EXPECT_TRUE(read.model.tied_embeddings);
  expect_fault(R"({"model_type":"llava","text_config":)" + llama_but("hidden_size", "-1") + "}",
               "/model/text_config/hidden_size");
}

// Rule: a model_type nobody knows is refused with those that are, and nothing else is said.
TEST(ReadModel, UnknownTypesAreRefusedWithTheList) {
  const Read read = read_inline(llama_but("model_type", "\"lama\""));
  ASSERT_EQ(read.faults.size(), 1U);
  EXPECT_EQ(read.faults[0].pointer, "/model/model_type");
  EXPECT_NE(read.faults[0].hint.find("llama"), std::string::npos);
  EXPECT_NE(read.faults[0].hint.find("deepseek_v3"), std::string::npos);
  expect_fault(R"({"hidden_size":4})", "/model/model_type");
  expect_fault("[]", "/model");
}

// Rule: each wrong value is a fault at its own pointer; fields that contradict each other are one
// at the model's.
TEST(ReadModel, FaultsPointAtTheirPlace) {
  expect_fault(llama_but("hidden_size", "0"), "/model/hidden_size");
  expect_fault(llama_but("num_hidden_layers", "-3"), "/model/num_hidden_layers");
  expect_fault(llama_but("vocab_size", "\"many\""), "/model/vocab_size");
  expect_fault(llama_but("intermediate_size", "1.5"), "/model/intermediate_size");
  expect_fault(llama_but("num_attention_heads", "null"), "/model/num_attention_heads");
  expect_fault(llama_but("hidden_size", "4097"), "/model");
  expect_fault(llama_but("num_key_value_heads", "7"), "/model");
  expect_fault(llama_but("num_key_value_heads", "64"), "/model");
  expect_fault(R"({"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":4,"vocab_size":10})",
               "/model/n_positions");
  expect_fault(llama_but("hidden_size", "2000000000"), "/model");
}

// Rule: every fault at once.
TEST(ReadModel, AllFaultsAtOnce) {
  const Read read = read_inline(R"({"model_type":"mixtral","hidden_size":0,"num_experts":8})");
  std::vector<std::string> pointers;
  for (const Diagnostic& fault : read.faults)
    pointers.push_back(fault.pointer);
  for (const char* key : {"hidden_size",
                          "num_hidden_layers",
                          "vocab_size",
                          "num_attention_heads",
                          "intermediate_size",
                          "num_local_experts",
                          "num_experts_per_tok",
                          "num_experts"}) {
    EXPECT_EQ(std::count(pointers.begin(), pointers.end(), std::string("/model/") + key), 1) << key;
  }
}

// Rule: keys that do not matter are accepted; an inline object's typing error is not.
TEST(ReadModel, IrrelevantAndUnknownKeys) {
  EXPECT_TRUE(read_inline(llama_with(R"("rope_scaling":null,"torch_dtype":"bfloat16",)"
                                     R"("architectures":["LlamaForCausalLM"],"use_cache":true)"))
                  .faults.empty());
  const Read read = read_inline(llama_with(R"("tie_word_embedings":true)"));
  ASSERT_EQ(read.faults.size(), 1U);
  EXPECT_EQ(read.faults[0].pointer, "/model/tie_word_embedings");
  EXPECT_NE(read.faults[0].hint.find("tie_word_embeddings"), std::string::npos);
  // In somebody else's config.json the same key is not ours to judge.
  std::vector<Diagnostic> faults;
  const JsonValue file = *parse_json(llama_with(R"("tie_word_embedings":true)"));
  JsonCursor cursor(file, "", faults);
  read_config_object(cursor);
  EXPECT_TRUE(faults.empty());
}

// Rule: more experts chosen than there are, or more dense layers than layers, contradict.
TEST(ReadModel, InconsistentExperts) {
  std::string text = llama_with(R"("num_local_experts":4,"num_experts_per_tok":5)");
  expect_fault(text.replace(text.find("llama"), 5, "mixtral"), "/model");
}

// Rule: an unknown preset is refused with the nearest name.
TEST(ReadModel, UnknownPreset) {
  const Expected<ModelConfig> model = read_model("llama3-8bb");
  ASSERT_FALSE(model.has_value());
  EXPECT_NE(model.error().list[0].hint.find("llama3-8b"), std::string::npos);
  EXPECT_EQ(model.error().kind, FaultKind::kBadInput);
  const Expected<ModelConfig> missing = read_model("no/such/config.json");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind, FaultKind::kFile);
}

}  // namespace
}  // namespace foretrain
