#include "tools/commands.h"
#include "tools/fit_advice.h"
#include "tools/output.h"
#include "tools/progress_line.h"
#include "tools/rank_list.h"
#include "tools/scenario_inputs.h"
#include "tools/trace_output.h"
#include "tools/typed.h"

#include "foretrain/report.h"
#include "foretrain/simulate.h"

#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace foretrain {
namespace {

struct RunLine {
  std::string scenario;
  std::vector<std::string> overrides;
  std::string evaluator = "auto";
  std::string convention = "causal";
  std::string trace;
  std::string trace_ranks;
  std::string trace_links;
  std::string json;
  SimulateOptions options;
};

void add_options(CLI::App& app, RunLine& line) {
  add_scenario_options(app, line.scenario, line.overrides);
  app.add_option("--steps", line.options.steps, "steps to measure after warming up, 1 to 100000")
      ->check(whole_number(1, 100000));
  app.add_flag(
      "--all-ranks", line.options.all_ranks, "simulate every rank, none stands for another");
  app.add_option("--evaluator", line.evaluator, "auto, event or dataflow")
      ->check(CLI::IsMember({"auto", "event", "dataflow"}));
  app.add_option("--flops-convention", line.convention, "causal, full or hardware")
      ->check(CLI::IsMember({"causal", "full", "hardware"}));
  app.add_option("--trace",
                 line.trace,
                 "write the steps as a trace: NAME.speedscope.json in speedscope's format, another "
                 "name as a Chrome trace; .gz at the end compresses; - is standard output")
      ->type_name("FILE|-")
      ->check(not_empty());
  app.add_option("--trace-ranks", line.trace_ranks, "ranks to show, e.g. 0,8-15 (one per stage)")
      ->type_name("LIST")
      ->check(not_empty());
  app.add_option("--trace-links",
                 line.trace_links,
                 "links to follow over time, ids as topology prints them, separated by commas")
      ->type_name("LIST")
      ->check(not_empty());
  add_json_option(app, line.json);
}

Evaluator evaluator_of(const std::string& name) {
  return name == "event"      ? Evaluator::kEvent
         : name == "dataflow" ? Evaluator::kDataflow
                              : Evaluator::kAuto;
}

FlopsConvention convention_of(const std::string& name) {
  return name == "full"       ? FlopsConvention::kFull
         : name == "hardware" ? FlopsConvention::kHardware
                              : FlopsConvention::kCausal;
}

/// Whether the name asks for speedscope's own format.
bool for_speedscope(const std::string& path) {
  return path.ends_with(".speedscope.json") || path.ends_with(".speedscope.json.gz");
}

int write_trace(const Scenario& scenario, Simulation& simulation, const RunLine& line) {
  const bool named = !line.trace_ranks.empty();
  const std::int64_t shown =
      cut_trace(simulation,
                line.options.steps,
                named ? std::numeric_limits<std::int64_t>::max() : kComfortableTraceBytes);
  TraceOptions options = trace_options(scenario, simulation, line.options.steps);
  options.links = simulation.links;
  const std::string text =
      for_speedscope(line.trace)
          ? speedscope_profile(simulation.program, simulation.timeline, options)
          : chrome_trace(simulation.program, simulation.timeline, options);
  tell_trace(shown, scenario.cluster.gpus, text.size());
  return write_trace_text(line.trace, text);
}

Expected<Simulation> simulate_with_progress(const Scenario& scenario, SimulateOptions options) {
  ProgressLine progress;
  options.progress = [&progress](int done, int total) { progress.tell(done, total); };
  return simulate(scenario, options);
}

/// The text report, and where the trace lies.
std::string page(const StepReport& report, const RunLine& line) {
  TextStyle style;
  style.width = page_width();
  std::string text = report_text(report, style);
  if (!line.trace.empty() && !report.deadlock) {
    text += "trace        " + line.trace + ": open in " +
            (for_speedscope(line.trace) ? "speedscope.app\n" : "ui.perfetto.dev\n");
  }
  return text;
}

/// Options that contradict each other, or would have no effect.
std::vector<Diagnostic> check_line(const RunLine& line) {
  std::vector<Diagnostic> faults = check_targets({{"trace", line.trace}, {"json", line.json}});
  if (!line.trace_ranks.empty() && line.trace.empty()) {
    faults.push_back({"/trace-ranks", "--trace-ranks has no effect without --trace", ""});
  }
  if (!line.trace_links.empty() && line.trace.empty()) {
    faults.push_back({"/trace-links", "--trace-links has no effect without --trace", ""});
  }
  if (!line.trace_links.empty() && for_speedscope(line.trace)) {
    faults.push_back({"/trace-links",
                      "speedscope's format has no counters",
                      "name the trace .json or .json.gz: a Chrome trace"});
  }
  return faults;
}

int finish(const Scenario& scenario, Simulation& simulation, const RunLine& line) {
  const StepReport& report = simulation.report;
  if (!line.trace.empty() && !report.deadlock) {
    const int status = write_trace(scenario, simulation, line);
    if (status != kExitDone) {
      return status;
    }
  }
  if (!line.json.empty()) {
    const int status = write_output(line.json, report_json(report));
    if (status != kExitDone) {
      return status;
    }
  }
  if (line.trace == "-" && report.deadlock) {
    std::fputs(page(report, line).c_str(), stderr);
  } else if (line.trace != "-" && line.json != "-") {
    const int status = write_output("-", page(report, line));
    if (status != kExitDone) {
      return status;
    }
  }
  return report.deadlock || report.fits == Fit::kNo ? kExitNegative : kExitDone;
}

}  // namespace

int cmd_run(int argc, char** argv) {
  CLI::App app{"Simulates a training step and says where its time goes."};
  RunLine line;
  add_options(app, line);
  if (const std::optional<int> over = parse_options(app, argc, argv)) {
    return *over;
  }
  if (const std::optional<int> over =
          refuse_overwriting("run",
                             {{"trace", line.trace}, {"json", line.json}},
                             scenario_inputs(line.scenario, line.overrides))) {
    return *over;
  }
  if (std::vector<Diagnostic> faults = check_line(line); !faults.empty()) {
    return report_faults(
        Faults{std::move(faults), FaultKind::kBadInput}, "foretrain run", line.json);
  }
  const Expected<Scenario> scenario =
      read_scenario(line.scenario, line.overrides, {}, cluster_part_faults);
  if (!scenario) {
    return report_faults(scenario.error(), line.scenario, line.json);
  }
  if (!line.trace_ranks.empty()) {
    Expected<std::vector<std::int64_t>> ranks =
        parse_rank_list(line.trace_ranks, scenario->cluster.gpus, "--trace-ranks");
    if (!ranks) {
      return report_faults(ranks.error(), line.scenario, line.json);
    }
    line.options.trace_ranks = std::move(*ranks);
  }
  if (!line.trace_links.empty()) {
    line.options.trace_links = comma_words(line.trace_links);
  }
  line.options.evaluator = evaluator_of(line.evaluator);
  line.options.flops_convention = convention_of(line.convention);
  line.options.record = !line.trace.empty();
  Expected<Simulation> simulation = simulate_with_progress(*scenario, line.options);
  if (!simulation) {
    return report_faults(simulation.error(), line.scenario, line.json);
  }
  StepReport& report = simulation->report;
  if (report.fits == Fit::kNo && !report.deadlock) {
    const std::vector<std::string> advice =
        fit_advice(line.scenario, line.overrides, *scenario, report);
    report.notes.insert(report.notes.end(), advice.begin(), advice.end());
  }
  return finish(*scenario, *simulation, line);
}

}  // namespace foretrain
