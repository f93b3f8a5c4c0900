// The way out for a scenario that does not fit: its neighbours, judged by the closed form.
#include "foretrain/search.h"
#include "sim/scenario/sections.h"
#include "sim/search/layout_rules.h"
#include "sim/search/sieve.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

/// A scenario as a search would come to it.
struct Neighbourhood {
  TrainingJob job;
  Layout layout;  ///< the scenario's own
  SearchAxes axes;
  Assumptions assumptions;
};

TrainingJob job_of(const Scenario& scenario) {
  TrainingJob job;
  job.model_reference = scenario.model_reference;
  job.topology = scenario.cluster.topology;
  job.model = scenario.model;
  job.hardware = scenario.cluster.hardware;
  job.gpus = scenario.cluster.gpus;
  job.sequence_length = scenario.training.sequence_length;
  job.global_batch_size = scenario.training.global_batch_size;
  return job;
}

bool is_uneven(const Parallelism& degrees) {
  const std::vector<std::int64_t>& stages = degrees.layers_per_stage;
  return std::any_of(
      stages.begin(), stages.end(), [&](std::int64_t layers) { return layers != stages.front(); });
}

SearchAxes axes_around(const Scenario& scenario, const Layout& layout) {
  SearchAxes axes;
  axes.micro_batch_sizes = {layout.micro_batch_size};
  while (axes.micro_batch_sizes.back() % 2 == 0) {
    axes.micro_batch_sizes.push_back(axes.micro_batch_sizes.back() / 2);
  }
  axes.vpp = {layout.vpp};
  axes.schedules = {layout.schedule};
  axes.orders = {layout.order};
  axes.recompute_layers = {layout.recompute_layers, kRecomputeAsNeeded};
  axes.shardings = {layout.sharding};
  for (const Sharding stronger : {Sharding::kZero1, Sharding::kZero2}) {
    if (stronger > layout.sharding) {
      axes.shardings.push_back(stronger);
    }
  }
  axes.uneven_stages = is_uneven(scenario.parallelism);
  return axes;
}

Neighbourhood neighbourhood(const Scenario& scenario, std::int64_t peak_bytes) {
  Neighbourhood around;
  around.job = job_of(scenario);
  around.layout = layout_of(scenario, ClosedForm::kWorkshop);
  if (axes_faults(scenario.model, {.schedules = {scenario.schedule.name}}).empty()) {
    around.layout.schedule = scenario.schedule.name;
  } else {
    around.layout.vpp = 1;  // counted as 1f1b
  }
  around.axes = axes_around(scenario, around.layout);
  Assumptions& given = around.assumptions;
  given = default_assumptions(ClosedForm::kChapter, scenario.model, scenario.cluster.hardware);
  given.gradient_bytes = static_cast<double>(bytes_per_element(scenario.training.dtype.grads));
  const Estimator estimator(scenario.model,
                            scenario.training.sequence_length,
                            scenario.training.global_batch_size,
                            given);
  // What the closed form leaves out (logits, buffers) takes the same share of a neighbour.
  const double left_out =
      static_cast<double>(peak_bytes) / estimator.estimate(around.layout).memory.total();
  given.memory_fraction = std::min(given.memory_fraction, given.memory_fraction / left_out);
  return around;
}

/// What of a layout differs from the scenario's, in the words of --set.
std::vector<std::string> settings_of(const Layout& own, const Estimate& estimate) {
  const Layout& other = estimate.layout;
  std::vector<std::string> settings;
  const auto number = [&settings](const char* path, std::int64_t before, std::int64_t after) {
    if (before != after) {
      settings.push_back(path + std::string("=") + std::to_string(after));
    }
  };
  number("parallelism.tp", own.tp, other.tp);
  number("parallelism.cp", own.cp, other.cp);
  number("parallelism.pp", own.pp, other.pp);
  number("parallelism.ep", own.ep, other.ep);
  number("parallelism.etp", own.etp, other.etp);
  number("training.micro_batch_size", own.micro_batch_size, other.micro_batch_size);
  if (own.sharding != other.sharding) {
    settings.push_back("parallelism.sharding=" +
                       std::string(kShardings[static_cast<std::size_t>(other.sharding)]));
  }
  if (estimate.recompute_layers != own.recompute_layers) {
    const std::int64_t of_chunk = (estimate.recompute_layers + other.vpp - 1) / other.vpp;
    settings.push_back(estimate.recompute_layers == 0 ? "recompute.mode=none"
                                                      : R"(recompute={"mode":"full","layers":)" +
                                                            std::to_string(of_chunk) + "}");
  }
  return settings;
}

}  // namespace

std::vector<FittingChange> changes_that_fit(const Scenario& scenario, std::int64_t peak_bytes) {
  const Neighbourhood around = neighbourhood(scenario, peak_bytes);
  if (!axes_faults(around.job.model, around.axes).empty()) {
    return {};
  }
  const Combinations combinations(around.job.model, around.axes);
  const Estimator estimator(around.job.model,
                            around.job.sequence_length,
                            around.job.global_batch_size,
                            around.assumptions);
  std::vector<FittingChange> changes;
  for (Estimate& estimate : sieve(around.job, around.axes, estimator, combinations, 1).feasible) {
    std::vector<std::string> settings = settings_of(around.layout, estimate);
    if (!settings.empty()) {
      changes.push_back({std::move(settings), std::move(estimate)});
    }
  }
  std::stable_sort(
      changes.begin(), changes.end(), [](const FittingChange& a, const FittingChange& b) {
        return a.settings.size() != b.settings.size() ? a.settings.size() < b.settings.size()
                                                      : a.estimate.mfu > b.estimate.mfu;
      });
  // As many layers recomputed as stated and as needed may be the same number.
  changes.erase(std::unique(changes.begin(),
                            changes.end(),
                            [](const FittingChange& a, const FittingChange& b) {
                              return a.settings == b.settings;
                            }),
                changes.end());
  return changes;
}

std::optional<Estimate> smallest_that_fits(const Scenario& scenario, std::int64_t peak_bytes) {
  Neighbourhood around = neighbourhood(scenario, peak_bytes);
  around.axes.uneven_stages = true;
  return smallest_that_fits(around.job, around.axes, around.assumptions);
}

}  // namespace foretrain
