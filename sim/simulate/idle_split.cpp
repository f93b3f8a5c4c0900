#include "sim/base/check.h"
#include "sim/simulate/contention.h"
#include "sim/simulate/parts.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace foretrain {
namespace {

/// Runs a variant of a program that has already run to its end once.
Timeline run_variant(const Program& program, const RunOptions& options) {
  RunOptions quiet = options;
  quiet.recorded_instances.clear();
  RunResult result = run(program, quiet);
  FORETRAIN_CHECK(std::holds_alternative<Timeline>(result), "a variant cannot deadlock");
  return std::get<Timeline>(std::move(result));
}

std::int64_t rank_count(const Program& program) {
  std::int64_t ranks = 0;
  for (const Instance& instance : program.instances) {
    ranks += instance.multiplicity;
  }
  return ranks;
}

bool has_point_to_point(const Program& program) {
  return std::any_of(program.blocks.begin(), program.blocks.end(), [](const Block& block) {
    return std::any_of(block.tasks.begin(), block.tasks.end(), [](const Task& task) {
      return task.kind == TaskKind::kSend;
    });
  });
}

/// Loads of experts and slow links are in the work of a program, the others factors on it.
bool is_in_the_work(const Perturbation& perturbation) {
  return perturbation.kind == "expert_imbalance" || perturbation.kind == "slow_link";
}

bool changes_the_work(const Scenario& scenario) {
  return std::any_of(scenario.perturbations.begin(), scenario.perturbations.end(), is_in_the_work);
}

bool is_perturbed(const Scenario& scenario, const Program& program) {
  return changes_the_work(scenario) ||
         std::any_of(program.instances.begin(),
                     program.instances.end(),
                     [](const Instance& instance) { return instance.factor_set != 0; });
}

/// The classes of a scenario with fewer perturbations: what runs beside what is another there.
Program classes_of(const Scenario& kinder, const RunOptions& options) {
  Expected<Lowered> without = lower(kinder);
  FORETRAIN_CHECK(without.has_value(), "a scenario without a perturbation is legal too");
  Program classes = fold(without->program).program;
  settle_contention(kinder, without->facts.settled_blocks, options, without->program, classes);
  return classes;
}

Program without_perturbations(const Scenario& scenario,
                              const Lowered& lowered,
                              const RunOptions& options) {
  if (!changes_the_work(scenario)) {
    return fold(without_factors(lowered.program)).program;
  }
  Scenario kinder = scenario;
  kinder.perturbations.clear();
  return classes_of(kinder, options);
}

Program without_perturbation(const Scenario& scenario,
                             const Lowered& lowered,
                             std::size_t index,
                             const RunOptions& options) {
  if (is_in_the_work(scenario.perturbations[index])) {
    Scenario kinder = scenario;
    kinder.perturbations.erase(kinder.perturbations.begin() + static_cast<std::ptrdiff_t>(index));
    return classes_of(kinder, options);
  }
  Program without = lowered.program;
  apply_perturbations(scenario, static_cast<std::int64_t>(index), without);
  return fold(without).program;
}

}  // namespace

Duration step_time(const Timeline& timeline) {
  const auto steps = static_cast<std::int64_t>(timeline.step_ends.size()) - 1;
  return (timeline.step_ends.back() - timeline.step_ends.front()) /
         std::max<std::int64_t>(steps, 1);
}

Duration mean_idle(const Program& program, const Timeline& timeline) {
  const auto steps = static_cast<std::int64_t>(timeline.step_ends.size()) - 1;
  const Duration run = timeline.step_ends.back() - timeline.step_ends.front();
  // A rank's own window ends with its own optimizer: what the job's steps last beyond it is idle
  // too.
  const Int128 sum = sum_over_ranks(program, timeline, [run](const RankAccount& account) {
    return (account.idle + run - account.window).count();
  });
  return mean_of(sum, rank_count(program), std::max<std::int64_t>(steps, 1));
}

IdleSplit split_idle(const Scenario& scenario,
                     const Lowered& lowered,
                     const Program& folded,
                     Duration idle,
                     const RunOptions& options,
                     RunCount& runs) {
  Duration left = idle;
  // Runs a kinder program and returns what it saves; never negative, so parts cannot cancel.
  const auto saved = [&left, &options, &runs](const Program& program) {
    runs.next();
    const Duration now = std::min(left, mean_idle(program, run_variant(program, options)));
    return std::exchange(left, now) - now;
  };
  IdleSplit split;
  Program kinder = folded;
  if (is_perturbed(scenario, lowered.program)) {
    kinder = without_perturbations(scenario, lowered, options);
    split.straggler = saved(kinder);
  }
  if (has_point_to_point(kinder)) {
    kinder = with_free_point_to_point(kinder);
    split.point_to_point = saved(kinder);
  }
  if (kinder.templates.size() > 1) {
    kinder = with_equal_calls(kinder);
    split.imbalance = saved(kinder);
  }
  split.bubble = left;
  return split;
}

int idle_split_runs(const Scenario& scenario, const Program& full, const Program& folded) {
  return (is_perturbed(scenario, full) ? 1 : 0) + (has_point_to_point(folded) ? 1 : 0) +
         (folded.templates.size() > 1 ? 1 : 0);
}

std::vector<StragglerCost> straggler_costs(const Scenario& scenario,
                                           const Lowered& lowered,
                                           Duration step,
                                           const RunOptions& options,
                                           RunCount& runs) {
  std::vector<StragglerCost> costs;
  for (std::size_t i = 0; i < scenario.perturbations.size(); ++i) {
    runs.next();
    const Program without = without_perturbation(scenario, lowered, i, options);
    const Duration faster = step_time(run_variant(without, options));
    const Duration cost = step - faster;
    costs.push_back({lowered.facts.stragglers[i], cost, seconds(cost) / seconds(step)});
  }
  return costs;
}

}  // namespace foretrain
