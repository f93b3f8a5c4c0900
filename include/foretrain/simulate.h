#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/engine.h"
#include "foretrain/model.h"
#include "foretrain/report.h"
#include "foretrain/scenario.h"

#include <cstdint>
#include <functional>
#include <vector>

/// Scenario in, report out.
namespace foretrain {

struct SimulateOptions {
  int steps = 1;
  bool all_ranks = false;
  Evaluator evaluator = Evaluator::kAuto;
  FlopsConvention flops_convention = FlopsConvention::kCausal;
  bool record = false;                    ///< keep spans for a trace
  std::vector<std::int64_t> trace_ranks;  ///< empty: one rank per pipeline stage of replica 0
  std::vector<std::string> trace_links;   ///< ids of links to follow over time
  /// Steps and memory only: one run, its idle time not split, no critical path, no stragglers.
  bool times_only = false;
  bool memory_only = false;  ///< nothing runs: the report holds memory's peak and verdict alone
  /// Called, where set, before each run of the program with the number of runs behind it.
  std::function<void(int done, int total)> progress;
};

struct Simulation {
  StepReport report;
  Program program;                        ///< the program whose timeline this is
  Timeline timeline;                      ///< empty after a deadlock
  std::vector<std::int64_t> group_sizes;  ///< ranks per group of each group kind, folded or not
  std::vector<LinkTrack> links;           ///< of those asked for
  Schedule schedule;
  ScheduleCosts chunk_costs;  ///< of the schedule's actions when nothing else runs
};

/// What a scenario asks for that is not simulated yet; empty: it can be simulated.
std::vector<Diagnostic> not_simulated(const Scenario& scenario);

/// Links and nodes that the scenario names and its cluster does not have; whatever else keeps the
/// cluster from being built. A ClusterCheck.
std::vector<Diagnostic> cluster_part_faults(const Scenario& scenario);

/// The same, or groups of the job that failed links part.
std::vector<Diagnostic> cluster_faults(const Scenario& scenario);

/// What simulate() refuses, nothing run: not_simulated(), cluster_faults(), a step that cannot be
/// counted.
std::vector<Diagnostic> simulation_faults(const Scenario& scenario);

/// Faults: simulation_faults(). Out of memory and deadlock are results, not faults.
Expected<Simulation> simulate(const Scenario& scenario, const SimulateOptions& options = {});

std::string_view version();

}  // namespace foretrain
