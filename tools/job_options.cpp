#include "tools/job_options.h"

#include "tools/output.h"

#include <CLI/CLI.hpp>

namespace foretrain {

void add_job_options(CLI::App& app, JobLine& line) {
  app.add_option("--model", line.model, "preset name, or path of a config.json")
      ->required()
      ->check(not_empty());
  app.add_option("--topology", line.topology, "preset name, or path of a topology file")
      ->required()
      ->check(not_empty());
  app.add_option("--gpus", line.gpus, "GPUs of the cluster")->required()->check(whole_number(1));
  app.add_option("--seq", line.sequence_length, "tokens of a sequence")
      ->required()
      ->check(whole_number(1));
  app.add_option("--gbs", line.global_batch_size, "sequences of a step, over all GPUs")
      ->required()
      ->check(whole_number(1));
  app.add_option("--assume",
                 line.assume,
                 "KEY=VALUE of the closed form, e.g. efficiency=0.55; may be repeated")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->expected(1);
  add_json_option(app, line.json);
}

void apply_assumptions(const std::vector<std::string>& key_values,
                       Assumptions& assumptions,
                       Layout& layout,
                       std::vector<Diagnostic>& faults) {
  for (const std::string& key_value : key_values) {
    const Expected<bool> set = assume(key_value, assumptions, layout);
    if (!set) {
      faults.insert(faults.end(), set.error().list.begin(), set.error().list.end());
    }
  }
  if (assumptions.parameters > 0 && assumptions.expert_parameters > assumptions.parameters) {
    faults.push_back({"/assume/expert_parameters",
                      "more of them than the parameters, experts included",
                      "raise parameters as well"});
  }
}

Expected<AssumedJob> read_job_line(const JobLine& line) {
  Faults faults;
  AssumedJob assumed;
  Expected<TrainingJob> job =
      read_job(line.model, line.topology, line.gpus, line.sequence_length, line.global_batch_size);
  if (job) {
    assumed.job = *std::move(job);
    assumed.assumptions =
        default_assumptions(ClosedForm::kChapter, assumed.job.model, assumed.job.hardware);
  } else {
    faults = job.error();
  }
  // The layout's own values are the search's to choose: only what it assumes of all is kept.
  Layout ignored;
  apply_assumptions(line.assume, assumed.assumptions, ignored, faults.list);
  if (!(ignored == Layout{})) {
    faults.list.push_back({"/assume",
                           "sharding, vpp and recompute_layers belong to a layout",
                           "ask for them as axes of the search"});
  }
  if (!faults.list.empty()) {
    return tl::unexpected<Faults>(std::move(faults));
  }
  return assumed;
}

}  // namespace foretrain
