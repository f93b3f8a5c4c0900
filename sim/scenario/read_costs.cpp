#include "sim/scenario/sections.h"

namespace foretrain {
namespace {

void read_efficiency(JsonCursor& section, std::string_view key, double& target) {
  double value = target;
  if (!section.read(key, value, {0.0, 1.0})) {
    return;
  }
  if (value < 1e-6) {
    section.member(key)->fault("must be above 0; nothing would ever finish");
    return;
  }
  target = value;
}

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
  read_efficiency(section, "gemm_efficiency", costs.gemm_efficiency);
  read_efficiency(section, "attention_efficiency", costs.attention_efficiency);
  section.read("memory_bound_ops", costs.memory_bound_ops);
  section.read("launch_overhead", costs.launch_overhead);
  read_efficiency(section, "link_efficiency", costs.link_efficiency);
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
