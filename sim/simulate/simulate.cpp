#include "foretrain/simulate.h"

#include "sim/base/check.h"
#include "sim/base/edit_distance.h"
#include "sim/base/format.h"
#include "sim/simulate/contention.h"
#include "sim/simulate/parts.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
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

/// Above this many records the critical path is left out rather than the memory spent.
constexpr std::int64_t kMostSpans = 2'500'000;

std::int64_t span_count(const Program& program, int steps) {
  std::int64_t spans = 0;
  for (const Instance& instance : program.instances) {
    spans += program.templates[static_cast<std::size_t>(instance.template_index)].task_count;
  }
  return spans * steps;
}

/// The report of a run that stopped: who waits for what.
StepReport deadlock_report(const Scenario& scenario,
                           const Lowered& lowered,
                           const Program& classes,
                           const Deadlock& deadlock) {
  StepReport report;
  report.deadlock = true;
  for (const BlockedTask& task : deadlock.blocked) {
    report.blocked.push_back({std::to_string(task.rank), task.task, task.waiting_for});
  }
  report.deadlock_grid = deadlock_grid(classes, lowered, deadlock);
  report.header.name = scenario.name;
  report.header.scenario_json = write_scenario(scenario);
  return report;
}

bool has_path(const Program& folded, const RunOptions& options) {
  return span_count(folded, options.measured_steps) <= kMostSpans;
}

/// The critical path of the folded program's last step; empty when it has too many classes.
std::vector<PathShare> path_of(const Program& folded, RunOptions options, RunCount& runs) {
  if (!has_path(folded, options)) {
    return {};
  }
  runs.next();
  options.recorded_instances.resize(folded.instances.size());
  std::iota(options.recorded_instances.begin(), options.recorded_instances.end(), 0);
  const RunResult result = run(folded, options);
  const auto* timeline = std::get_if<Timeline>(&result);
  return timeline == nullptr ? std::vector<PathShare>{} : critical_path(folded, *timeline);
}

/// Ranks a trace shows: those asked for, else the first of each pipeline stage.
std::vector<std::int64_t> ranks_to_show(const Program& program,
                                        const std::vector<std::int64_t>& asked) {
  if (!asked.empty()) {
    return asked;
  }
  std::vector<std::int64_t> ranks;
  std::vector<bool> seen(program.templates.size(), false);
  for (const Instance& instance : program.instances) {
    const Template& body = program.templates[static_cast<std::size_t>(instance.template_index)];
    if (!seen[static_cast<std::size_t>(body.stage)]) {
      seen[static_cast<std::size_t>(body.stage)] = true;
      ranks.push_back(instance.rank);
    }
  }
  return ranks;
}

/// Runs once more for the trace. Ranks shown keep a class of their own, so that each has its spans.
void record_trace(const Scenario& scenario,
                  Program program,
                  const Topology& topology,
                  const std::vector<std::int32_t>& links,
                  const SimulateOptions& options,
                  Simulation& simulation) {
  const std::vector<std::int64_t> ranks = ranks_to_show(program, options.trace_ranks);
  for (const std::int64_t rank : ranks) {
    program.instances[static_cast<std::size_t>(rank)].mark = static_cast<std::int32_t>(rank) + 1;
  }
  FoldedProgram folded = fold(program);
  RunOptions run_options;
  run_options.evaluator = options.evaluator;
  run_options.measured_steps = options.steps;
  std::vector<std::int32_t>& recorded = run_options.recorded_instances;
  for (const std::int64_t rank : ranks) {
    recorded.push_back(folded.class_of[static_cast<std::size_t>(rank)]);
  }
  std::vector<std::int32_t> shown = recorded;
  std::sort(shown.begin(), shown.end());
  std::vector<std::vector<LinkCrossing>> crossings;
  for (const std::int32_t link : links) {
    crossings.push_back(crossings_of(scenario, program, topology, link));
    for (const LinkCrossing& crossing : crossings.back()) {
      recorded.push_back(folded.class_of[static_cast<std::size_t>(crossing.rank)]);
    }
  }
  std::sort(recorded.begin(), recorded.end());
  recorded.erase(std::unique(recorded.begin(), recorded.end()), recorded.end());
  RunResult result = run(folded.program, run_options);
  simulation.program = std::move(folded.program);
  simulation.timeline = std::get<Timeline>(std::move(result));
  for (std::size_t i = 0; i < links.size(); ++i) {
    simulation.links.push_back(link_track(simulation.program,
                                          simulation.timeline,
                                          folded.class_of,
                                          crossings[i],
                                          topology.links()[static_cast<std::size_t>(links[i])]));
  }
  std::erase_if(simulation.timeline.spans, [&shown](const Span& span) {
    return !std::binary_search(shown.begin(), shown.end(), span.instance);
  });
}

