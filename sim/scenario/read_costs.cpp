#include "sim/scenario/sections.h"

namespace foretrain {
namespace {

/// Below this nothing would finish in a time that can be counted.
constexpr NumberRange kEfficiency = {1e-6, 1.0};

}  // namespace

void read_costs(JsonCursor& section, CostSpec& costs) {
  constexpr std::string_view kNames[] = {"calibrated", "constant"};
  constexpr std::string_view kModels[] = {"constant"};
  constexpr std::string_view kCommunication[] = {"links", "free"};
  constexpr std::string_view kEnds[] = {"counted", "free"};
  if (section.is_string()) {
    costs.constant = section.choice(kNames) == "constant";
    return;
  }
  if (!section.is_object()) {
    section.fault("must be \"calibrated\" or an object", "e.g. {\"model\": \"constant\"}");
    return;
  }
  costs.constant = true;
  std::string word;
  if (const std::optional<JsonCursor> at = section.require("model", "\"constant\"")) {
    at->choice(kModels);
  }
  section.read("gemm_efficiency", costs.gemm_efficiency, kEfficiency);
  section.read("attention_efficiency", costs.attention_efficiency, kEfficiency);
  section.read("memory_bound_ops", costs.memory_bound_ops);
  section.read("launch_overhead", costs.launch_overhead);
  section.read("link_efficiency", costs.link_efficiency, kEfficiency);
  section.read("link_latency", costs.link_latency);
  if (section.read("communication", word, kCommunication)) {
    costs.communication_free = word == "free";
  }
  if (section.read("embedding_and_head", word, kEnds)) {
    costs.embedding_and_head_free = word == "free";
  }
  section.finish();
}

}  // namespace foretrain
