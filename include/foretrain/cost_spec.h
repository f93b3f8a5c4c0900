#pragma once

#include "foretrain/units.h"

#include <optional>
#include <string>

/// What a scenario says of the prices of its work: the cost model, and the software that runs it.
namespace foretrain {

/// Times of one chunk's phases as somebody measured them, whatever its layers; what they hold of
/// communication inside a stage is in them. Gradients and parameters then travel for nothing.
struct StatedCosts {
  Duration forward{};
  Duration backward{};            ///< unset: dgrad + wgrad
  std::optional<Duration> dgrad;  ///< needed by schedules that split the backward
  std::optional<Duration> wgrad;
  std::optional<Duration> overlapped;  ///< unset: forward + backward
  Duration p2p{};                      ///< of one transfer between pipeline ranks
  Duration optimizer{};                ///< everything after the last backward
};

/// Textbook costs under which closed forms hold exactly, the user's own, or the calibrated model.
struct CostSpec {
  std::optional<StatedCosts> stated;
  bool constant = false;
  double gemm_efficiency = 0.6;
  double attention_efficiency = 0.6;
  bool memory_bound_ops = false;
  Duration launch_overhead{};
  double link_efficiency = 1.0;
  Duration link_latency{};
  bool communication_free = false;
  bool embedding_and_head_free = false;
};

/// The software that runs the kernels.
struct StackSpec {
  std::string name = "megatron-2024";
  std::string family = "megatron";
  int year = 2024;
  std::string attention_kernel = "flash-2";  ///< unfused, flash-1, flash-2, flash-3, cudnn
  bool fused_operators = true;  ///< norms, SwiGLU, rotary and dropout-add in one pass each
  bool cuda_graphs = false;
  bool fused_gradient_accumulation = true;  ///< main-gradient add inside the weight-gradient GEMM
  std::string gradient_reduction =
      "run";  ///< zero2: "run" (after each run of a chunk's backwards), "micro_batch"
  std::string dispatcher = "alltoall";  ///< of experts: alltoall, allgather, flex, deepep
  /// Share of the SMs that communication kernels take from the kernels beside them in overlapped
  /// units: 20 of 132.
  double communication_sm_share = 0.15;
  double expert_capacity = 0.0;  ///< experts padded to this capacity factor; 0: dropless
  Duration host_launch{};        ///< host time per kernel launch
  /// Dropless experts: the host reads the token counts before it launches the expert GEMMs.
  Duration host_sync{};
};

}  // namespace foretrain
