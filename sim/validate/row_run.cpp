#include "sim/validate/row_run.h"

#include "foretrain/simulate.h"
#include "sim/validate/measured.h"
#include "sim/validate/read_settings.h"
#include "sim/validate/row_scenario.h"

#include <algorithm>
#include <utility>

namespace foretrain {
namespace {

/// Degrees above 1, and what else makes a layout.
std::string layout_of(const Scenario& scenario) {
  constexpr const char* kShards[] = {"no sharding", "zero1", "zero2", "zero3"};
  constexpr const char* kModes[] = {"no", "selective", "full", "modular"};
  const Parallelism& p = scenario.parallelism;
  std::string text;
  for (const auto& [name, degree] : {std::pair{"tp", p.tp},
                                     std::pair{"cp", p.cp},
                                     std::pair{"pp", p.pp},
                                     std::pair{"vpp", p.vpp},
                                     std::pair{"ep", p.ep},
                                     std::pair{"dp", p.dp}}) {
    text += degree > 1 ? std::string(name) + " " + std::to_string(degree) + " · " : "";
  }
  text += p.sequence_parallel && p.tp > 1 ? "sequence parallel · " : "";
  return text + "micro-batch " + std::to_string(scenario.training.micro_batch_size) + " · " +
         kShards[static_cast<std::size_t>(p.sharding)] + " · " + scenario.schedule.name + " · " +
         kModes[static_cast<std::size_t>(scenario.recompute.mode)] + " recomputation";
}

/// One row on its way: what is read, and the scenario simulated in the end.
class RowRun {
 public:
  RowRun(const PublishedRow& row, ValidatedRow& result) : row_(row), result_(result) {}

  void run() {
    const PublishedSource& source = source_of(row_);
    const PublishedHardware* const hardware = hardware_of(row_);
    const MeasuredStep measured = measured_step(row_, source, hardware);
    describe(source, hardware, measured);
    RowScenario mapped = scenario_of_row(row_, source, hardware);
    if (mapped.skipped == SkipReason::kIncomplete) {
      skip(*mapped.skipped, mapped.detail);
    } else if (!measured.seconds && !row_.fits) {
      skip(SkipReason::kNoMeasurement, measured.why);
    } else if (mapped.skipped) {
      skip(*mapped.skipped, mapped.detail);
    } else {
      result_.dtype = mapped.dtype;
      software_ = mapped.software;
      result_.assumed = mapped.assumed;
      simulate_first_that_fits(mapped);
    }
  }

  const std::optional<Scenario>& scenario() const { return scenario_; }

 private:
  void skip(SkipReason reason, const std::string& detail) {
    result_.skipped = reason;
    result_.detail = detail;
  }

  void describe(const PublishedSource& source,
                const PublishedHardware* hardware,
                const MeasuredStep& measured) {
    result_.id = row_.id;
    result_.split = row_.split;
    result_.source = source.label.empty() ? row_.source : std::string(source.label);
    result_.gpu = hardware == nullptr ? row_.gpu : std::string(hardware->label);
    result_.dtype = row_.dtype;
    result_.measured_s = measured.seconds;
    result_.fits_label = row_.fits;
    result_.complete = measured.seconds && missing_fields(row_).empty();
  }

  /// Where no way to recompute fits, the first stands: the run did take place.
  void simulate_first_that_fits(const RowScenario& mapped) {
    if (mapped.tries.empty()) {
      simulate_row(read_settings(mapped.settings));
      return;
    }
    std::optional<ReadRow> first;
    for (const RecomputeTry& attempt : mapped.tries) {
      std::vector<std::string> settings = mapped.settings;
      settings.insert(settings.end(), attempt.settings.begin(), attempt.settings.end());
      ReadRow read = read_settings(std::move(settings));
      read.assumed.push_back(attempt.assumed);
      if (read.scenario && fits_in_memory(*read.scenario)) {
        simulate_row(std::move(read));
        return;
      }
      if (!first || (!first->scenario && read.scenario)) {
        first = std::move(read);
      }
    }
    simulate_row(*std::move(first));
  }

  static bool fits_in_memory(const Scenario& scenario) {
    SimulateOptions options;
    options.memory_only = true;
    const Expected<Simulation> simulation = simulate(scenario, options);
    return simulation && simulation->report.fits != Fit::kNo;
  }

  void simulate_row(ReadRow read) {
    if (!read.scenario) {
      skip(read.reason, read.detail);
      return;
    }
    SimulateOptions options;
    options.times_only = true;
    const Expected<Simulation> simulation = simulate(*read.scenario, options);
    if (!simulation) {
      skip(SkipReason::kParallelism, messages_of(simulation.error()));
      return;
    }
    const StepReport& report = simulation->report;
    if (report.deadlock) {
      skip(SkipReason::kIllegal, "deadlock");
      return;
    }
    result_.simulated_s = seconds(report.step_time);
    result_.fits = report.fits;
    result_.memory_peak = report.memory_peak;
    result_.memory_capacity = report.memory_capacity;
    result_.assumed.insert(result_.assumed.end(), read.assumed.begin(), read.assumed.end());
    result_.layout = layout_of(*read.scenario);
    result_.sweep = sweep_of(*read.scenario);
    scenario_ = std::move(read.scenario);
  }

  /// All that rows of one sweep share: the job, the GPUs and what is said of the software.
  std::string sweep_of(const Scenario& scenario) const {
    const auto n = [](std::int64_t value) { return "|" + std::to_string(value); };
    return result_.source + "|" + row_.model + n(scenario.model.layers) + n(scenario.model.hidden) +
           "|" + result_.gpu + n(scenario.cluster.gpus) + n(scenario.training.sequence_length) +
           n(scenario.training.global_batch_size) + "|" + result_.dtype + "|" + software_;
  }

  const PublishedRow& row_;
  ValidatedRow& result_;
  std::string software_;
  std::optional<Scenario> scenario_;
};

}  // namespace

RowOutcome run_row(const PublishedRow& row) {
  RowOutcome outcome;
  RowRun run(row, outcome.row);
  run.run();
  outcome.scenario = run.scenario();
  return outcome;
}

/// The largest parts of a step, from a simulation with everything.
std::vector<StepTerm> largest_terms(const Scenario& scenario) {
  constexpr std::size_t kTerms = 3;
  std::vector<StepTerm> terms;
  const Expected<Simulation> simulation = simulate(scenario);
  if (!simulation) {
    return terms;
  }
  const StepReport& report = simulation->report;
  for (const BreakdownPart& part : breakdown_parts()) {
    const double time = seconds(report.breakdown.*part.member);
    terms.push_back({std::string(part.label), time, time / seconds(report.step_time)});
  }
  std::stable_sort(terms.begin(), terms.end(), [](const StepTerm& a, const StepTerm& b) {
    return a.time_s > b.time_s;
  });
  terms.resize(std::min(terms.size(), kTerms));
  return terms;
}

}  // namespace foretrain
