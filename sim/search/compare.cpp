#include "foretrain/compare.h"

#include "sim/search/parallel.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace foretrain {
namespace {

/// A legal way of a contestant, and what came of it in short.
struct Way {
  std::size_t contestant = 0;
  Settings settings;
  Expected<Scenario> scenario;
  bool fits = false, deadlock = false;
  Duration step{};
  std::int64_t peak = 0;
};

/// Whether a way is to be preferred to another of the same contestant.
bool better(const Way& a, const Way& b) {
  if (!a.scenario || !b.scenario) {
    return a.scenario && !b.scenario;
  }
  if (a.deadlock != b.deadlock) {
    return !a.deadlock;
  }
  if (a.fits != b.fits) {
    return a.fits;
  }
  return a.fits ? a.step < b.step : a.peak < b.peak;
}

/// Tells of simulations as they end, whichever thread runs them.
class Tally {
 public:
  Tally(const CompareOptions& options, std::size_t total)
      : options_(options), total_(static_cast<int>(total)) {
    tell();
  }
  void one_more() {
    const std::lock_guard lock(telling_);
    ++done_;
    tell();
  }

 private:
  void tell() {
    if (options_.progress) {
      options_.progress(done_, total_);
    }
  }
  const CompareOptions& options_;
  std::mutex telling_;
  int done_ = 0;
  const int total_;
};

/// What makes two ways the same run.
std::string identity(const Scenario& scenario) {
  std::string text = write_schedule(scenario.schedule) + std::to_string(scenario.parallelism.vpp);
  for (const std::int64_t layers : scenario.parallelism.layers_per_stage) {
    text += " " + std::to_string(layers);
  }
  return text;
}

/// Every way read; those that another of the same contestant repeats are left out, and so are those
/// that are illegal where another is not.
std::vector<Way> read_ways(const std::vector<Contestant>& contestants) {
  std::vector<Way> ways;
  for (std::size_t index = 0; index < contestants.size(); ++index) {
    const Contestant& one = contestants[index];
    std::vector<Way> legal;
    std::optional<Way> refused;
    std::set<std::string> seen;
    for (const Settings& settings : one.ways) {
      Settings all = one.overrides;
      all.insert(all.end(), settings.begin(), settings.end());
      Way way{index,
              settings,
              read_scenario(one.scenario, all, {}, cluster_part_faults),
              false,
              false,
              {},
              0};
      if (way.scenario) {
        if (std::vector<Diagnostic> faults = not_simulated(*way.scenario); !faults.empty()) {
          way.scenario = refuse(std::move(faults));
        }
      }
      if (!way.scenario) {
        refused = refused ? std::move(refused) : std::optional(std::move(way));
      } else if (seen.insert(identity(*way.scenario)).second) {
        legal.push_back(std::move(way));
      }
    }
    if (legal.empty() && refused) {
      legal.push_back(*std::move(refused));
    }
    std::move(legal.begin(), legal.end(), std::back_inserter(ways));
  }
  return ways;
}

void try_way(Way& way) {
  SimulateOptions options;
  options.times_only = true;
  const Expected<Simulation> simulation = simulate(*way.scenario, options);
  if (!simulation) {
    way.scenario = tl::unexpected(simulation.error());
    return;
  }
  const StepReport& report = simulation->report;
  way.deadlock = report.deadlock;
  way.fits = !report.deadlock && report.fits != Fit::kNo;
  way.step = report.step_time;
  way.peak = report.memory_peak;
}

std::optional<double> span_share(const Simulation& simulation) {
  const Expected<ScheduleTiming> timing =
      time_schedule(simulation.schedule, simulation.chunk_costs);
  if (!timing || timing->makespan == Duration{}) {
    return std::nullopt;
  }
  return seconds(*std::max_element(timing->span_bubble.begin(), timing->span_bubble.end())) /
         seconds(timing->makespan);
}

/// The row of the way that counts.
void finish_row(Way& way, const CompareOptions& options, ComparedRow& row) {
  row.settings = std::move(way.settings);
  if (!way.scenario) {
    row.faults = way.scenario.error();
    return;
  }
  row.schedule = way.scenario->schedule.name;
  const ScheduleEntry* const entry = find_schedule(row.schedule);
  if (row.ways > 1 && entry != nullptr && entry->chunks == 0) {
    row.label += ":" + std::to_string(way.scenario->parallelism.vpp);
  } else if (row.ways > 1 && entry != nullptr && entry->uses_slices) {
    row.label += " of " + std::to_string(way.scenario->schedule.slices);
  }
  SimulateOptions simulating;
  simulating.record = options.record;
  for (const std::int64_t rank : options.trace_ranks) {
    if (rank < way.scenario->cluster.gpus) {
      simulating.trace_ranks.push_back(rank);
    }
  }
  Expected<Simulation> simulation = simulate(*way.scenario, simulating);
  if (!simulation) {
    row.faults = simulation.error();
    return;
  }
  row.scenario = *std::move(way.scenario);
  row.simulation = *std::move(simulation);
  row.span_share = row.simulation->report.deadlock ? std::nullopt : span_share(*row.simulation);
}

int kind_of(const ComparedRow& row) {
  return row.fits() ? 0 : !row.simulation ? 3 : row.simulation->report.deadlock ? 2 : 1;
}

}  // namespace

std::vector<ComparedRow> compare(const std::vector<Contestant>& contestants,
                                 const CompareOptions& options) {
  std::vector<ComparedRow> rows;
  for (const Contestant& one : contestants) {
    rows.push_back({one.label, one.scenario, one.schedule, {}, 0, {}, {}, {}, {one.faults}});
  }
  std::vector<Way> ways = read_ways(contestants);
  for (const Way& way : ways) {
    rows[way.contestant].ways += way.scenario ? 1 : 0;
  }
  std::vector<Way*> choices;
  for (Way& way : ways) {
    if (rows[way.contestant].ways > 1) {
      choices.push_back(&way);
    }
  }
  std::vector<Way*> chosen(contestants.size(), nullptr);
  Tally tally(options, choices.size() + contestants.size());
  for_each_number(
      options.threads, static_cast<std::int64_t>(choices.size()), [&](std::int64_t number) {
        try_way(*choices[static_cast<std::size_t>(number)]);
        tally.one_more();
      });
  for (Way& way : ways) {
    Way*& best = chosen[way.contestant];
    best = best == nullptr || better(way, *best) ? &way : best;
  }
  for_each_number(
      options.threads, static_cast<std::int64_t>(contestants.size()), [&](std::int64_t number) {
        const auto index = static_cast<std::size_t>(number);
        if (chosen[index] != nullptr) {
          finish_row(*chosen[index], options, rows[index]);
        }
        tally.one_more();
      });
  return rows;
}

void rank_rows(std::vector<ComparedRow>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const ComparedRow& a, const ComparedRow& b) {
    if (kind_of(a) != kind_of(b)) {
      return kind_of(a) < kind_of(b);
    }
    return kind_of(a) < 2 && a.simulation->report.step_time < b.simulation->report.step_time;
  });
}

const ComparedRow* fastest(const std::vector<ComparedRow>& rows) {
  const ComparedRow* best = nullptr;
  for (const ComparedRow& row : rows) {
    const bool first = best == nullptr;
    best = row.fits() &&
                   (first || row.simulation->report.step_time < best->simulation->report.step_time)
               ? &row
               : best;
  }
  return best;
}

}  // namespace foretrain
