#include "tools/fit_advice.h"

#include "tools/estimate_numbers.h"

#include "foretrain/search.h"
#include "foretrain/simulate.h"
#include "sim/base/format.h"

#include <algorithm>
#include <optional>

namespace foretrain {
namespace {

/// Changes that the closed form proposes, worth trying; scaled to the run, it is rarely wrong about
/// the first. One that is no scenario (stages stated by hand, say) does not count.
constexpr int kTries = 4;
constexpr std::size_t kMostProposals = 32;

using Settings = std::vector<std::string>;

/// What came of a change.
struct TriedChange {
  enum class Outcome { kNoScenario, kNotSimulated, kDoesNotFit, kFits } outcome{};
  Layout layout;          ///< of the changed scenario
  Settings settings;      ///< as tried: with dp where the scenario states it
  std::int64_t peak = 0;  ///< kFits: bytes
  std::string why;        ///< kNotSimulated
};

TriedChange try_change(const std::string& reference,
                       std::vector<std::string> overrides,
                       const Settings& settings) {
  using Outcome = TriedChange::Outcome;
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  overrides.emplace_back("perturbations=[]");  // memory does not depend on them
  const Expected<Scenario> scenario = read_scenario(reference, overrides);
  if (!scenario) {
    return {Outcome::kNoScenario, {}, settings, 0, ""};
  }
  const Expected<Simulation> simulation = simulate(*scenario);
  if (!simulation) {
    return {Outcome::kNotSimulated, {}, settings, 0, simulation.error().list.front().message};
  }
  const StepReport& report = simulation->report;
  const bool fits = !report.deadlock && report.fits != Fit::kNo;
  return {fits ? Outcome::kFits : Outcome::kDoesNotFit,
          layout_of(*scenario, ClosedForm::kWorkshop),
          settings,
          report.memory_peak,
          ""};
}

/// The same; a scenario that states dp must have the new one stated.
TriedChange try_change(const std::string& reference,
                       const std::vector<std::string>& overrides,
                       const FittingChange& change) {
  TriedChange tried = try_change(reference, overrides, change.settings);
  if (tried.outcome == TriedChange::Outcome::kNoScenario) {
    Settings with_dp = change.settings;
    with_dp.push_back("parallelism.dp=" + std::to_string(change.estimate.layout.dp));
    tried = try_change(reference, overrides, with_dp);
  }
  return tried;
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

/// What to know of a layout that `run` cannot show.
std::string unsimulated(const Scenario& scenario, const Estimate& estimate) {
  TrainingJob job;
  job.model_reference = scenario.model_reference;
  job.topology = scenario.cluster.topology;
  job.model = scenario.model;
  job.hardware = scenario.cluster.hardware;
  job.sequence_length = scenario.training.sequence_length;
  job.global_batch_size = scenario.training.global_batch_size;
  const std::string why = why_not_simulated(job, estimate, Assumptions{});
  return why;
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
  std::vector<std::string> notes = {none,
                                    "smallest cluster, by the closed form: " + with_commas(gpus) +
                                        " " + plural("GPU", gpus) + " as " + to_string(layout) +
                                        ", " + gigabytes_text(smallest->memory.total()) + " each"};
  if (const std::string why = unsimulated(scenario, *smallest); !why.empty()) {
    notes.push_back("that layout cannot be run: " + why);
  }
  return notes;
}

/// What the closed form holds for too tight may still be a borderline fit: every layer recomputed,
/// alone or in a deeper pipeline.
std::vector<Settings> last_resorts(const Scenario& scenario) {
  constexpr std::int64_t kDeepest = 4;
  const Parallelism& degrees = scenario.parallelism;
  std::vector<Settings> resorts = {{"recompute.mode=full"}};
  if (scenario.training.micro_batch_size > 1) {
    resorts.push_back({"recompute.mode=full", "training.micro_batch_size=1"});
  }
  for (std::int64_t deeper = 2; deeper <= kDeepest && degrees.dp % deeper == 0; deeper *= 2) {
    resorts.push_back({"recompute.mode=full",
                       "parallelism.pp=" + std::to_string(degrees.pp * deeper),
                       "parallelism.dp=" + std::to_string(degrees.dp / deeper)});
  }
  return resorts;
}

}  // namespace

std::vector<std::string> fit_advice(const std::string& reference,
                                    const std::vector<std::string>& overrides,
                                    const Scenario& scenario,
                                    const StepReport& report) {
  const auto fits = [](const TriedChange& tried) {
    return std::vector<std::string>{"smallest change that fits: " + set_words(tried.settings),
                                    "with it: " + to_string(tried.layout) + ", peak " +
                                        human_bytes(tried.peak) + ", simulated"};
  };
  if (scenario.schedule.name == "gpipe") {  // it keeps every micro-batch; no layout mends that
    const TriedChange tried = try_change(reference, overrides, Settings{"schedule=1f1b"});
    if (tried.outcome == TriedChange::Outcome::kFits) {
      return fits(tried);
    }
  }
  std::vector<std::string> untried;
  const std::vector<FittingChange> changes = changes_that_fit(scenario, report.memory_peak);
  int tries = 0;
  for (std::size_t at = 0; at < std::min(changes.size(), kMostProposals) && tries < kTries; ++at) {
    const FittingChange& change = changes[at];
    const TriedChange tried = try_change(reference, overrides, change);
    tries += tried.outcome == TriedChange::Outcome::kNoScenario ? 0 : 1;
    if (tried.outcome == TriedChange::Outcome::kFits) {
      return fits(tried);
    }
    if (tried.outcome == TriedChange::Outcome::kNotSimulated && untried.empty()) {
      untried = {"by the closed form this fits: " + set_words(tried.settings),
                 "with it: " + to_string(change.estimate.layout) + "; " + tried.why};
    }
  }
  for (const Settings& settings : last_resorts(scenario)) {
    const TriedChange tried = try_change(reference, overrides, settings);
    if (tried.outcome == TriedChange::Outcome::kFits) {
      return fits(tried);
    }
  }
  return untried.empty() ? smallest_cluster(scenario, report) : untried;
}

}  // namespace foretrain
