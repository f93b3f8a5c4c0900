// How a step is executed: recomputation, overlap, network.
#include "sim/scenario/sections.h"

#include <algorithm>

namespace foretrain {
void read_recompute(JsonCursor& section, RecomputeSpec& recompute) {
  constexpr std::string_view kModules[] = {
      "core_attn", "layernorm", "mlp", "moe", "moe_act", "mla_up_proj", "shared_experts"};
  if (!section.expect_object()) {
    return;
  }
  const bool mode = read_word(section, "mode", kRecomputeModes, recompute.mode);
  if (const std::optional<JsonCursor> at = section.member("modules")) {
    if (mode && recompute.mode != RecomputeMode::kModules) {
      at->fault("only mode \"modules\" takes a list of modules", "set mode to \"modules\"");
    }
    recompute.mode = RecomputeMode::kModules;
    for (const JsonCursor& entry : at->elements()) {
      const std::string module = entry.choice(kModules).value_or("");
      const std::vector<std::string>& before = recompute.modules;
      if (!module.empty() && std::find(before.begin(), before.end(), module) != before.end()) {
        entry.fault(module + " stands twice", "name each module once");
      }
      recompute.modules.push_back(module);
    }
    if (at->is_array() && recompute.modules.empty()) {
      at->fault("names no module", "set mode to \"none\" to recompute nothing");
    }
  } else if (mode && recompute.mode == RecomputeMode::kModules) {
    section.require("modules", "e.g. [\"core_attn\", \"layernorm\"]");
  }
  if (const std::optional<JsonCursor> at = section.member("layers")) {
    recompute.layers = at->integer({0, 1'000'000});
    if (recompute.layers.value_or(0) > 0 && recompute.mode == RecomputeMode::kNone) {
      at->fault("mode \"none\" recomputes no layers", "set mode to \"full\" or \"selective\"");
    }
  }
  section.finish();
}

namespace {

/// As far as a program's stretches go (program_faults).
constexpr double kMostContention = 64.0;

/// "modelled", "none", or the factor itself.
void read_contention(const JsonCursor& at, OverlapSpec& overlap, StatedValues& stated) {
  constexpr std::string_view kWords[] = {"modelled", "none"};
  if (at.is_number()) {
    overlap.contention = at.number({1.0, kMostContention});
    return;
  }
  if (!at.is_string()) {
    at.fault("must be \"modelled\", \"none\" or a factor",
             "e.g. 1.2: kernels beside transfers take 1.2 times as long");
    return;
  }
  const std::string word = at.choice(kWords).value_or("");
  stated.modelled_contention = word == "modelled";
  if (stated.modelled_contention) {
    overlap.contention.reset();
  }
}

}  // namespace

void read_overlap(JsonCursor& section, OverlapSpec& overlap, StatedValues& stated) {
  if (!section.expect_object()) {
    return;
  }
  section.read("tp", overlap.tp);
  section.read("cp", overlap.cp);
  section.read("pp", overlap.pp);
  section.read("ep", overlap.ep);
  section.read("dp_grad", overlap.dp_grad);
  section.read("dp_param", overlap.dp_param);
  if (const std::optional<JsonCursor> at = section.member("contention")) {
    stated.contention = true;
    read_contention(*at, overlap, stated);
  }
  section.finish();
}

void read_network(JsonCursor& section, NetworkSpec& network) {
  constexpr std::string_view kModes[] = {"analytic", "flow"};
  constexpr std::string_view kRoutings[] = {"destination", "hashed", "single"};
  if (!section.expect_object()) {
    return;
  }
  section.read("mode", network.mode, kModes);
  section.read("routing", network.routing, kRoutings);
  section.finish();
}

}  // namespace foretrain
