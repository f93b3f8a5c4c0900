#include "sim/lower/expert_loads.h"

#include "sim/base/random.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

constexpr std::uint64_t kLoadDraw = 2;  ///< purpose of a draw
constexpr double kStep = 64.0;

/// Hottest over mean of one layer and micro-batch.
struct Sums {
  double most = 0.0, all = 0.0;
  std::int64_t ranks = 0;
  void add(double load) {
    most = std::max(most, load);
    all += load;
    ++ranks;
  }
  double hottest() const { return all > 0.0 ? most * static_cast<double>(ranks) / all : 1.0; }
};

}  // namespace

ExpertLoads::ExpertLoads(const Scenario& scenario) : micro_batches_(scenario.micro_batches()) {
  for (std::size_t i = 0; i < scenario.perturbations.size(); ++i) {
    const Perturbation& perturbation = scenario.perturbations[i];
    if (perturbation.kind == "expert_imbalance") {
      factor_ *= perturbation.factor;
      multiply(scenario, i);
    }
  }
}

void ExpertLoads::multiply(const Scenario& scenario, std::size_t index) {
  const Perturbation& perturbation = scenario.perturbations[index];
  if (perturbation.loads.empty() && perturbation.distribution.empty()) {
    return;
  }
  const auto cells = static_cast<std::size_t>(scenario.model.layers * micro_batches_);
  std::vector<Sums> sums(cells);
  for (const ExpertLoad& row : perturbation.loads) {
    sums[static_cast<std::size_t>(row.layer * micro_batches_ + row.micro_batch)].add(row.load);
  }
  const std::uint64_t purpose = kLoadDraw + (static_cast<std::uint64_t>(index) << 8U);
  const auto ranks = static_cast<std::size_t>(scenario.parallelism.ep);
  for (std::size_t cell = 0; cell < cells && !perturbation.distribution.empty(); ++cell) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const double draw = random_normal(scenario.seed, purpose, cell * ranks + rank);
      sums[cell].add(std::exp(perturbation.sigma * draw));
    }
  }
  loads_.resize(cells, 1.0);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    loads_[cell] *= sums[cell].hottest();
  }
}

double ExpertLoads::at(std::int64_t layer, std::int64_t micro_batch) const {
  if (loads_.empty()) {
    return factor_;
  }
  const double load =
      factor_ * loads_[static_cast<std::size_t>(layer * micro_batches_ + micro_batch)];
  return std::ceil(load * kStep) / kStep;
}

}  // namespace foretrain
