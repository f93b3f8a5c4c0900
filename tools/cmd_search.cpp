#include "tools/commands.h"
#include "tools/job_options.h"
#include "tools/output.h"
#include "tools/progress_line.h"
#include "tools/search_axes.h"
#include "tools/search_output.h"

#include "foretrain/search.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

struct SearchLine {
  JobLine job;
  AxesLine axes;
  bool closed_form = false;
  std::int64_t top = 5;
  int threads = 0;
  std::string save;
};

void add_options(CLI::App& app, SearchLine& line) {
  add_job_options(app, line.job);
  app.add_flag("--closed-form", line.closed_form, "simulate nothing");
  app.add_option("--top", line.top, "layouts to show and to simulate (5)")
      ->check(whole_number(1, 1000));
  add_axes_options(app, line.axes);
  app.add_option("--save", line.save, "write the best layout as a scenario")
      ->type_name("FILE|-")
      ->check(not_empty());
  app.add_option("--threads", line.threads, "threads (one per core); never changes the result")
      ->check(whole_number(1, 1024));
}

/// The options, and every fault of the line that the job's reader did not find.
SearchOptions options_of(const SearchLine& line,
                         const Expected<AssumedJob>& assumed,
                         std::vector<Diagnostic>& faults) {
  SearchOptions options;
  options.axes = read_axes(line.axes, faults);
  options.shown = read_shown(line.axes, faults);
  const std::vector<Diagnostic> illegal =
      axes_faults(assumed ? assumed->job.model : ModelConfig{}, options.axes);
  faults.insert(faults.end(), illegal.begin(), illegal.end());
  const std::vector<Diagnostic> targets =
      check_targets({{"save", line.save}, {"json", line.job.json}});
  faults.insert(faults.end(), targets.begin(), targets.end());
  options.simulate = line.closed_form ? 0 : line.top;
  options.short_list = std::max<std::int64_t>(line.top, 3);
  options.threads = line.threads;
  if (assumed) {
    options.assumptions = assumed->assumptions;
  }
  return options;
}

std::string job_words(const JobLine& job) {
  return "--model " + job.model + " --topology " + job.topology + " --gpus " +
         std::to_string(job.gpus) + " --seq " + std::to_string(job.sequence_length) + " --gbs " +
         std::to_string(job.global_batch_size);
}

/// What to type after this result.
std::string next_command(const SearchLine& line, const SearchResult& result) {
  if (!result.layouts.empty()) {
    return line.save.empty() || line.save == "-"
               ? "the same with --save best.json, then: foretrain run best.json"
               : "foretrain run " + line.save;
  }
  if (!result.smallest) {
    return "foretrain search --help lists the axes; --sharding zero1,zero3 and --uneven allow more";
  }
  const Layout& layout = result.smallest->layout;
  JobLine larger = line.job;
  larger.gpus = layout.tp * layout.cp * layout.pp * layout.dp;
  return "foretrain search " + job_words(larger);
}

int save_best(const SearchLine& line, const AssumedJob& assumed, const SearchResult& result) {
  if (line.save.empty() || result.layouts.empty()) {
    return kExitDone;
  }
  const Estimate& best = result.layouts.front().estimate;
  Layout layout = best.layout;
  layout.recompute_layers = best.recompute_layers;
  return write_output(
      line.save, scenario_text(assumed.job, layout, assumed.assumptions, assumed.job.model.name));
}

Expected<SearchResult> search_with_progress(const TrainingJob& job, SearchOptions options) {
  ProgressLine progress;
  options.progress = [&progress](int done, int total) { progress.tell(done, total); };
  return search(job, options);
}

}  // namespace

int cmd_search(int argc, char** argv) {
  CLI::App app{
      "Every legal layout of a model on a cluster: estimated, ranked, the best simulated."};
  SearchLine line;
  add_options(app, line);
  if (const std::optional<int> over = parse_options(app, argc, argv)) {
    return *over;
  }
  const Expected<AssumedJob> assumed = read_job_line(line.job);
  Faults faults = assumed ? Faults{} : assumed.error();
  const SearchOptions options = options_of(line, assumed, faults.list);
  if (!faults.list.empty()) {
    return report_faults(faults, "foretrain search", line.job.json);
  }
  const Expected<SearchResult> result = search_with_progress(assumed->job, options);
  if (!result) {
    return report_faults(result.error(), "foretrain search", line.job.json);
  }
  if (const int status = save_best(line, *assumed, *result); status != kExitDone) {
    return status;
  }
  if (!line.job.json.empty()) {
    const int status = write_json(line.job.json, search_json(assumed->job, options, *result));
    if (status != kExitDone) {
      return status;
    }
  }
  if (line.job.json != "-" && line.save != "-") {
    const SearchPage page{line.top, next_command(line, *result)};
    const int status = write_output("-", search_text(assumed->job, options, *result, page));
    if (status != kExitDone) {
      return status;
    }
  }
  return result->layouts.empty() ? kExitNegative : kExitDone;
}

}  // namespace foretrain
