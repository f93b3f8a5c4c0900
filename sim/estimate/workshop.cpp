// The multiplicative rules (MODEL 10.4): the kernels' utilisation, times what each loss leaves.
#include "sim/estimate/sizes.h"

#include <algorithm>
#include <cmath>

namespace foretrain {

Estimate workshop_estimate(const Estimator::Sizes& sizes,
                           const Assumptions& assumptions,
                           const Layout& layout) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double tp = real(layout.tp);
  const double pp = real(layout.pp);
  const RankShare share = rank_share(sizes, assumptions, layout);
  Estimate estimate;
  estimate.layout = layout;
  estimate.micro_batches = std::llround(share.micro_batches);
  estimate.stage_layers = sizes.layers / pp;
  const double recomputed = std::clamp(real(layout.recompute_layers), 0.0, estimate.stage_layers);
  estimate.recompute_layers = static_cast<std::int64_t>(std::ceil(recomputed));
  estimate.memory = states(assumptions, layout, share);
  estimate.memory.activations =
      std::min(pp, share.micro_batches) *
      activation_bytes(sizes, assumptions, layout, share, estimate.stage_layers, recomputed);
  estimate.memory_limit = assumptions.memory * assumptions.memory_fraction;
  estimate.fits = estimate.memory.total() <= estimate.memory_limit;

  const double rate = assumptions.peak * assumptions.efficiency;
  const double flops = 6 * sizes.active_parameters * sizes.batch * sizes.sequence_length;
  const double gpus = tp * pp * real(layout.cp) * real(layout.dp);
  const double passes = share.micro_batches * real(layout.vpp);
  const double layer = 6 * sizes.active_parameters / sizes.layers * share.tokens / tp / rate;
  const double all_reduces = 4 * 2 * (tp - 1) / tp * 2 * share.tokens * sizes.hidden /
                             link_bandwidth(assumptions, layout, "tp");
  const double ranks = share.data_ranks;
  const double gradients = 2 * (ranks - 1) / ranks * assumptions.gradient_bytes *
                           (share.dense_parameters + share.expert_parameters) /
                           assumptions.network_bandwidth;
  // Forward is a third of the work and is done again for the recomputed layers: r = 6 / 8 for all.
  const double again = recomputed / estimate.stage_layers / 3;
  EstimateParts& parts = estimate.parts;
  parts.compute = flops / (gpus * rate);
  parts.tp = parts.compute * all_reduces / layer;
  parts.recompute = (parts.compute + parts.tp) * again;
  parts.bubble = (parts.compute + parts.tp + parts.recompute) * (pp - 1) / passes;
  const double step = parts.compute + parts.tp + parts.recompute + parts.bubble;
  // The rules take recomputation off last: gradients hide behind the step without it.
  parts.dp = std::max(0.0, gradients * (1 + again) - step);
  finish_estimate(estimate, assumptions, flops);
  return estimate;
}

}  // namespace foretrain
