#pragma once

#include "foretrain/model.h"
#include "foretrain/scenario.h"
#include "foretrain/schedule.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Memory of one rank of a pipeline stage (MODEL 7).
namespace foretrain {

/// Bytes on one rank; `peak` is the highest point of the step.
struct MemoryPlan {
  std::int64_t weights = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t activations = 0;  ///< stashes in flight at the peak, with the working set of a layer
  std::int64_t logits = 0;       ///< at the peak
  std::int64_t buffers = 0;      ///< messages and gathers in transit
  std::int64_t peak = 0;         ///< sum of the above
  std::int64_t reserved = 0;     ///< peak with the allocator's band
  bool gradients_whole = false;  ///< zero2 that shards nothing: all chunks are being accumulated
  std::int64_t static_bytes() const { return weights + gradients + optimizer + buffers; }
};

/// What a parameter costs in optimizer state, bytes: master copy when the model's own is narrower,
/// an fp32 copy of 16-bit gradients, and the moments (user's table in MODEL 7.1).
std::int64_t optimizer_bytes_per_parameter(const TrainingSpec& training);

/// Bytes a device needs beside what the framework allocates: CUDA context, NCCL, cuBLAS.
inline constexpr std::int64_t kContextBytes = 1'500'000'000;
/// Share of the allocated peak that fragmentation may take on top.
inline constexpr double kAllocatorBand = 0.10;

/// What one virtual stage holds on one rank.
struct StageHoldings {
  RankParameters parameters;
  std::int64_t largest_bucket = 0;  ///< parameters reduced or gathered at once; zero3: of a unit
  /// By version of the work (micro-batches or slices that differ): kept until its backward, logits
  /// apart; and what recomputing all of it brings back, from input to weight gradient.
  std::vector<std::int64_t> stash, recomputed;
  std::int64_t logits = 0;           ///< of its heads, per micro-batch
  std::int64_t logits_gradient = 0;  ///< of these, kept from input to weight gradient
  std::int64_t working_set = 0;      ///< added by a layer while it is recomputed
  std::int64_t weight_copies = 0;    ///< narrow copies of weights, beside the model's own
};

struct MemoryInputs {
  const Scenario& scenario;
  const Schedule& schedule;
  std::function<std::size_t(const Action&)> version;  ///< which one an action runs
  std::vector<StageHoldings> stages;                  ///< per virtual stage
  std::int64_t boundary = 0;                          ///< one message between stages
};

MemoryPlan plan_memory(const MemoryInputs& inputs, std::int32_t pp_rank);

}  // namespace foretrain
