#include "sim/scenario/layout.h"
#include "sim/scenario/rules.h"

#include <algorithm>
#include <numeric>

namespace foretrain {
namespace {

std::string text(std::int64_t value) {
  return std::to_string(value);
}

/// The largest power of two, or else divisor, up to `most` that divides `count`.
std::int64_t largest_divisor(std::int64_t count, std::int64_t most) {
  for (std::int64_t divisor = std::min(count, most); divisor > 1; --divisor) {
    if (count % divisor == 0) {
      return divisor;
    }
  }
  return 1;
}

void check_heads(const Scenario& scenario, Rules& rules) {
  const ModelConfig& model = scenario.model;
  const std::int64_t tp = scenario.parallelism.tp;
  const bool latent = model.kv_lora_rank > 0;
  const std::int64_t most = std::min<std::int64_t>(tp, 65536);
  if (model.heads % tp != 0) {
    rules.fault("/parallelism/tp",
                text(tp) + " does not divide " + text(model.heads) + " attention heads",
                "largest tp here: " + text(largest_divisor(model.heads, most)));
    return;
  }
  const bool replicated = scenario.parallelism.kv_replication && tp % model.kv_heads == 0;
  if (!latent && model.kv_heads % tp != 0 && !replicated) {
    rules.fault("/parallelism/tp",
                text(tp) + " does not divide " + text(model.kv_heads) + " key/value heads",
                "largest tp here: " + text(largest_divisor(model.kv_heads, most)) +
                    (tp % model.kv_heads == 0 ? ", or set kv_replication" : ""));
    return;
  }
  if (model.experts == 0 && model.ffn % tp != 0) {
    rules.fault(
        "/parallelism/tp",
        text(tp) + " does not divide the MLP's width " + text(model.ffn),
        "largest tp here: " + text(largest_divisor(std::gcd(model.ffn, model.heads), most)));
    return;
  }
  const std::int64_t cp = scenario.parallelism.cp;
  if (scenario.parallelism.cp_kind == ContextKind::kUlysses && rules.sound({"/parallelism/cp"}) &&
      (model.heads / tp) % cp != 0) {
    rules.fault("/parallelism/cp",
                "ulysses cannot share " + text(model.heads / tp) +
                    " heads (of each tp rank) among cp " + text(cp),
                "largest cp here: " +
                    text(largest_divisor(model.heads / tp, std::min<std::int64_t>(cp, 65536))));
  }
}

void check_experts(const Scenario& scenario, Rules& rules) {
  const ModelConfig& model = scenario.model;
  const Parallelism& p = scenario.parallelism;
  if (model.experts == 0) {
    for (const auto& [name, degree] : {std::pair{"ep", p.ep}, std::pair{"etp", p.etp}}) {
      if (degree > 1) {
        rules.fault(std::string("/parallelism/") + name,
                    std::string(name) + " is " + text(degree) + ", but the model has no experts",
                    std::string("leave ") + name + " out");
      }
    }
    return;
  }
  if (model.experts % p.ep != 0) {
    rules.fault("/parallelism/ep",
                text(p.ep) + " does not divide " + text(model.experts) + " experts",
                "largest ep here: " + text(largest_divisor(model.experts, p.ep)));
  }
  if (model.expert_ffn % p.etp != 0) {
    rules.fault("/parallelism/etp",
                text(p.etp) + " does not divide an expert's width " + text(model.expert_ffn),
                "largest etp here: " + text(largest_divisor(model.expert_ffn, p.etp)));
  }
}

/// FLOPs and bytes of one operator are 64-bit integers: what would not fit is refused.
void check_magnitude(const Scenario& scenario, Rules& rules) {
  constexpr double kMost = 4e18;
  const ModelConfig& model = scenario.model;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double tokens =
      real(scenario.training.sequence_length) * real(scenario.training.micro_batch_size);
  const double width = real(std::max({model.ffn, model.vocabulary, model.hidden}));
  const double attention = 4.0 * tokens * real(scenario.training.sequence_length) *
                           real(std::max<std::int64_t>(model.heads, 1)) *
                           real(std::max<std::int64_t>(model.head_dim, 1));
  const double projection = 8.0 * tokens * real(model.hidden) * width;
  if (attention > kMost || projection > kMost) {
    rules.fault("/training/sequence_length",
                text(scenario.training.sequence_length) + " tokens x micro-batch " +
                    text(scenario.training.micro_batch_size) +
                    " make one operator of more than 4e18 FLOPs",
                "shorten the sequence or lower micro_batch_size");
  }
}

/// A layout places every multi-token-prediction module of the model.
void check_prediction_modules(const Scenario& scenario, Rules& rules) {
  const Parallelism& p = scenario.parallelism;
  if (p.layout.empty()) {
    return;
  }
  std::int64_t placed = 0;
  if (const Expected<std::vector<LayoutStage>> stages = parse_layout(p.layout)) {
    for (const LayoutStage& stage : *stages) {
      placed += stage.mtp;
    }
  }
  if (placed != scenario.model.mtp_layers) {
    rules.fault("/parallelism/layout",
                "places " + text(placed) + " prediction modules (m), the model has " +
                    text(scenario.model.mtp_layers),
                "");
  }
}

void check_layers(Scenario& scenario, Rules& rules) {
  if (!rules.sound({"/parallelism/pp",
                    "/parallelism/vpp",
                    "/parallelism/layers_per_stage",
                    "/parallelism/first_stage_layers",
                    "/parallelism/last_stage_layers",
                    "/parallelism/layout",
                    "/parallelism/embedding_and_loss_as_layers"})) {
    return;
  }
  Expected<std::vector<std::int64_t>> split =
      split_layers(scenario.model.layers, scenario.parallelism);
  if (split) {
    scenario.parallelism.layers_per_stage = *std::move(split);
    check_prediction_modules(scenario, rules);
    return;
  }
  rules.taint("/parallelism/layers_per_stage");
  for (const Diagnostic& fault : split.error().list) {
    rules.fault(fault.pointer, fault.message, fault.hint);
  }
}

}  // namespace

void check_model(Scenario& scenario, Rules& rules) {
  constexpr std::int64_t kMostLayers = 100'000;
  if (!rules.sound({"/model"})) {
    return;
  }
  if (scenario.model.layers < 1 || scenario.model.layers > kMostLayers) {
    rules.fault("/model",
                text(scenario.model.layers) + " layers are not from 1 to " + text(kMostLayers),
                "");
    return;
  }
  const ModelConfig& model = scenario.model;
  if (model.heads < 1 ||
      (model.kv_lora_rank == 0 && (model.kv_heads < 1 || model.heads % model.kv_heads != 0))) {
    rules.fault("/model",
                text(model.heads) + " attention heads cannot share " + text(model.kv_heads) +
                    " key/value heads evenly",
                "");
    return;
  }
  check_layers(scenario, rules);
  if (rules.sound({"/parallelism/tp"})) {
    check_heads(scenario, rules);
  }
  if (rules.sound({"/parallelism/ep"}) && rules.sound({"/parallelism/etp"})) {
    check_experts(scenario, rules);
  }
  if (rules.sound({"/training/sequence_length", "/training/micro_batch_size"})) {
    check_magnitude(scenario, rules);
  }
}

}  // namespace foretrain
