#include "foretrain/simulate.h"

#include "sim/simulate/parts.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <sys/resource.h>

namespace foretrain {
namespace {

std::int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;  // Linux counts KiB
}

/// Ranks whose spans are kept: those asked for, else one per pipeline stage of the first replica.
std::vector<std::int64_t> ranks_to_record(const Program& program, const SimulateOptions& options) {
  if (!options.record || !options.trace_ranks.empty()) {
    return options.trace_ranks;
  }
  std::vector<std::int64_t> ranks;
  std::vector<bool> seen(program.templates.size(), false);
  for (const Instance& instance : program.instances) {
    const auto stage = static_cast<std::size_t>(
        program.templates[static_cast<std::size_t>(instance.template_index)].stage);
    if (!seen[stage]) {
      seen[stage] = true;
      ranks.push_back(instance.rank);
    }
  }
  return ranks;
}

/// The report of a run that stopped: who waits for what.
StepReport deadlock_report(const Deadlock& deadlock) {
  StepReport report;
  report.deadlock = true;
  for (const BlockedTask& task : deadlock.blocked) {
    report.blocked.push_back({std::to_string(task.rank), task.task, task.waiting_for});
  }
  return report;
}

}  // namespace

std::string_view version() {
  return FORETRAIN_VERSION;
}

Expected<Simulation> simulate(const Scenario& scenario, const SimulateOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  if (std::vector<Diagnostic> refused = not_simulated(scenario); !refused.empty()) {
    return refuse(std::move(refused));
  }
  Expected<Lowered> lowered = lower(scenario);
  if (!lowered) {
    return tl::unexpected(std::move(lowered.error()));
  }
  const std::vector<std::int64_t> recorded = ranks_to_record(lowered->program, options);
  if (options.record) {
    // Ranks asked for by name keep a class of their own, so that the trace shows each.
    for (const std::int64_t rank : options.trace_ranks) {
      lowered->program.instances[static_cast<std::size_t>(rank)].mark =
          static_cast<std::int32_t>(rank) + 1;
    }
  }
  FoldedProgram folded = fold(lowered->program);
  RunOptions run_options;
  run_options.evaluator = options.evaluator;
  run_options.measured_steps = options.steps;

  Simulation simulation;
  simulation.program = options.all_ranks ? lowered->program : folded.program;
  RunOptions main_options = run_options;
  if (options.record) {
    for (const std::int64_t rank : recorded) {
      const auto index = static_cast<std::size_t>(rank);
      main_options.recorded_instances.push_back(options.all_ranks ? static_cast<std::int32_t>(rank)
                                                                  : folded.class_of[index]);
    }
  }
  RunResult result = run(simulation.program, main_options);
  StepReport& report = simulation.report;
  if (const auto* deadlock = std::get_if<Deadlock>(&result)) {
    report = deadlock_report(*deadlock);
    report.header.scenario_json = write_scenario(scenario);
  } else {
    simulation.timeline = std::get<Timeline>(std::move(result));
    const IdleSplit idle = split_idle(lowered->program,
                                      folded.program,
                                      mean_idle(simulation.program, simulation.timeline),
                                      run_options);
    report = assemble_report(scenario,
                             *lowered,
                             simulation.program,
                             simulation.timeline,
                             idle,
                             options.flops_convention);
    report.stragglers = straggler_costs(scenario, *lowered, report.step_time, run_options);
  }
  SimulationFacts& facts = report.simulation;
  facts.evaluator = options.evaluator == Evaluator::kEvent ? "event" : "dataflow";
  facts.ranks_total = scenario.cluster.gpus;
  facts.ranks_simulated = static_cast<std::int64_t>(simulation.program.instances.size());
  facts.tasks = simulation.timeline.tasks;
  facts.seed = scenario.seed;
  facts.version = std::string(version());
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - started;
  facts.wall_s = wall.count();
  facts.peak_rss_bytes = peak_rss_bytes();
  return simulation;
}

}  // namespace foretrain
