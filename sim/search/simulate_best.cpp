#include "sim/search/simulate_best.h"

#include "foretrain/simulate.h"
#include "sim/search/parallel.h"

#include <algorithm>
#include <mutex>

namespace foretrain {
namespace {

std::string joined(const Faults& faults) {
  std::string text;
  for (const Diagnostic& fault : faults.list) {
    text += (text.empty() ? "" : "; ") + fault.message;
  }
  return text;
}

void simulate_layout(const TrainingJob& job, const Assumptions& assumptions, RankedLayout& ranked) {
  Layout layout = ranked.estimate.layout;
  layout.recompute_layers = ranked.estimate.recompute_layers;
  const tl::expected<SimulatedLayout, std::string> simulated =
      simulate_text(scenario_text(job, layout, assumptions, "search"));
  if (simulated) {
    ranked.simulated = *simulated;
  } else {
    ranked.not_simulated = simulated.error();
  }
}

}  // namespace

tl::expected<SimulatedLayout, std::string> simulate_text(
    const std::string& scenario_json, const std::function<void(int done, int total)>& progress) {
  const Expected<Scenario> scenario = parse_scenario(scenario_json);
  if (!scenario) {
    return tl::unexpected<std::string>(joined(scenario.error()));
  }
  SimulateOptions options;
  options.progress = progress;
  const Expected<Simulation> simulation = simulate(*scenario, options);
  if (!simulation) {
    return tl::unexpected<std::string>(joined(simulation.error()));
  }
  const StepReport& report = simulation->report;
  SimulatedLayout result;
  result.deadlock = report.deadlock;
  result.step_time_s = seconds(report.step_time);
  result.mfu = report.mfu;
  result.memory_bytes = report.memory_peak;
  result.context_bytes = report.context_bytes;
  result.memory_capacity = report.memory_capacity;
  for (const StageReport& stage : report.stages) {
    if (stage.pp_rank == report.memory_peak_stage) {
      result.memory = stage.memory;
    }
  }
  result.fits = report.fits;
  return result;
}

std::string why_not_simulated(const TrainingJob& job,
                              const Estimate& estimate,
                              const Assumptions& assumptions) {
  Layout layout = estimate.layout;
  layout.recompute_layers = estimate.recompute_layers;
  TrainingJob own = job;
  own.gpus = layout.tp * layout.cp * layout.pp * layout.dp;
  const Expected<Scenario> scenario =
      parse_scenario(scenario_text(own, layout, assumptions, "search"));
  if (!scenario) {
    return scenario.error().list.front().message;
  }
  const std::vector<Diagnostic> refusals = not_simulated(*scenario);
  return refusals.empty() ? "" : refusals.front().message;
}

void BestSimulations::simulate(const std::vector<RankedLayout*>& layouts) {
  std::mutex telling;
  const auto tell = [this] {
    if (options_.progress) {
      options_.progress(done_, total_);
    }
  };
  const bool first = total_ == 0;
  total_ += static_cast<int>(layouts.size());
  if (first && total_ > 0) {
    tell();
  }
  for_each_number(
      options_.threads, static_cast<std::int64_t>(layouts.size()), [&](std::int64_t number) {
        simulate_layout(job_, options_.assumptions, *layouts[static_cast<std::size_t>(number)]);
        const std::lock_guard lock(telling);
        ++done_;
        tell();
      });
}

// In rounds, each as many as are still wanting: which are tried does not depend on the threads.
void BestSimulations::simulate_front(std::vector<RankedLayout>& layouts) {
  constexpr std::int64_t kTries = 4;  // times as many as asked for
  const auto tries = static_cast<std::size_t>(
      std::min(static_cast<std::int64_t>(layouts.size()), kTries * options_.simulate));
  std::int64_t wanting = options_.simulate;
  for (std::size_t next = 0; wanting > 0 && next < tries;) {
    std::vector<RankedLayout*> round;
    for (; next < tries && static_cast<std::int64_t>(round.size()) < wanting; ++next) {
      round.push_back(&layouts[next]);
    }
    simulate(round);
    wanting -= std::count_if(
        round.begin(), round.end(), [](const RankedLayout* layout) { return !layout->refuted(); });
  }
}

void BestSimulations::simulate_shown(std::vector<ShownLayout>& shown) {
  std::vector<RankedLayout*> wanted;
  for (ShownLayout& one : shown) {
    if (one.layout && !one.layout->simulated && one.layout->not_simulated.empty()) {
      wanted.push_back(&*one.layout);
    }
  }
  simulate(wanted);
}

}  // namespace foretrain
