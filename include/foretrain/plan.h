#pragma once

#include "foretrain/search.h"

#include <cstdint>
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
  std::string decision;                 ///< "tp 8: one node"
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
  int threads = 0;
};

struct Plan {
  std::vector<PlanStep> steps;
  bool feasible = false;
  std::string reason;  ///< why not
  Estimate estimate;   ///< of the layout chosen; its `layout` is the plan's
  std::optional<SimulatedLayout> simulated;
  std::string not_simulated;  ///< why not, where simulation was asked for
  std::string scenario;       ///< JSON text, ready to run; empty where infeasible
};

Plan plan_layout(const TrainingJob& job, const PlanOptions& options);

}  // namespace foretrain
