#include "tools/commands.h"
#include "tools/compare_output.h"
#include "tools/output.h"
#include "tools/progress_line.h"
#include "tools/rank_list.h"
#include "tools/scenario_inputs.h"
#include "tools/trace_output.h"
#include "tools/typed.h"

#include "foretrain/compare.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

constexpr const char* kAll = "all";
constexpr const char* kAsGiven = "as given";

struct CompareLine {
  std::vector<std::string> scenarios;
  std::vector<std::string> overrides;
  std::string schedules, trace, trace_ranks, json;
  int threads = 0;
};

void add_options(CLI::App& app, CompareLine& line) {
  app.add_option("scenario", line.scenarios, "preset names, or paths of scenario files")
      ->required()
      ->check(not_empty());
  app.add_option("--schedules",
                 line.schedules,
                 "each scenario under these: NAME, NAME:VPP, NAME:VPP:GROUP, FILE.csv; NAME:best "
                 "tries every vpp and split of layers; all: every schedule at its best, ranked")
      ->type_name("LIST")
      ->check(not_empty());
  app.add_option("--set", line.overrides, "PATH=VALUE, e.g. parallelism.pp=8; may be repeated")
      ->type_name("P=V")
      ->take_all()
      ->expected(1);
  app.add_option("--trace", line.trace, "write all of them into one Chrome trace; .gz compresses")
      ->type_name("FILE|-")
      ->check(not_empty());
  app.add_option("--trace-ranks", line.trace_ranks, "ranks to show, e.g. 0,8-15 (one per stage)")
      ->type_name("LIST")
      ->check(not_empty());
  app.add_option("--threads", line.threads, "0: one per core; never changes the result")
      ->check(whole_number(0, 1024));
  add_json_option(app, line.json);
}

/// The schedules of the line; each once.
std::vector<ScheduleChoice> choices_of(const CompareLine& line, std::vector<Diagnostic>& faults) {
  std::vector<ScheduleChoice> choices;
  if (line.schedules.empty()) {
    return choices;
  }
  std::set<std::string> seen;
  for (const std::string& word : comma_words(line.schedules)) {
    if (!seen.insert(word).second) {
      faults.push_back({"/schedules", "\"" + word + "\" repeats", "name it once"});
    } else if (word == kAll) {
      const std::vector<ScheduleChoice> every = every_schedule();
      choices.insert(choices.end(), every.begin(), every.end());
    } else if (Expected<ScheduleChoice> choice = parse_schedule_choice(word)) {
      choices.push_back(*std::move(choice));
    } else {
      faults.insert(faults.end(), choice.error().list.begin(), choice.error().list.end());
    }
  }
  return choices;
}

bool ranked(const CompareLine& line) {
  const std::vector<std::string> words = comma_words(line.schedules);
  return std::find(words.begin(), words.end(), kAll) != words.end();
}

/// A name for each scenario that no other has: its file's, or its path, or those numbered.
std::vector<std::string> scenario_labels(const std::vector<std::string>& scenarios) {
  std::vector<std::string> labels;
  for (const std::string& scenario : scenarios) {
    labels.push_back(std::filesystem::path(scenario).stem().string());
  }
  const std::vector<std::string> stems = labels;
  for (std::size_t at = 0; at < labels.size(); ++at) {
    if (std::count(stems.begin(), stems.end(), stems[at]) > 1) {
      labels[at] = scenarios[at];
    }
  }
  const std::vector<std::string> paths = labels;
  for (std::size_t at = 0; at < labels.size(); ++at) {
    if (std::count(paths.begin(), paths.end(), paths[at]) > 1) {
      labels[at] +=
          " #" + std::to_string(std::count(paths.begin(),
                                           paths.begin() + static_cast<std::ptrdiff_t>(at),
                                           paths[at]) +
                                1);
    }
  }
  return labels;
}

