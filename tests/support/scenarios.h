#pragma once

#include "foretrain/scenario.h"
#include "foretrain/simulate.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

/// Scenarios for tests: a small dense model whose sizes are chosen by name.
namespace foretrain::test {

struct TinyScenario {
  std::int64_t layers = 8, hidden = 1024, heads = 16, kv_heads = 16, ffn = 4096;
  std::int64_t vocabulary = 32000, sequence = 2048;
  std::int64_t gpus = 8, tp = 1, pp = 1, vpp = 1, group = 0;
  std::int64_t batch = 8, micro_batch = 1;
  std::string sharding = "none", schedule = "1f1b", order = "tp-cp-ep-dp-pp";
  std::string topology = "dgx-h100-ndr400";
  std::string costs = R"({"model": "constant"})";
  bool sequence_parallel = true;
  bool tied = false;
  std::string more;  ///< further top-level members, each preceded by a comma

  std::string json() const {
    const auto n = [](std::int64_t value) { return std::to_string(value); };
    const std::string schedule_json =
        group > 0 ? R"({"name": ")" + schedule + R"(", "group": )" + n(group) + "}"
                  : "\"" + schedule + "\"";
    return R"({"name": "tiny", "model": {"model_type": "llama", "hidden_size": )" + n(hidden) +
           R"(, "num_hidden_layers": )" + n(layers) + R"(, "vocab_size": )" + n(vocabulary) +
           R"(, "num_attention_heads": )" + n(heads) + R"(, "num_key_value_heads": )" +
           n(kv_heads) + R"(, "intermediate_size": )" + n(ffn) + R"(, "tie_word_embeddings": )" +
           (tied ? "true" : "false") + R"(}, "cluster": {"topology": ")" + topology +
           R"(", "gpus": )" + n(gpus) + R"(}, "training": {"sequence_length": )" + n(sequence) +
           R"(, "global_batch_size": )" + n(batch) + R"(, "micro_batch_size": )" + n(micro_batch) +
           R"(}, "parallelism": {"tp": )" + n(tp) + R"(, "pp": )" + n(pp) + R"(, "vpp": )" +
           n(vpp) + R"(, "order": ")" + order + R"(", "sharding": ")" + sharding +
           R"(", "sequence_parallel": )" + (sequence_parallel ? "true" : "false") +
           R"(}, "schedule": )" + schedule_json + R"(, "costs": )" + costs + more + "}";
  }

  Scenario read() const {
    const Expected<Scenario> scenario = parse_scenario(json());
    if (!scenario) {
      for (const Diagnostic& fault : scenario.error().list) {
        ADD_FAILURE() << fault.pointer << ": " << fault.message << " " << fault.hint;
      }
      return {};
    }
    return *scenario;
  }

  Simulation run(const SimulateOptions& options = {}) const {
    Expected<Simulation> simulation = simulate(read(), options);
    if (!simulation) {
      for (const Diagnostic& fault : simulation.error().list) {
        ADD_FAILURE() << fault.pointer << ": " << fault.message << " " << fault.hint;
      }
      return {};
    }
    return std::move(*simulation);
  }
};

/// Costs under which only layers take time.
inline constexpr const char* kFreeEnds =
    R"({"model": "constant", "communication": "free", "embedding_and_head": "free"})";

}  // namespace foretrain::test
