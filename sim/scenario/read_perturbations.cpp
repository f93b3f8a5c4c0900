#include "sim/scenario/named_file.h"
#include "sim/scenario/sections.h"

#include <set>

namespace foretrain {
namespace {

constexpr NumberRange kFactor = {0.001, 1e6};

void read_indices(JsonCursor& entry, std::string_view key, std::vector<std::int64_t>& indices) {
  const std::optional<JsonCursor> at = entry.require(key, "e.g. [17]");
  if (!at) {
    return;
  }
  std::set<std::int64_t> seen;
  for (const JsonCursor& entry_index : at->elements()) {
    const std::optional<std::int64_t> index = entry_index.integer();
    indices.push_back(index.value_or(0));
    if (index && !seen.insert(*index).second) {
      entry_index.fault(std::to_string(*index) + " stands twice",
                        "name each of the " + std::string(key) + " once");
    }
  }
  if (at->is_array() && indices.empty()) {
    at->fault("names none", "e.g. [17]");
  }
}

void require_factor(JsonCursor& entry, double& factor, NumberRange range = kFactor) {
  if (const std::optional<JsonCursor> at = entry.require("factor", "durations times this")) {
    factor = at->number(range).value_or(1.0);
  }
}

void read_steps(JsonCursor& entry, std::optional<StepWindow>& steps) {
  const std::optional<JsonCursor> at = entry.member("steps");
  if (!at) {
    return;
  }
  const std::vector<JsonCursor> ends = at->elements();
  if (ends.size() != 2) {
    if (at->is_array()) {
      at->fault("must be [first, last]", "e.g. [0, 9]");
    }
    return;
  }
  const std::optional<std::int64_t> first = ends[0].integer();
  const std::optional<std::int64_t> last = ends[1].integer();
  if (first && last && *first > *last) {
    at->fault("first " + std::to_string(*first) + " is after last " + std::to_string(*last));
  } else if (first && last) {
    steps = StepWindow{*first, *last};
  }
}

void read_jitter(JsonCursor& entry, Perturbation& perturbation) {
  constexpr std::string_view kScopes[] = {"kernel", "step", "rank"};
  constexpr std::string_view kDistributions[] = {"lognormal"};
  perturbation.scope = "kernel";
  perturbation.distribution = "lognormal";
  entry.read("scope", perturbation.scope, kScopes);
  entry.read("distribution", perturbation.distribution, kDistributions);
  if (const std::optional<JsonCursor> at = entry.require("sigma", "e.g. 0.05")) {
    perturbation.sigma = at->number({0.0, 10.0}).value_or(0.0);
  }
}

void read_pause(JsonCursor& entry, Perturbation& perturbation) {
  if (const std::optional<JsonCursor> at = entry.member("ranks"); at && at->is_string()) {
    constexpr std::string_view kAll[] = {"all"};
    perturbation.all_ranks = at->choice(kAll).has_value();
  } else {
    read_indices(entry, "ranks", perturbation.ranks);
  }
  if (const std::optional<JsonCursor> at = entry.require("length", "e.g. \"50 ms\"")) {
    perturbation.length = at->duration().value_or(Duration{});
  }
  if (const std::optional<JsonCursor> at = entry.require("period", "e.g. \"10 s\"")) {
    perturbation.period = at->duration().value_or(perturbation.length);
    if (perturbation.period < perturbation.length || perturbation.period == Duration{}) {
      at->fault("must be at least the length of the pause, and above 0");
    }
  }
  entry.read("in_phase", perturbation.in_phase);
}

/// A distribution or a file of measured values.
void read_load(JsonCursor& entry,
               Perturbation& perturbation,
               std::string_view alternative,
               const std::string& base_directory) {
  const bool file = entry.read("file", perturbation.file);
  perturbation.file = file ? resolve_path(perturbation.file, base_directory) : "";
  const bool other = entry.member(alternative).has_value();
  if (file == other) {
    entry.fault(file ? "has a file and a " + std::string(alternative)
                     : "needs a file or a " + std::string(alternative),
                "give one of them");
  }
}

void read_sequence_lengths(JsonCursor& entry,
                           Perturbation& perturbation,
                           const std::string& base_directory) {
  constexpr std::string_view kDistributions[] = {"lognormal", "uniform"};
  read_load(entry, perturbation, "distribution", base_directory);
  entry.read("distribution", perturbation.distribution, kDistributions);
  entry.read("sigma", perturbation.sigma, {0.0, 10.0});
}

/// One factor for all, a distribution over ranks, or measured loads.
void read_expert_imbalance(JsonCursor& entry,
                           Perturbation& perturbation,
                           const std::string& base_directory) {
  constexpr std::string_view kDistributions[] = {"lognormal"};
  const int forms =
      (entry.read("factor", perturbation.factor, {1.0, 1e6}) ? 1 : 0) +
      (entry.read("distribution", perturbation.distribution, kDistributions) ? 1 : 0) +
      (entry.read("file", perturbation.file) ? 1 : 0);
  if (forms != 1) {
    entry.fault(forms == 0 ? "needs a factor, a distribution or a file of loads"
                           : "has more than one of factor, distribution and file",
                "give one of them");
  }
  if (!perturbation.distribution.empty()) {
    if (const std::optional<JsonCursor> at = entry.require("sigma", "e.g. 0.3")) {
      perturbation.sigma = at->number({0.0, 10.0}).value_or(0.0);
    }
  }
  if (!perturbation.file.empty()) {
    perturbation.file = resolve_path(perturbation.file, base_directory);
    perturbation.loads = read_expert_loads(*entry.member("file"), perturbation.file);
  }
}

void read_one(JsonCursor& entry, Perturbation& perturbation, const std::string& base_directory) {
  constexpr std::string_view kKinds[] = {"slow_gpu",
                                         "slow_node",
                                         "slow_link",
                                         "jitter",
                                         "pause",
                                         "sequence_lengths",
                                         "expert_imbalance"};
  if (!entry.expect_object()) {
    return;
  }
  const std::optional<JsonCursor> kind = entry.require("kind", "e.g. \"slow_gpu\"");
  perturbation.kind = kind ? kind->choice(kKinds).value_or("") : "";
  if (perturbation.kind.empty()) {
    return;
  }
  if (perturbation.kind == "slow_gpu") {
    read_indices(entry, "ranks", perturbation.ranks);
    require_factor(entry, perturbation.factor);
  } else if (perturbation.kind == "slow_node") {
    read_indices(entry, "nodes", perturbation.nodes);
    require_factor(entry, perturbation.factor);
  } else if (perturbation.kind == "slow_link") {
    if (const std::optional<JsonCursor> at = entry.require("link", "as topology prints it")) {
      perturbation.link = at->string().value_or("");
    }
    require_factor(entry, perturbation.factor);
  } else if (perturbation.kind == "jitter") {
    read_jitter(entry, perturbation);
  } else if (perturbation.kind == "pause") {
    read_pause(entry, perturbation);
  } else if (perturbation.kind == "sequence_lengths") {
    read_sequence_lengths(entry, perturbation, base_directory);
  } else {
    read_expert_imbalance(entry, perturbation, base_directory);
  }
  read_steps(entry, perturbation.steps);
  entry.finish();
}

}  // namespace

void read_perturbations(JsonCursor& section,
                        std::vector<Perturbation>& perturbations,
                        const std::string& base_directory) {
  for (JsonCursor& entry : section.elements()) {
    perturbations.emplace_back();
    read_one(entry, perturbations.back(), base_directory);
  }
}

}  // namespace foretrain