std::vector<Contestant> contestants_of(const CompareLine& line,
                                       const std::vector<ScheduleChoice>& choices) {
  const std::vector<std::string> labels = scenario_labels(line.scenarios);
  std::vector<Contestant> contestants;
  for (std::size_t at = 0; at < labels.size(); ++at) {
    const std::string& scenario = line.scenarios[at];
    const std::string prefix = labels.size() > 1 ? labels[at] + " " : "";
    if (choices.empty() || ranked(line)) {
      contestants.push_back({choices.empty() ? labels[at] : prefix + kAsGiven,
                             scenario,
                             "",
                             line.overrides,
                             {Settings{}},
                             {}});
    }
    for (const ScheduleChoice& choice : choices) {
      contestants.push_back(under_schedule(scenario, line.overrides, choice));
      contestants.back().label = prefix + contestants.back().label;
    }
  }
  return contestants;
}

/// A file that cannot be read ends the comparison; the GPUs of the largest scenario that can.
std::int64_t most_gpus(const CompareLine& line, Faults& faults) {
  std::int64_t most = 0;
  for (const std::string& scenario : line.scenarios) {
    const Expected<Scenario> read = read_scenario(scenario, line.overrides);
    if (read) {
      most = std::max(most, read->cluster.gpus);
    } else if (read.error().kind == FaultKind::kFile) {
      faults.kind = FaultKind::kFile;
      faults.list.insert(faults.list.end(), read.error().list.begin(), read.error().list.end());
    }
  }
  return most;
}

/// Every fault of the line itself.
Faults line_faults(const CompareLine& line,
                   CompareOptions& options,
                   std::vector<ScheduleChoice>& choices) {
  Faults faults;
  faults.list = check_targets({{"trace", line.trace}, {"json", line.json}});
  choices = choices_of(line, faults.list);
  if (line.trace.ends_with(".speedscope.json") || line.trace.ends_with(".speedscope.json.gz")) {
    faults.list.push_back({"/trace",
                           "several runs stand in one Chrome trace only",
                           "another name, e.g. compare.json.gz"});
  }
  const std::int64_t gpus = most_gpus(line, faults);
  if (line.trace_ranks.empty()) {
    return faults;
  }
  if (line.trace.empty()) {
    faults.list.push_back({"/trace-ranks", "--trace-ranks has no effect without --trace", ""});
  } else if (gpus > 0) {
    Expected<std::vector<std::int64_t>> ranks =
        parse_rank_list(line.trace_ranks, gpus, "--trace-ranks");
    if (ranks) {
      options.trace_ranks = *std::move(ranks);
    } else {
      faults.list.insert(faults.list.end(), ranks.error().list.begin(), ranks.error().list.end());
    }
  }
  return faults;
}

/// Faults of rows none of which is legal: those that all share once, the others with their rows.
Faults joined(const std::vector<ComparedRow>& rows) {
  Faults faults;
  for (const ComparedRow& row : rows) {
    for (Diagnostic fault : row.faults.list) {
      const bool shared = std::all_of(rows.begin(), rows.end(), [&](const ComparedRow& other) {
        const std::vector<Diagnostic>& list = other.faults.list;
        return std::find(list.begin(), list.end(), fault) != list.end();
      });
      fault.message = (shared ? "" : row.label + ": ") + fault.message;
      if (std::find(faults.list.begin(), faults.list.end(), fault) == faults.list.end()) {
        faults.list.push_back(std::move(fault));
      }
    }
  }
  return faults;
}

