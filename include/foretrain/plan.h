#pragma once

#include "foretrain/search.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// "Here are N cards and this model": the answer of a whiteboard, with its arithmetic.
namespace foretrain {

/// One question and what follows from it.
struct PlanStep {
  std::string title;                    ///< "Tensor parallelism"
  std::string question;                 ///< "How many ways must a layer be split?"
  std::vector<std::string> arithmetic;  ///< with the numbers put in: "16 x 175e9 = 2.8e12 bytes"
  std::string decision;                 ///< "tp 8: the whole node"
  std::string otherwise;                ///< what would change the decision
};

struct PlanOptions {
  Assumptions assumptions;
  std::optional<double> tokens;                ///< to train on: adds the days
  std::optional<double> flops;                 ///< of the whole training, instead of tokens
  std::optional<double> days;                  ///< deadline: adds the GPUs it takes
  std::optional<double> mfu;                   ///< to reckon days with, instead of the plan's own
  std::optional<double> tokens_per_s_per_gpu;  ///< likewise, measured
  bool simulate = true;
  int threads = 0;  ///< of the search; 0: all cores; never changes the result
  /// Called, where set, before each run of the simulation with the number of runs behind it.
  std::function<void(int done, int total)> progress;
};

/// How long the training takes, failures not counted.
struct TrainingTime {
  double flops_per_token = 0;  ///< forward and backward, causal attention (model.h)
  double flops = 0;            ///< of the whole training
  double tokens = 0;           ///< flops over flops_per_token where FLOPs were given
  double mfu = 0;              ///< reckoned with, of the dense peak
  double tokens_per_s_per_gpu = 0;
  std::string basis;                  ///< whose MFU: "given", "simulated", "closed form", ...
  double days = 0;                    ///< on the job's GPUs
  std::optional<double> gpus_needed;  ///< to keep the deadline at this MFU; not whole
  /// On the fewest GPUs, at least so many, on which the job has a layout that shares its batch.
  std::optional<Estimate> deadline_layout;
  std::int64_t deadline_batch = 0;  ///< where none has: sequences that would do; 0: not known
};

struct Plan {
  std::vector<PlanStep> steps;
  bool feasible = false;  ///< by the closed form, and by the simulation where there was one
  std::string reason;     ///< why not
  Estimate estimate;      ///< of the layout chosen; its `layout` is the plan's
  std::int64_t rank =
      0;  ///< of it among the layouts that search finds by closed form; 0: not there
  std::int64_t ranked = 0;           ///< how many search finds
  std::vector<RankedLayout> best;    ///< its first three, to measure beside the plan's
  std::optional<Estimate> nearest;   ///< where nothing fits: what misses by least
  std::optional<Estimate> smallest;  ///< where nothing fits: on the fewest GPUs that would do
  bool runs = false;                 ///< whether the scenario can be simulated, asked for or not
  std::optional<SimulatedLayout> simulated;
  std::string not_simulated;         ///< why not, where simulation was asked for
  std::string scenario;              ///< JSON text, ready to run; empty where infeasible
  std::optional<TrainingTime> time;  ///< where tokens or FLOPs were given, and an MFU is known
};

/// Options that contradict each other, have no effect, or are out of range; pointers /tokens,
/// /flops, /days, /mfu, /tokens-per-s-per-gpu.
std::vector<Diagnostic> plan_faults(const PlanOptions& options);

/// Faults: plan_faults(). That nothing fits is a result.
Expected<Plan> plan_layout(const TrainingJob& job, const PlanOptions& options);

}  // namespace foretrain
