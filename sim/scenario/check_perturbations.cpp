// What a scenario asks of perturbations: ranks, nodes and experts that exist.
#include "sim/base/format.h"
#include "sim/scenario/rules.h"

#include <algorithm>

namespace foretrain {
namespace {

/// A file of loads says one for every layer with experts, micro-batch and expert-parallel rank.
void check_loads(const Scenario& scenario,
                 const Perturbation& entry,
                 const std::string& pointer,
                 Rules& rules) {
  if (!rules.sound({"/model", "/parallelism", "/training/global_batch_size"})) {
    return;
  }
  const std::int64_t first = scenario.model.dense_first;
  const std::int64_t layers = scenario.model.layers;
  const std::int64_t count = scenario.micro_batches();
  const std::int64_t ranks = scenario.parallelism.ep;
  std::vector<bool> seen(static_cast<std::size_t>((layers - first) * count * ranks), false);
  for (const ExpertLoad& row : entry.loads) {
    const bool known =
        row.layer >= first && row.layer < layers && row.micro_batch < count && row.rank < ranks;
    const auto place = static_cast<std::size_t>(
        known ? ((row.layer - first) * count + row.micro_batch) * ranks + row.rank : 0);
    if (!known || seen[place]) {
      rules.fault(pointer,
                  "layer " + std::to_string(row.layer) + ", micro-batch " +
                      std::to_string(row.micro_batch) + ", rank " + std::to_string(row.rank) +
                      (known ? " stands twice" : " does not exist"),
                  "layers " + std::to_string(first) + " to " + std::to_string(layers - 1) + ", " +
                      std::to_string(count) + " " + plural("micro-batch", count) + ", ep " +
                      std::to_string(ranks));
      return;
    }
    seen[place] = true;
  }
  const auto missing = std::find(seen.begin(), seen.end(), false) - seen.begin();
  if (missing < static_cast<std::ptrdiff_t>(seen.size())) {
    rules.fault(pointer,
                "has no load for layer " + std::to_string(first + missing / ranks / count) +
                    ", micro-batch " + std::to_string(missing / ranks % count) + ", rank " +
                    std::to_string(missing % ranks),
                "one row for each of " + std::to_string(static_cast<std::int64_t>(seen.size())));
  }
}

/// Every token sends a rank at most min(k, E / ep) of its k copies, and k / ep on average.
void check_imbalance(const Scenario& scenario,
                     const Perturbation& entry,
                     const std::string& pointer,
                     Rules& rules) {
  const ModelConfig& model = scenario.model;
  const std::int64_t ep = scenario.parallelism.ep;
  if (entry.kind != "expert_imbalance" || !rules.sound({"/model", "/parallelism/ep"})) {
    return;
  }
  if (model.experts == 0) {
    rules.fault(pointer + "/kind", "the model has no experts", "leave it out");
    return;
  }
  const double most = static_cast<double>(std::min(model.experts_per_token, model.experts / ep)) *
                      static_cast<double>(ep) / static_cast<double>(model.experts_per_token);
  if (entry.factor > most) {
    rules.fault(
        pointer + "/factor",
        "with ep " + std::to_string(ep) + " and top-" + std::to_string(model.experts_per_token) +
            " of " + std::to_string(model.experts) +
            " experts no rank can have so much more than the mean",
        ep == 1 ? "ep 1 has nothing to balance: leave it out" : "at most " + std::to_string(most));
  }
}

}  // namespace

void check_perturbations(const Scenario& scenario, Rules& rules) {
  if (!rules.sound({"/cluster"})) {
    return;
  }
  const std::int64_t gpus = scenario.cluster.gpus;
  const std::int64_t per_node = scenario.cluster.hardware.gpus_per_node;
  const std::int64_t nodes = (gpus + per_node - 1) / per_node;
  for (std::size_t index = 0; index < scenario.perturbations.size(); ++index) {
    const Perturbation& entry = scenario.perturbations[index];
    const std::string pointer = "/perturbations/" + std::to_string(index);
    const auto below =
        [&](const std::vector<std::int64_t>& values, const std::string& key, std::int64_t limit) {
          for (std::size_t at = 0; at < values.size(); ++at) {
            if (values[at] >= limit) {
              rules.fault(pointer + "/" + key + "/" + std::to_string(at),
                          std::to_string(values[at]) + " is none of the " + std::to_string(limit) +
                              " " + plural(key == "nodes" ? "node" : "GPU", limit),
                          limit == 1 ? "only 0" : "0 to " + std::to_string(limit - 1));
            }
          }
        };
    check_imbalance(scenario, entry, pointer, rules);
    const std::string file = pointer + "/file";
    if (entry.kind == "expert_imbalance" && !entry.file.empty() && rules.sound({file})) {
      check_loads(scenario, entry, file, rules);
    }
    below(entry.ranks, "ranks", gpus);
    below(entry.nodes, "nodes", nodes);
  }
}

}  // namespace foretrain
