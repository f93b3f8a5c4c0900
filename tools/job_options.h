#pragma once

#include "foretrain/search.h"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace foretrain {

/// The part of a command line that says what is to be trained, and where: --model, --topology,
/// --gpus, --seq, --gbs, and the closed form's --assume.
struct JobLine {
  std::string model, topology;
  std::int64_t gpus = 0, sequence_length = 0, global_batch_size = 0;
  std::vector<std::string> assume;
  std::string json;
};

/// Adds them, and --json, to a command; all but --assume and --json are required.
void add_job_options(CLI::App& app, JobLine& line);

/// The job with the assumptions to judge it by.
struct AssumedJob {
  TrainingJob job;
  Assumptions assumptions;
};

/// Faults: everything wrong with the files, sizes and assumptions, at once.
Expected<AssumedJob> read_job_line(const JobLine& line);

/// Applies each KEY=VALUE in turn, a later one of a key over an earlier, as --set does; every fault
/// is added to the list.
void apply_assumptions(const std::vector<std::string>& key_values,
                       Assumptions& assumptions,
                       Layout& layout,
                       std::vector<Diagnostic>& faults);

}  // namespace foretrain
