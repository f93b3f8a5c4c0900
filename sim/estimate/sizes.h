#pragma once

#include "foretrain/estimate.h"
#include "sim/estimate/schedule_shape.h"

#include <memory>
#include <string_view>

namespace foretrain {

/// What the rules read of a model and job. FLOPs are per token, forward and backward, of one layer
/// unless said otherwise; a model whose layers differ is taken as its mean layer.
struct Estimator::Sizes {
  double layers = 0, hidden = 0;
  double kv_width = 0;           ///< of one row of K or of V; their mean where they differ
  double sequence_length = 0;    ///< tokens
  double batch = 0;              ///< sequences per step, all replicas
  double linear_flops = 0;       ///< matrices outside the experts, the vocabulary's left out
  double attention_flops = 0;    ///< scores and values, causal
  double expert_flops = 0;       ///< routed experts: only the chosen ones
  double head_flops = 0;         ///< of the model: output projection
  double active_parameters = 0;  ///< that a token meets, both vocabulary tables included
  double moe_share = 0;          ///< layers with experts, of all
  double chosen_experts = 0;     ///< per token
  double expert_width = 0, shared_width = 0;  ///< columns of one routed expert, of the shared ones

  std::shared_ptr<const ScheduleShapes> shapes = std::make_shared<ScheduleShapes>();

  double layer_flops() const { return linear_flops + attention_flops + expert_flops; }
};

Estimator::Sizes estimator_sizes(const ModelConfig& model,
                                 std::int64_t sequence_length,
                                 std::int64_t global_batch_size,
                                 const Assumptions& assumptions);

/// One rank's share of the work under a layout, common to all rules.
struct RankShare {
  double tokens = 0;             ///< of one micro-batch on one context-parallel rank
  double dense_parameters = 0;   ///< outside the experts, in all copies of the model
  double expert_parameters = 0;  ///< in routed experts
  double data_ranks = 0;         ///< dp x cp x copies of the model
  double expert_data_ranks = 0;  ///< tp x cp x dp x copies / (ep x etp)
  double micro_batches = 0;
};
RankShare rank_share(const Estimator::Sizes& sizes,
                     const Assumptions& assumptions,
                     const Layout& layout);

/// Weights, gradients and optimizer on one GPU under the layout's sharding.
EstimateMemory states(const Assumptions& assumptions, const Layout& layout, const RankShare& share);

/// Bytes that `layers` layers keep of one micro-batch, `recomputed` of them only their input.
double activation_bytes(const Estimator::Sizes& sizes,
                        const Assumptions& assumptions,
                        const Layout& layout,
                        const RankShare& share,
                        double layers,
                        double recomputed);

/// The busiest expert rank's work over the mean; ranks that hold every expert are alike.
double expert_skew(const Assumptions& assumptions, const Layout& layout);

Estimate chapter_estimate(const Estimator::Sizes& sizes,
                          const Assumptions& assumptions,
                          const Layout& layout);
Estimate workshop_estimate(const Estimator::Sizes& sizes,
                           const Assumptions& assumptions,
                           const Layout& layout);

/// Sums the parts, and sets step time and MFU.
void finish_estimate(Estimate& estimate, const Assumptions& assumptions, double model_flops);

}  // namespace foretrain
