#include "tools/commands.h"
#include "tools/counts.h"
#include "tools/job_options.h"
#include "tools/output.h"
#include "tools/plan_json.h"
#include "tools/plan_text.h"
#include "tools/progress_line.h"
#include "tools/typed.h"

#include "foretrain/plan.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

struct PlanLine {
  JobLine job;
  std::string tokens, flops, days, mfu, rate;
  bool no_simulate = false;
  std::string write;
  int threads = 0;
};

void add_options(CLI::App& app, PlanLine& line) {
  add_job_options(app, line.job);
  const auto text = [&](const char* name, std::string& value, const char* help, const char* type) {
    app.add_option(name, value, help)->type_name(type)->check(not_empty());
  };
  text("--tokens", line.tokens, "to train on, e.g. 15T or 1.5e13: how many days", "COUNT");
  text("--flops", line.flops, "of the whole training, e.g. 3e24, instead of --tokens", "COUNT");
  text("--days", line.days, "deadline: how many GPUs", "DAYS");
  text("--mfu", line.mfu, "to reckon days with, e.g. 0.4, instead of the plan's own", "SHARE");
  text("--tokens-per-s-per-gpu", line.rate, "the same, as measured", "RATE");
  app.add_flag("--no-simulate", line.no_simulate, "closed form only");
  text(
      "--write", line.write, "write the plan's scenario to FILE, or alone to output (-)", "FILE|-");
  app.add_option("--threads", line.threads, "of the search; 0: one per core")
      ->check(whole_number(0, 1024));
}

void read_number(const std::string& text,
                 const std::string& pointer,
                 const char* example,
                 std::optional<double> (*parse)(const std::string&),
                 std::optional<double>& value,
                 std::vector<Diagnostic>& faults) {
  if (text.empty()) {
    return;
  }
  value = parse(text);
  if (!value) {
    faults.push_back({pointer, "cannot read \"" + text + "\"", std::string("e.g. ") + example});
    value = 1;  // given, so that what it contradicts is told as well
  }
}

PlanOptions read_options(const PlanLine& line, std::vector<Diagnostic>& faults) {
  PlanOptions options;
  read_number(line.tokens, "/tokens", "15T or 1.5e13", parse_count, options.tokens, faults);
  read_number(line.flops, "/flops", "3e24", parse_count, options.flops, faults);
  read_number(line.days, "/days", "90", parse_count, options.days, faults);
  read_number(line.mfu, "/mfu", "0.4 or \"40 %\"", parse_share, options.mfu, faults);
  read_number(line.rate,
              "/tokens-per-s-per-gpu",
              "1444",
              parse_count,
              options.tokens_per_s_per_gpu,
              faults);
  options.simulate = !line.no_simulate;
  options.threads = line.threads;
  const std::vector<Diagnostic> wrong = plan_faults(options);
  faults.insert(faults.end(), wrong.begin(), wrong.end());
  const std::vector<Diagnostic> targets =
      check_targets({{"write", line.write}, {"json", line.job.json}});
  faults.insert(faults.end(), targets.begin(), targets.end());
  return options;
}

/// The command line, to type again.
TypedPlan typed(const PlanLine& line) {
  const JobLine& job = line.job;
  TypedPlan parts;
  parts.before_gpus = {"--model " + shell_word(job.model),
                       "--topology " + shell_word(job.topology)};
  parts.after_gpus = {"--seq " + std::to_string(job.sequence_length),
                      "--gbs " + std::to_string(job.global_batch_size)};
  for (const std::string& key_value : job.assume) {
    parts.assumed.push_back("--assume " + shell_word(key_value));
  }
  if (line.no_simulate) {
    parts.plan_only.emplace_back("--no-simulate");
  }
  return parts;
}

/// Targets that are folders: told before anything is planned.
int check_folders(const PlanLine& line) {
  for (const std::string& target : {line.write, line.job.json}) {
    std::error_code error;
    if (std::filesystem::is_directory(target, error)) {
      std::fprintf(stderr, "foretrain: %s is a folder; name a file in it\n", target.c_str());
      return kExitFile;
    }
  }
  return kExitDone;
}

/// The line of progress is gone before anything is printed.
Expected<Plan> plan_with_progress(const TrainingJob& job, PlanOptions& options) {
  ProgressLine progress;
  options.progress = [&progress](int done, int total) { progress.tell(done, total); };
  Expected<Plan> plan = plan_layout(job, options);
  options.progress = nullptr;
  return plan;
}

int finish(const PlanLine& line,
           const TrainingJob& job,
           const PlanOptions& options,
           const Plan& plan) {
  const bool writes = !line.write.empty() && plan.feasible;
  if (!line.write.empty() && !plan.feasible) {
    std::fprintf(stderr, "foretrain: nothing fits, %s is not written\n", line.write.c_str());
  }
  if (writes) {
    const int status = write_output(line.write, plan.scenario);
    if (status != kExitDone) {
      return status;
    }
  }
  if (!line.job.json.empty()) {
    const int status = write_json(line.job.json, plan_json(job, options, plan));
    if (status != kExitDone) {
      return status;
    }
  }
  if (line.job.json != "-" && !(writes && line.write == "-")) {
    const std::string written = writes ? line.write : "";
    const int status =
        write_output("-", plan_text(job, options, plan, typed(line), written, page_width()));
    if (status != kExitDone) {
      return status;
    }
  }
  return plan.feasible ? kExitDone : kExitNegative;
}

}  // namespace

int cmd_plan(int argc, char** argv) {
  CLI::App app{"How to lay a model out on a cluster, step by step, with the arithmetic."};
  PlanLine line;
  add_options(app, line);
  if (const std::optional<int> over = parse_options(app, argc, argv)) {
    return *over;
  }
  if (const std::optional<int> over =
          refuse_overwriting("plan",
                             {{"write", line.write}, {"json", line.job.json}},
                             {line.job.model, line.job.topology})) {
    return *over;
  }
  std::vector<Diagnostic> faults;
  PlanOptions options = read_options(line, faults);
  // The scenario may be written anywhere.
  line.job.model = from_anywhere(line.job.model);
  line.job.topology = from_anywhere(line.job.topology);
  const Expected<AssumedJob> assumed = read_job_line(line.job);
  if (!assumed || !faults.empty()) {
    Faults all = assumed ? Faults{} : assumed.error();
    all.list.insert(all.list.end(), faults.begin(), faults.end());
    return report_faults(all, "foretrain plan", line.job.json);
  }
  if (const int status = check_folders(line); status != kExitDone) {
    return status;
  }
  options.assumptions = assumed->assumptions;
  const Expected<Plan> plan = plan_with_progress(assumed->job, options);
  if (!plan) {
    return report_faults(plan.error(), "foretrain plan", line.job.json);
  }
  return finish(line, assumed->job, options, *plan);
}

}  // namespace foretrain
