#include "foretrain/search.h"
#include "sim/mesh/mesh_faults.h"
#include "sim/scenario/divides.h"

namespace foretrain {
namespace {

/// A file's faults, at the place of a scenario that would name the file.
void adopt(const Faults& faults, const std::string& pointer, Faults& into) {
  for (const Diagnostic& fault : faults.list) {
    const std::string place = fault.pointer.empty() ? "" : fault.pointer + ": ";
    into.list.push_back({pointer, place + fault.message, fault.hint});
  }
  if (faults.kind == FaultKind::kFile) {
    into.kind = FaultKind::kFile;
  }
}

void check_positive(std::int64_t value, const std::string& pointer, Faults& faults) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  if (value < 1 || value > kMost) {
    faults.list.push_back(
        {pointer, std::to_string(value) + " is not a whole number from 1 to 2^53", ""});
  }
}

/// Sizes that no layout could save.
void check_limits(const TrainingJob& job, Faults& faults) {
  const std::int64_t offered = job.hardware.max_gpus;
  const std::string gpus = std::to_string(job.gpus) + " GPUs are more than the ";
  if (offered > 0 && job.gpus > offered) {
    faults.list.push_back({"/cluster/gpus",
                           gpus + std::to_string(offered) + " that " + job.topology + " has",
                           "at most " + std::to_string(offered)});
  } else if (job.gpus > kMaxRanks) {
    faults.list.push_back({"/cluster/gpus",
                           gpus + std::to_string(kMaxRanks) + " ranks that a mesh may have",
                           "at most " + std::to_string(kMaxRanks)});
  }
  if (!positions_suffice(job.model, job.sequence_length)) {
    faults.list.push_back({"/training/sequence_length",
                           std::to_string(job.sequence_length) +
                               " tokens are more than the model's " +
                               std::to_string(job.model.max_positions) + " learned positions",
                           "at most " + std::to_string(job.model.max_positions)});
  }
  if (largest_operator_flops(job.model, job.sequence_length, 1) > kMostOperatorFlops) {
    faults.list.push_back(
        {"/training/sequence_length",
         std::to_string(job.sequence_length) + " tokens make one operator of more than 4e18 FLOPs",
         "shorten the sequence"});
  }
}

}  // namespace

Expected<TrainingJob> read_job(const std::string& model,
                               const std::string& topology,
                               std::int64_t gpus,
                               std::int64_t sequence_length,
                               std::int64_t global_batch_size) {
  TrainingJob job;
  job.model_reference = model;
  job.topology = topology;
  job.gpus = gpus;
  job.sequence_length = sequence_length;
  job.global_batch_size = global_batch_size;
  Faults faults;
  if (Expected<ModelConfig> read = read_model(model)) {
    job.model = *std::move(read);
  } else {
    adopt(read.error(), "/model", faults);
  }
  if (Expected<TopologySpec> read = read_topology(topology)) {
    job.hardware = *std::move(read);
  } else {
    adopt(read.error(), "/cluster/topology", faults);
  }
  check_positive(gpus, "/cluster/gpus", faults);
  check_positive(sequence_length, "/training/sequence_length", faults);
  check_positive(global_batch_size, "/training/global_batch_size", faults);
  if (faults.list.empty()) {
    check_limits(job, faults);
  }
  if (!faults.list.empty()) {
    return tl::unexpected<Faults>(std::move(faults));
  }
  return job;
}

}  // namespace foretrain
