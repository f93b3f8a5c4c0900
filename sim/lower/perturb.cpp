#include "sim/base/random.h"
#include "sim/lower/lower.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

constexpr std::uint64_t kRankJitter = 1;  ///< purpose of a draw

std::int64_t fixed_point(double factor) {
  return std::max<std::int64_t>(1, std::llround(factor * static_cast<double>(kUnitFactor)));
}

/// A slow device runs every kernel slower; the wire does not care.
void slow_down(Factors& factors, std::int64_t by) {
  for (const Resource resource : {Resource::kTensor, Resource::kMemory, Resource::kOptimizer}) {
    std::int64_t& factor = factors[static_cast<std::size_t>(resource)];
    factor = static_cast<std::int64_t>(static_cast<Int128>(factor) * by / kUnitFactor);
  }
}

/// Factor a perturbation gives one rank; 1.0 in fixed point when it does not touch it.
std::int64_t factor_for(const Perturbation& perturbation,
                        std::size_t index,
                        const Scenario& scenario,
                        std::int64_t rank) {
  const auto listed = [](const std::vector<std::int64_t>& list, std::int64_t value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  if (perturbation.kind == "slow_gpu" && listed(perturbation.ranks, rank)) {
    return fixed_point(perturbation.factor);
  }
  const std::int64_t node = rank / scenario.cluster.hardware.gpus_per_node;
  if (perturbation.kind == "slow_node" && listed(perturbation.nodes, node)) {
    return fixed_point(perturbation.factor);
  }
  if (perturbation.kind == "jitter" && perturbation.scope == "rank") {
    const std::uint64_t purpose = kRankJitter + (static_cast<std::uint64_t>(index) << 8U);
    const double draw = random_normal(scenario.seed, purpose, static_cast<std::uint64_t>(rank));
    return fixed_point(std::exp(perturbation.sigma * draw));
  }
  return kUnitFactor;
}

FactorSet factors_of(const Scenario& scenario, std::int64_t skip, std::int64_t rank) {
  FactorSet set;
  for (std::size_t i = 0; i < scenario.perturbations.size(); ++i) {
    if (static_cast<std::int64_t>(i) == skip) {
      continue;
    }
    const Perturbation& perturbation = scenario.perturbations[i];
    const std::int64_t factor = factor_for(perturbation, i, scenario, rank);
    if (factor == kUnitFactor) {
      continue;
    }
    if (perturbation.steps) {
      FactorWindow window;
      slow_down(window.factors, factor);
      window.first_step = perturbation.steps->first;
      window.last_step = perturbation.steps->last;
      set.windows.push_back(window);
    } else {
      slow_down(set.base, factor);
    }
  }
  return set;
}

std::string list_text(const std::vector<std::int64_t>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size() && i < 8; ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(values[i]);
  }
  return values.size() > 8 ? text + ",..." : text;
}

}  // namespace

void apply_perturbations(const Scenario& scenario, std::int64_t skip, Program& program) {
  program.factor_sets = {FactorSet{}};
  for (Instance& instance : program.instances) {
    const FactorSet set = factors_of(scenario, skip, instance.rank);
    instance.factor_set = 0;
    if (set == FactorSet{}) {
      continue;
    }
    instance.factor_set = static_cast<std::int32_t>(program.factor_sets.size());
    program.factor_sets.push_back(set);
  }
}

std::string perturbation_name(const Perturbation& perturbation) {
  if (perturbation.kind == "slow_gpu") {
    return "slow_gpu rank " + list_text(perturbation.ranks);
  }
  if (perturbation.kind == "slow_node") {
    return "slow_node node " + list_text(perturbation.nodes);
  }
  if (perturbation.kind == "slow_link") {
    return "slow_link " + perturbation.link;
  }
  if (perturbation.kind == "jitter") {
    return "jitter per " + perturbation.scope;
  }
  if (perturbation.kind == "expert_imbalance") {
    return "expert_imbalance " + (!perturbation.file.empty() ? "from a file"
                                  : !perturbation.distribution.empty()
                                      ? perturbation.distribution
                                      : std::string("by a factor"));
  }
  return perturbation.kind;
}

}  // namespace foretrain
