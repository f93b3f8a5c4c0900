#include "sim/search/simulate_best.h"

#include "foretrain/simulate.h"
#include "sim/search/parallel.h"

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
  result.fits = report.fits;
  return result;
}

void simulate_layouts(const TrainingJob& job,
                      const SearchOptions& options,
                      const std::vector<std::size_t>& places,
                      std::vector<RankedLayout>& layouts) {
  const auto total = static_cast<int>(places.size());
  std::mutex telling;
  int done = 0;
  const auto tell = [&](int finished) {
    if (options.progress) {
      options.progress(finished, total);
    }
  };
  tell(0);
  for_each_number(options.threads, total, [&](std::int64_t number) {
    const std::size_t place = places[static_cast<std::size_t>(number)];
    simulate_layout(job, options.assumptions, layouts[place]);
    const std::lock_guard lock(telling);
    tell(++done);
  });
}

}  // namespace foretrain