int write_trace(std::vector<ComparedRow>& rows, const CompareLine& line) {
  std::vector<TracePart> parts;
  const ComparedRow* first = nullptr;
  std::int64_t shown = 0;
  std::int64_t world = 0;
  const auto count = std::count_if(rows.begin(), rows.end(), ended);
  const std::int64_t most = line.trace_ranks.empty()
                                ? kComfortableTraceBytes / std::max<std::int64_t>(count, 1)
                                : std::numeric_limits<std::int64_t>::max();
  for (ComparedRow& row : rows) {
    if (!ended(row)) {
      continue;
    }
    first = first == nullptr ? &row : first;
    Simulation& simulation = *row.simulation;
    shown += cut_trace(simulation, 1, most);
    world = std::max(world, row.scenario->cluster.gpus);
    parts.push_back({&simulation.program, &simulation.timeline, row.label, simulation.group_sizes});
  }
  if (first == nullptr) {
    return kExitDone;
  }
  TraceOptions options = trace_options(*first->scenario, *first->simulation, 1);
  options.world_size = world;
  const std::string text = chrome_trace(parts, options);
  tell_trace(shown, world * static_cast<std::int64_t>(parts.size()), text.size());
  return write_trace_text(line.trace, text);
}

/// Runs the fastest alone, or sets what is alone beside others; nothing where its settings are too
/// long to be typed.
std::string next_command(const CompareLine& line, const std::vector<ComparedRow>& rows) {
  constexpr std::size_t kTyped = 400;
  const ComparedRow* const best = fastest(rows);
  const bool alone = rows.size() == 1;
  if (best == nullptr && !alone) {
    return "";
  }
  const ComparedRow& shown = alone ? rows.front() : *best;
  std::string text = (alone ? "foretrain compare " : "foretrain run ") + shell_word(shown.file);
  for (const Settings& settings : {line.overrides, alone ? Settings{} : shown.settings}) {
    for (const std::string& setting : settings) {
      text += " --set " + shell_word(setting);
    }
  }
  text += alone ? " --schedules all" : "";
  return text.size() <= kTyped ? text : "";
}

int finish(std::vector<ComparedRow>& rows, const std::string& baseline, const CompareLine& line) {
  if (std::none_of(rows.begin(), rows.end(), [](const ComparedRow& row) {
        return row.simulation.has_value();
      })) {
    return report_faults(joined(rows), "foretrain compare", line.json);
  }
  if (!line.trace.empty()) {
    if (const int status = write_trace(rows, line); status != kExitDone) {
      return status;
    }
  }
  if (!line.json.empty()) {
    if (const int status = write_json(line.json, compare_json(rows, baseline));
        status != kExitDone) {
      return status;
    }
  }
  if (line.json != "-" && line.trace != "-") {
    const ComparePage page{page_width(), baseline, next_command(line, rows)};
    if (const int status = write_output("-", compare_text(rows, page)); status != kExitDone) {
      return status;
    }
  }
  return fastest(rows) == nullptr ? kExitNegative : kExitDone;
}

}  // namespace

int cmd_compare(int argc, char** argv) {
  CLI::App app{"Scenarios, or one under several schedules, simulated side by side."};
  CompareLine line;
  add_options(app, line);
  if (const std::optional<int> over = parse_options(app, argc, argv)) {
    return *over;
  }
  std::vector<std::string> inputs = comma_words(line.schedules);
  for (const std::string& scenario : line.scenarios) {
    const std::vector<std::string> more = scenario_inputs(scenario, line.overrides);
    inputs.insert(inputs.end(), more.begin(), more.end());
  }
  if (const std::optional<int> over =
          refuse_overwriting("compare", {{"trace", line.trace}, {"json", line.json}}, inputs)) {
    return *over;
  }
  CompareOptions options;
  std::vector<ScheduleChoice> choices;
  if (const Faults faults = line_faults(line, options, choices); !faults.list.empty()) {
    return report_faults(faults, "foretrain compare", line.json);
  }
  options.threads = line.threads;
  options.record = !line.trace.empty();
  const std::vector<Contestant> contestants = contestants_of(line, choices);
  std::vector<ComparedRow> rows;
  {
    ProgressLine progress;
    options.progress = [&progress](int done, int total) { progress.tell(done, total); };
    rows = compare(contestants, options);
  }
  const std::string baseline = rows.front().label;
  if (ranked(line)) {
    rank_rows(rows);
  }
  return finish(rows, baseline, line);
}

}  // namespace foretrain
