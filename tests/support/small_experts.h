#pragma once

#include "foretrain/scenario.h"
#include "foretrain/simulate.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

/// A small model with routed experts on 16 GPUs, changed by overrides as `--set` takes them.
namespace foretrain::test {

inline constexpr const char* kSmallExperts = R"({"name": "small", "model": {
  "model_type": "qwen3_moe", "hidden_size": 512, "num_hidden_layers": 4, "vocab_size": 32000,
  "num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 1024,
  "num_experts": 16, "num_experts_per_tok": 2, "moe_intermediate_size": 256},
  "cluster": {"topology": "dgx-h100-ndr400", "gpus": 16},
  "training": {"sequence_length": 1024, "global_batch_size": 16},
  "costs": {"model": "constant"}})";

inline Scenario read_with(const std::string& text, const std::vector<std::string>& sets) {
  const Expected<Scenario> scenario = parse_scenario(text, ".", sets);
  if (!scenario) {
    for (const Diagnostic& fault : scenario.error().list) {
      ADD_FAILURE() << fault.pointer << ": " << fault.message << " " << fault.hint;
    }
    return {};
  }
  return *scenario;
}

inline StepReport report_of(const Scenario& scenario) {
  Expected<Simulation> simulation = simulate(scenario);
  if (!simulation) {
    for (const Diagnostic& fault : simulation.error().list) {
      ADD_FAILURE() << fault.pointer << ": " << fault.message << " " << fault.hint;
    }
    return {};
  }
  return std::move(simulation->report);
}

inline StepReport report_with(const std::string& text, const std::vector<std::string>& sets) {
  return report_of(read_with(text, sets));
}

}  // namespace foretrain::test
