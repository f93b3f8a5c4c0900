#include "tools/commands.h"
#include "tools/job_options.h"
#include "tools/output.h"
#include "tools/progress_line.h"
#include "tools/search_axes.h"
#include "tools/search_output.h"
#include "tools/typed.h"

#include "foretrain/search.h"

#include <algorithm>
#include <cstdio>
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
  app.add_option("--threads", line.threads, "0: one per core; never changes the result")
      ->check(whole_number(0, 1024));
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

/// The line with one option changed as the search proposes.
void apply_change(const SearchChange& change, SearchLine& line) {
  const auto text = [&](const char* option, std::string& target) {
    target = change.option == option ? change.value : target;
  };
  const auto number = [&](const char* option, std::int64_t& target) {
    target = change.option == option ? std::stoll(change.value) : target;
  };
  number("--gpus", line.job.gpus);
  number("--seq", line.job.sequence_length);
  number("--gbs", line.job.global_batch_size);
  text("--micro-batch-sizes", line.axes.micro_batch_sizes);
  text("--vpp", line.axes.vpp);
  text("--recompute", line.axes.recompute);
  text("--sharding", line.axes.sharding);
  text("--schedules", line.axes.schedules);
  line.axes.uneven = line.axes.uneven || change.option == "--uneven";
  if (change.option == "--assume") {
    line.job.assume.push_back(change.value);
  }
}

/// What the closed form's rules take as given of a layout, beside what the line says.
std::vector<std::string> assumed_of(const SearchLine& line, const Layout& layout) {
  constexpr const char* kShardings[] = {"none", "zero1", "zero2", "zero3"};
  std::vector<std::string> key_values = line.job.assume;
  if (layout.sharding != Layout{}.sharding) {
    key_values.push_back(std::string("sharding=") +
                         kShardings[static_cast<std::size_t>(layout.sharding)]);
  }
  if (layout.vpp > 1) {
    key_values.push_back("vpp=" + std::to_string(layout.vpp));
  }
  if (layout.recompute_layers != kRecomputeAsNeeded) {
    key_values.push_back("recompute_layers=" + std::to_string(layout.recompute_layers));
  }
  return key_values;
}

/// What to type after this result.
std::string next_command(const SearchLine& line,
                         const AssumedJob& assumed,
                         const SearchResult& result) {
  if (const RankedLayout* const best = result.best()) {
    const bool saved = !line.save.empty() && line.save != "-";
    const std::string file = file_word(saved ? line.save : "best.json");
    const bool runs = best->simulated ||
                      why_not_simulated(assumed.job, best->estimate, assumed.assumptions).empty();
    return (saved ? "" : "the same with --save best.json, then: ") +
           (runs ? "foretrain run " + file
                 : "foretrain estimate " + file +
                       assume_words(assumed_of(line, best->estimate.layout)));
  }
  if (result.way_out.empty()) {
    return "foretrain search --help lists the axes; --sharding zero1,zero3 and --uneven allow more";
  }
  SearchLine other = line;
  for (const SearchChange& change : result.way_out) {
    apply_change(change, other);
  }
  return "foretrain search " + job_words(other.job) + axes_words(other.axes);
}

int save_best(const SearchLine& line, const AssumedJob& assumed, const SearchResult& result) {
  if (line.save.empty()) {
    return kExitDone;
  }
  if (result.best() == nullptr) {
    std::fprintf(stderr, "foretrain: nothing fits, %s is not written\n", line.save.c_str());
    return kExitDone;
  }
  const Estimate& best = result.best()->estimate;
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
  if (const std::optional<int> over =
          refuse_overwriting("search",
                             {{"save", line.save}, {"json", line.job.json}},
                             {line.job.model, line.job.topology})) {
    return *over;
  }
  line.job.model = from_anywhere(line.job.model);  // the best may be saved anywhere
  line.job.topology = from_anywhere(line.job.topology);
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
  if (line.job.json != "-" && (line.save != "-" || result->best() == nullptr)) {
    const SearchPage page{line.top, next_command(line, *assumed, *result)};
    const int status = write_output("-", search_text(assumed->job, options, *result, page));
    if (status != kExitDone) {
      return status;
    }
  }
  return result->best() == nullptr ? kExitNegative : kExitDone;
}

}  // namespace foretrain
