#include "sim/scenario/sections.h"

namespace foretrain {
namespace {

/// Below this nothing would finish in a time that can be counted.
constexpr NumberRange kEfficiency = {1e-6, 1.0};

/// Phases of one chunk; a whole backward may be given by its halves.
void read_stated(JsonCursor& section, CostSpec& costs) {
  StatedCosts stated;
  const auto optional = [&](const char* key, std::optional<Duration>& target) {
    Duration value{};
    if (section.read(key, value)) {
      target = value;
    }
  };
  section.require("forward", "the time of one chunk's forward, e.g. \"18.5 ms\"");
  section.read("forward", stated.forward);
  optional("dgrad", stated.dgrad);
  optional("wgrad", stated.wgrad);
  optional("overlapped", stated.overlapped);
  section.read("p2p", stated.p2p);
  section.read("optimizer", stated.optimizer);
  if (stated.dgrad && stated.wgrad) {
    stated.backward = *stated.dgrad + *stated.wgrad;
    section.read("backward", stated.backward);
  } else {
    section.require("backward", "the time of one chunk's backward, or dgrad and wgrad");
    section.read("backward", stated.backward);
  }
  const Duration sum = stated.forward + stated.backward + stated.dgrad.value_or(Duration{}) +
                       stated.wgrad.value_or(Duration{});
  if (sum == Duration{}) {
    section.fault("no phase takes any time",
                  "e.g. \"forward\": \"18.5 ms\", \"backward\": \"36 ms\"");
  }
  costs.stated = stated;
  costs.communication_free = true;
}

}  // namespace

void read_costs(JsonCursor& section, CostSpec& costs) {
  constexpr std::string_view kNames[] = {"calibrated", "constant"};
  constexpr std::string_view kModels[] = {"constant", "stated"};
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
    word = at->choice(kModels).value_or("");
  }
  if (word == "stated") {
    read_stated(section, costs);
    section.finish();
    return;
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
