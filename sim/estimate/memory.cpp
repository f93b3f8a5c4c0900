// Bytes on one GPU (MODEL 10.2).
#include "sim/estimate/sizes.h"

#include <algorithm>

namespace foretrain {

EstimateMemory states(const Assumptions& assumptions,
                      const Layout& layout,
                      const RankShare& share) {
  const auto held = [&](Sharding sharded_from) {
    const bool sharded = layout.sharding >= sharded_from;
    return sharded ? share.dense_parameters / share.data_ranks +
                         share.expert_parameters / share.expert_data_ranks
                   : share.dense_parameters + share.expert_parameters;
  };
  EstimateMemory memory;
  memory.weights = assumptions.weight_bytes * held(Sharding::kZero3);
  memory.gradients = assumptions.gradient_bytes * held(Sharding::kZero2);
  memory.optimizer = assumptions.optimizer_bytes * held(Sharding::kZero1);
  return memory;
}

double activation_bytes(const Estimator::Sizes& sizes,
                        const Assumptions& assumptions,
                        const Layout& layout,
                        const RankShare& share,
                        double layers,
                        double recomputed) {
  // The MLP of 4 h columns keeps two tensors of two bytes: 16 of the 34 bytes. A layer with experts
  // keeps, per chosen expert, its input and output (2 + 2 bytes a column of h) and three tensors of
  // the expert's width instead; the busiest rank keeps more by the imbalance.
  constexpr double kDenseMlp = 16;
  const double dense = assumptions.activation_bytes * sizes.hidden;
  const double routed = sizes.chosen_experts * (4 * sizes.hidden + 6 * sizes.expert_width);
  const double moe = std::max(0.0, assumptions.activation_bytes - kDenseMlp) * sizes.hidden +
                     routed * expert_skew(assumptions, layout) + 6 * sizes.shared_width;
  const double kept = (1 - sizes.moe_share) * dense + sizes.moe_share * moe;
  const double per_token =
      kept * (layers - recomputed) + assumptions.recomputed_bytes * sizes.hidden * recomputed;
  return per_token * share.tokens / static_cast<double>(layout.tp);
}

}  // namespace foretrain
