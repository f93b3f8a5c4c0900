#include "sim/base/format.h"
#include "sim/scenario/divides.h"
#include "sim/scenario/layout.h"
#include "sim/scenario/rules.h"
#include "sim/scenario/sections.h"

#include <algorithm>
#include <functional>

namespace foretrain {
namespace {

/// The largest legal degree up to `most`; 1 is always offered.
std::int64_t largest(std::int64_t most, const std::function<bool(std::int64_t)>& legal) {
  constexpr std::int64_t kMostTried = 65536;
  for (std::int64_t degree = std::min(most, kMostTried); degree > 1; --degree) {
    if (legal(degree)) {
      return degree;
    }
  }
  return 1;
}

/// Whether a tensor-parallel degree breaks none of its rules, those of other sections included.
bool legal_tp(const Scenario& scenario, std::int64_t tp, bool kv_replication, const Rules& rules) {
  const ModelConfig& model = scenario.model;
  const Parallelism& p = scenario.parallelism;
  const bool shared =
      rules.waived().kv_heads_limit_tp || key_value_heads_divide(model, tp, kv_replication);
  if (!shared || !heads_divide(model, tp) || !mlp_divides(model, tp)) {
    return false;
  }
  if (!rules.sound({"/parallelism/cp"}) || p.cp > kLargestInteger / tp) {
    return true;
  }
  if (p.cp_kind == ContextKind::kUlysses && model.heads / tp % p.cp != 0) {
    return false;
  }
  if (p.sequence_parallel && !sequence_divides(scenario.training.sequence_length, tp, p.cp)) {
    return false;
  }
  const Int128 ranks = Int128{tp} * p.cp * p.pp;
  return !rules.sound({"/parallelism/pp", "/cluster/gpus"}) || scenario.cluster.gpus % ranks == 0;
}

/// "largest tp here: 4", and kv_replication where that alone makes the degree asked for legal.
std::string tp_hint(const Scenario& scenario, const Rules& rules) {
  const Parallelism& p = scenario.parallelism;
  const auto legal = [&](std::int64_t tp) {
    return legal_tp(scenario, tp, p.kv_replication, rules);
  };
  return "largest tp here: " +
         std::to_string(largest(std::max(p.tp, scenario.model.heads), legal)) +
         (legal_tp(scenario, p.tp, true, rules) ? ", or set kv_replication" : "");
}

/// Whether ep and etp fold into the ranks of a stage: etp x ep divides tp x cp x dp.
bool folds(const Parallelism& p, std::int64_t ep, std::int64_t etp, const Rules& rules) {
  const Int128 stage = Int128{p.tp} * p.cp * p.dp;
  return !rules.sound({"/parallelism/tp", "/parallelism/cp", "/parallelism/dp"}) ||
         stage % (Int128{ep} * etp) == 0;
}

void check_heads(const Scenario& scenario, Rules& rules) {
  const ModelConfig& model = scenario.model;
  const std::int64_t tp = scenario.parallelism.tp;
  if (!heads_divide(model, tp)) {
    rules.fault("/parallelism/tp",
                std::to_string(tp) + " does not divide " + std::to_string(model.heads) +
                    " attention " + plural("head", model.heads),
                tp_hint(scenario, rules));
    return;
  }
  if (!rules.waived().kv_heads_limit_tp &&
      !key_value_heads_divide(model, tp, scenario.parallelism.kv_replication)) {
    rules.fault("/parallelism/tp",
                std::to_string(tp) + " does not divide " + std::to_string(model.kv_heads) +
                    " key/value " + plural("head", model.kv_heads),
                tp_hint(scenario, rules));
    return;
  }
  if (!mlp_divides(model, tp)) {
    rules.fault(
        "/parallelism/tp",
        std::to_string(tp) + " does not divide the MLP's width " + std::to_string(model.ffn),
        tp_hint(scenario, rules));
    return;
  }
  const std::int64_t cp = scenario.parallelism.cp;
  const auto legal = [&](std::int64_t degree) {
    const std::int64_t parts = scenario.parallelism.sequence_parallel ? tp * degree : degree;
    return model.heads / tp % degree == 0 && scenario.training.sequence_length % parts == 0;
  };
  if (scenario.parallelism.cp_kind == ContextKind::kUlysses && rules.sound({"/parallelism/cp"}) &&
      (model.heads / tp) % cp != 0) {
    rules.fault("/parallelism/cp",
                "ulysses cannot share " + std::to_string(model.heads / tp) + " " +
                    plural("head", model.heads / tp) + " (of each tp rank) among cp " +
                    std::to_string(cp),
                "largest cp here: " + std::to_string(largest(cp, legal)));
  }
}

void check_experts(const Scenario& scenario, Rules& rules) {
  const ModelConfig& model = scenario.model;
  const Parallelism& p = scenario.parallelism;
  if (model.experts == 0) {
    for (const auto& [name, degree] : {std::pair{"ep", p.ep}, std::pair{"etp", p.etp}}) {
      if (degree > 1) {
        rules.fault(
            std::string("/parallelism/") + name,
            std::string(name) + " is " + std::to_string(degree) + ", but the model has no experts",
            std::string("leave ") + name + " out");
      }
    }
    return;
  }
  if (p.tp > 1 && !p.sequence_parallel) {
    rules.fault("/parallelism/sequence_parallel",
                "experts with tp " + std::to_string(p.tp) +
                    " need sequence parallelism: their router sees "
                    "each token once",
                "set sequence_parallel to true, or tp to 1");
  }
  if (!experts_divide(model, p.ep)) {
    rules.fault("/parallelism/ep",
                std::to_string(p.ep) + " does not divide " + std::to_string(model.experts) + " " +
                    plural("expert", model.experts),
                "largest ep here: " + std::to_string(largest(model.experts, [&](std::int64_t ep) {
                  return experts_divide(model, ep) && folds(p, ep, p.etp, rules);
                })));
  }
  if (model.expert_ffn % p.etp != 0) {
    rules.fault(
        "/parallelism/etp",
        std::to_string(p.etp) + " does not divide an expert's width " +
            std::to_string(model.expert_ffn),
        "largest etp here: " + std::to_string(largest(model.expert_ffn, [&](std::int64_t etp) {
          return model.expert_ffn % etp == 0 && folds(p, p.ep, etp, rules);
        })));
  }
}

/// FLOPs and bytes of one operator are 64-bit integers: what would not fit is refused.
void check_magnitude(const Scenario& scenario, Rules& rules) {
  const TrainingSpec& training = scenario.training;
  if (largest_operator_flops(scenario.model, training.sequence_length, training.micro_batch_size) >
      kMostOperatorFlops) {
    rules.fault("/training/sequence_length",
                std::to_string(scenario.training.sequence_length) + " tokens x micro-batch " +
                    std::to_string(scenario.training.micro_batch_size) +
                    " make one operator of more than 4e18 FLOPs",
                "shorten the sequence or lower micro_batch_size");
  }
}

/// Prediction modules that are trained: as stated, else as many as a layout places (m), else none.
void check_prediction_modules(Scenario& scenario, const StatedValues& stated, Rules& rules) {
  Parallelism& p = scenario.parallelism;
  const std::int64_t most = scenario.model.mtp_layers;
  std::int64_t& trained = scenario.training.multi_token_prediction;
  std::int64_t placed = 0;
  const Expected<std::vector<LayoutStage>> stages =
      p.layout.empty() ? Expected<std::vector<LayoutStage>>() : parse_layout(p.layout);
  if (stages) {
    for (const LayoutStage& stage : *stages) {
      placed += stage.mtp;
    }
  }
  if (!stated.multi_token_prediction) {
    trained = placed;
  } else if (!p.layout.empty() && placed != trained) {
    rules.fault("/parallelism/layout",
                "places " + std::to_string(placed) + " prediction " + plural("module", placed) +
                    " (m), multi_token_prediction says " + std::to_string(trained),
                "leave multi_token_prediction out, or place as many");
    return;
  }
  if (trained > most) {
    rules.fault(
        stated.multi_token_prediction ? "/training/multi_token_prediction" : "/parallelism/layout",
        std::to_string(trained) + " prediction " + plural("module", trained) +
            ", but the model has " + (most == 0 ? "none" : std::to_string(most)),
        most == 0 ? "leave it out" : "at most " + std::to_string(most));
  }
  if (trained > 0) {
    p.predictions_per_stage.assign(p.layers_per_stage.size(), 0);
    p.predictions_per_stage.back() = trained;
    for (std::size_t stage = 0; stages && stage < stages->size() && placed > 0; ++stage) {
      p.predictions_per_stage[stage] = (*stages)[stage].mtp;
    }
  }
}

void check_layers(Scenario& scenario, const StatedValues& stated, Rules& rules) {
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
    check_prediction_modules(scenario, stated, rules);
    return;
  }
  rules.taint("/parallelism/layers_per_stage");
  for (const Diagnostic& fault : split.error().list) {
    rules.fault(fault.pointer, fault.message, fault.hint);
  }
}

}  // namespace

void check_model(Scenario& scenario, const StatedValues& stated, Rules& rules) {
  constexpr std::int64_t kMostLayers = 100'000;
  if (!rules.sound({"/model"})) {
    return;
  }
  if (scenario.model.layers < 1 || scenario.model.layers > kMostLayers) {
    rules.fault("/model",
                std::to_string(scenario.model.layers) + " layers are not from 1 to " +
                    std::to_string(kMostLayers),
                "");
    return;
  }
  const ModelConfig& model = scenario.model;
  if (model.heads < 1 ||
      (model.kv_lora_rank == 0 && (model.kv_heads < 1 || model.heads % model.kv_heads != 0))) {
    rules.fault("/model",
                std::to_string(model.heads) + " attention heads cannot share " +
                    std::to_string(model.kv_heads) + " key/value heads evenly",
                "");
    return;
  }
  check_layers(scenario, stated, rules);
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