/// Indices of links by their ids.
Expected<std::vector<std::int32_t>> links_named(const std::vector<std::string>& ids,
                                                const Topology& topology) {
  std::vector<Diagnostic> faults;
  std::vector<std::int32_t> links;
  if (ids.empty()) {
    return links;
  }
  std::vector<std::string> known;
  for (const Link& link : topology.links()) {
    known.push_back(link.id);
  }
  for (const std::string& id : ids) {
    const auto found = std::find(known.begin(), known.end(), id);
    if (found == known.end()) {
      faults.push_back({"/trace-links", "no link \"" + id + "\"", did_you_mean(id, known)});
    } else {
      links.push_back(static_cast<std::int32_t>(found - known.begin()));
    }
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return links;
}

/// Members of each kind's groups; 1 where a kind has none.
std::vector<std::int64_t> group_sizes_of(const Program& program) {
  std::vector<std::int64_t> sizes;
  for (const std::vector<std::vector<std::int32_t>>& groups : program.groups) {
    sizes.push_back(1);
    for (const std::vector<std::int32_t>& members : groups) {
      sizes.back() = std::max(sizes.back(), static_cast<std::int64_t>(members.size()));
    }
  }
  return sizes;
}

/// How often the program runs: once, and once more for each question about the result.
RunCount count_runs(const Scenario& scenario,
                    const SimulateOptions& options,
                    const Program& full,
                    const Program& folded,
                    const RunOptions& run_options) {
  const int questions = idle_split_runs(scenario, full, folded) +
                        (has_path(folded, run_options) ? 1 : 0) +
                        static_cast<int>(scenario.perturbations.size());
  const int total = 1 + (options.times_only ? 0 : questions) + (options.record ? 1 : 0);
  return {options.progress, total};
}

std::vector<Diagnostic> refusals(const Scenario& scenario, const SimulateOptions& options) {
  std::vector<Diagnostic> refused = not_simulated(scenario);
  if (options.evaluator == Evaluator::kDataflow && scenario.network.mode == "flow") {
    refused.push_back({"/network/mode",
                       "the dataflow evaluator cannot share links between transfers",
                       "evaluator auto or event, or network mode \"analytic\""});
  }
  if (!refused.empty()) {
    std::vector<Diagnostic> cluster = cluster_faults(scenario);
    refused.insert(refused.end(), cluster.begin(), cluster.end());
  }
  return refused;
}

std::string evaluator_of(const SimulateOptions& options, const Program& program) {
  const bool events = options.evaluator == Evaluator::kEvent || program.shares_links();
  return events ? "event" : "dataflow";
}

/// What further runs tell about a step: its longest path, and what each perturbation costs.
void explain(const Scenario& scenario,
             const Lowered& lowered,
             const Program& classes,
             const RunOptions& options,
             RunCount& runs,
             StepReport& report) {
  report.critical_path = path_of(classes, options, runs);
  if (report.critical_path.empty()) {
    report.notes.push_back("longest path left out: it would take more than " +
                           with_commas(kMostSpans) + " task records");
  } else if (options.measured_steps > 1) {
    report.notes.push_back("the longest path is that of the last step");
  }
  report.stragglers = straggler_costs(scenario, lowered, report.step_time, options, runs);
}

/// What was done about kernels and transfers beside one another.
void add_contention(const ContentionOutcome& contention, StepReport& report) {
  constexpr double kTold = 0.001;
  if (!contention.note.empty()) {
    report.notes.push_back(contention.note);
  }
  if (contention.slowed > 0) {
    report.assumed.push_back("kernels " + percent(contention.slowed) +
                             " slower for the transfers beside them");
  }
  if (contention.step) {
    const double left = seconds(report.step_time - *contention.step) / seconds(report.step_time);
    if (std::abs(left) > kTold && report.steps.n == 1) {
      report.notes.push_back(
          "slowdown by transfers beside kernels not settled: the last pass "
          "moved the step by " +
          percent(left, 2));
    }
  }
}

/// About the run itself; its time and memory are known at its end.
void add_facts(const Scenario& scenario, const SimulateOptions& options, Simulation& simulation) {
  SimulationFacts& facts = simulation.report.simulation;
  facts.evaluator = evaluator_of(options, simulation.program);
  facts.ranks_total = scenario.cluster.gpus;
  facts.ranks_simulated = static_cast<std::int64_t>(simulation.program.instances.size());
  facts.tasks = simulation.timeline.tasks;
  facts.seed = scenario.seed;
  facts.version = std::string(version());
}

}  // namespace

