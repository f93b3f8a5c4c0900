#include "tools/fit_advice.h"

#include "tools/estimate_numbers.h"

#include "foretrain/search.h"
#include "foretrain/simulate.h"
#include "sim/base/format.h"

#include <algorithm>
#include <optional>

namespace foretrain {
namespace {

/// Changes worth trying; the closed form is scaled to the run, and rarely wrong about the first.
constexpr std::size_t kTries = 4;

/// What came of a change: the peak in bytes, or why it is unknown; both empty: it does not fit, or
/// is no scenario.
struct TriedChange {
  std::optional<std::int64_t> peak;
  std::string not_simulated;
};

TriedChange try_change(const std::string& reference,
                       std::vector<std::string> overrides,
                       const std::vector<std::string>& settings) {
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  overrides.emplace_back("perturbations=[]");  // memory does not depend on them
  const Expected<Scenario> scenario = read_scenario(reference, overrides);
  if (!scenario) {
    return {};
  }
  const Expected<Simulation> simulation = simulate(*scenario);
  if (!simulation) {
    return {std::nullopt, simulation.error().list.front().message};
  }
  const StepReport& report = simulation->report;
  const bool fits = !report.deadlock && report.fits != Fit::kNo;
  return {fits ? std::optional(report.memory_peak) : std::nullopt, ""};
}

/// As a shell takes it.
std::string set_words(const std::vector<std::string>& settings) {
  std::string text;
  for (const std::string& setting : settings) {
    const bool quoted = setting.find('{') != std::string::npos;
    text += (text.empty() ? "--set " : " --set ") + (quoted ? "'" + setting + "'" : setting);
  }
  return text;
}

std::vector<std::string> smallest_cluster(const Scenario& scenario, const StepReport& report) {
  const std::string none = "no change was found that fits on " +
                           with_commas(scenario.cluster.gpus) + " " +
                           plural("GPU", scenario.cluster.gpus);
  const std::optional<Estimate> smallest = smallest_that_fits(scenario, report.memory_peak);
  if (!smallest) {
    return {none + ", nor, by the closed form, on any number"};
  }
  const Layout& layout = smallest->layout;
  const std::int64_t gpus = layout.tp * layout.cp * layout.pp * layout.dp;
  return {none,
          "smallest cluster, by the closed form: " + with_commas(gpus) + " " + plural("GPU", gpus) +
              " as " + to_string(layout) + ", " + gigabytes_text(smallest->memory.total()) +
              " each"};
}

}  // namespace

std::vector<std::string> fit_advice(const std::string& reference,
                                    const std::vector<std::string>& overrides,
                                    const Scenario& scenario,
                                    const StepReport& report) {
  const std::vector<FittingChange> changes = changes_that_fit(scenario, report.memory_peak);
  std::vector<std::string> untried;
  for (std::size_t at = 0; at < std::min(changes.size(), kTries); ++at) {
    const FittingChange& change = changes[at];
    const TriedChange tried = try_change(reference, overrides, change.settings);
    if (tried.peak) {
      return {"smallest change that fits: " + set_words(change.settings),
              "with it: " + to_string(change.estimate.layout) + ", peak " +
                  human_bytes(*tried.peak) + ", simulated"};
    }
    if (!tried.not_simulated.empty() && untried.empty()) {
      untried = {"by the closed form this fits: " + set_words(change.settings),
                 "with it: " + to_string(change.estimate.layout) + "; " + tried.not_simulated};
    }
  }
  return untried.empty() ? smallest_cluster(scenario, report) : untried;
}

}  // namespace foretrain
