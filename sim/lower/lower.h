#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/model.h"
#include "foretrain/program.h"
#include "foretrain/scenario.h"
#include "foretrain/schedule.h"
#include "foretrain/topology.h"
#include "sim/cost/memory.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Scenario -> Program: the one place where the user's language meets the machine's.
namespace foretrain {

/// How one communication dimension sits on the machine, for the report.
struct NetworkFacts {
  std::string group;
  std::int64_t size = 1;
  bool inside_node = true;
  std::string limiting_link;
};

/// What the report needs beside the Program; labels and totals, never costs.
struct StepFacts {
  std::int64_t tokens = 0;  ///< per step, all replicas
  Int128 model_flops = 0;   ///< executed by all ranks in a step, without recomputation
  Int128 recomputed_flops = 0;
  std::vector<MemoryPlan> memory;            ///< per pipeline rank
  std::vector<std::int32_t> in_flight_peak;  ///< per pipeline rank, chunk units
  std::vector<std::int64_t> layers;          ///< per pipeline rank
  std::vector<Stash> layer_stash;            ///< of one layer and micro-batch, by operator
  std::vector<NetworkFacts> network;         ///< tp, dp, pp where degree > 1
  std::vector<std::string> stragglers;       ///< per perturbation, e.g. "slow_gpu rank 17"
  /// Blocks whose kernels have what transfers beside them take in their work already.
  std::vector<std::int32_t> settled_blocks;
};

struct Lowered {
  Program program;  ///< one instance per rank
  StepFacts facts;
  Schedule schedule;
  /// What each virtual stage's actions take when nothing else runs, on the first rank of its own.
  ScheduleCosts chunk_costs;
};

/// Faults: a schedule or mesh that cannot be built; pointers as in check.
Expected<Lowered> lower(const Scenario& scenario);

/// The cluster with the scenario's routing and slow links. Faults: links that it does not have.
Expected<Topology> topology_of(const Scenario& scenario);

/// Factors of every rank from the perturbations: factor_sets and Instance::factor_set. `skip`: one
/// perturbation left out; -1: none.
void apply_perturbations(const Scenario& scenario, std::int64_t skip, Program& program);

/// A perturbation in words: "slow_gpu rank 17".
std::string perturbation_name(const Perturbation& perturbation);

}  // namespace foretrain