std::string_view version() {
  return FORETRAIN_VERSION;
}

Expected<Simulation> simulate(const Scenario& scenario, const SimulateOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  if (std::vector<Diagnostic> refused = refusals(scenario, options); !refused.empty()) {
    return refuse(std::move(refused));
  }
  Expected<Lowered> lowered = lower(scenario);
  if (!lowered) {
    return tl::unexpected(std::move(lowered.error()));
  }
  const Expected<Topology> topology = topology_of(scenario);
  FORETRAIN_CHECK(topology.has_value(), "a cluster that was lowered");
  const Expected<std::vector<std::int32_t>> links = links_named(options.trace_links, *topology);
  if (!links) {
    return tl::unexpected(links.error());
  }
  Simulation simulation;
  simulation.schedule = lowered->schedule;
  simulation.chunk_costs = lowered->chunk_costs;
  if (options.memory_only) {
    judge_memory(scenario, lowered->facts, simulation.report);
    return simulation;
  }
  Program folded = fold(lowered->program).program;
  RunOptions run_options;
  run_options.evaluator = options.evaluator;
  run_options.measured_steps = options.steps;
  const ContentionOutcome contention = settle_contention(
      scenario, lowered->facts.settled_blocks, run_options, lowered->program, folded);

  RunCount runs = count_runs(scenario, options, lowered->program, folded, run_options);
  runs.next();
  simulation.group_sizes = group_sizes_of(lowered->program);
  simulation.program = options.all_ranks ? lowered->program : std::move(folded);
  const Program& classes = options.all_ranks ? folded : simulation.program;
  RunResult result = run(simulation.program, run_options);
  StepReport& report = simulation.report;
  if (std::holds_alternative<Deadlock>(result)) {
    // Told by classes of ranks, however many of them ran.
    const RunResult told = options.all_ranks ? run(classes, run_options) : std::move(result);
    report = deadlock_report(scenario, *lowered, classes, std::get<Deadlock>(told));
  } else {
    simulation.timeline = std::get<Timeline>(std::move(result));
    const auto assembled = [&](const IdleSplit& idle) {
      return assemble_report(scenario,
                             *lowered,
                             simulation.program,
                             simulation.timeline,
                             idle,
                             options.flops_convention);
    };
    const Duration idle = mean_idle(simulation.program, simulation.timeline);
    if (options.times_only) {
      report = assembled({.bubble = idle});
    } else {
      report = assembled(split_idle(scenario, *lowered, classes, idle, run_options, runs));
      explain(scenario, *lowered, classes, run_options, runs, report);
      report.busiest_links = busiest_links(scenario, lowered->program, *topology, report.step_time);
    }
    add_contention(contention, report);
  }
  add_facts(scenario, options, simulation);
  if (options.record && !report.deadlock) {
    runs.next();
    record_trace(scenario, std::move(lowered->program), *topology, *links, options, simulation);
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - started;
  report.simulation.wall_s = wall.count();
  report.simulation.peak_rss_bytes = peak_rss_bytes();
  return simulation;
}

}  // namespace foretrain
