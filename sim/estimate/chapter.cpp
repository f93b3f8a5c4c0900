// The additive rules (MODEL 10.3): the time of one micro-batch on the slowest stage, times the
// micro-batches, plus fill and drain, plus what is left of the data-parallel traffic.
#include "sim/base/real.h"
#include "sim/estimate/sizes.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

/// Recomputed layers of the fullest stage: none, and one more until states and activations fit.
void fit_memory(const Estimator::Sizes& sizes,
                const Assumptions& assumptions,
                const RankShare& share,
                double passes,
                Estimate& estimate) {
  const Layout& layout = estimate.layout;
  const bool as_needed = layout.recompute_layers == kRecomputeAsNeeded;
  const auto layers = static_cast<std::int64_t>(estimate.stage_layers);
  std::int64_t recomputed = as_needed ? 0 : std::min(layout.recompute_layers, layers);
  estimate.memory = states(assumptions, layout, share);
  for (;; ++recomputed) {
    estimate.memory.activations =
        passes * activation_bytes(
                     sizes, assumptions, layout, share, estimate.stage_layers, real(recomputed));
    estimate.fits = estimate.memory.total() <= estimate.memory_limit;
    if (estimate.fits || !as_needed || recomputed == layers) {
      break;
    }
  }
  estimate.recompute_layers = recomputed;
}

/// Seconds of the all-reduces, or gathers and scatters, of one micro-batch on one stage.
double tensor_seconds(const Estimator::Sizes& sizes,
                      const Assumptions& assumptions,
                      const Layout& layout,
                      double layers,
                      double activation) {
  const double tp = real(layout.tp);
  // A layer with routed experts only has its attention's; theirs travel by all-to-all.
  const double without_mlp = sizes.shared_width > 0 ? 0.0 : sizes.moe_share;
  const double collectives = 4 - 2 * without_mlp;
  return layers * collectives * 2 * (tp - 1) / tp * activation /
         link_bandwidth(assumptions, layout, "tp");
}

/// What of the ring's key/value passes attention does not hide.
double ring_seconds(const Estimator::Sizes& sizes,
                    const Assumptions& assumptions,
                    const Layout& layout,
                    double layers,
                    double tokens,
                    double seconds_per_flop) {
  const double sent = 2 * tokens * sizes.kv_width * 2;
  const double ring =
      layers * 3 * (real(layout.cp) - 1) * sent / link_bandwidth(assumptions, layout, "cp");
  const double attention = layers * sizes.attention_flops * seconds_per_flop;
  return std::max(0.0, ring - assumptions.cp_overlap * attention);
}

/// Two all-to-alls forward and two backward in each layer with experts.
double expert_seconds(const Estimator::Sizes& sizes,
                      const Assumptions& assumptions,
                      const Layout& layout,
                      double layers,
                      double activation) {
  const double ep = real(layout.ep);
  const bool inside = ep * real(layout.etp) <= assumptions.gpus_per_node;
  const double bandwidth = inside ? assumptions.node_bandwidth : assumptions.network_bandwidth;
  const double sent = sizes.chosen_experts * activation / real(layout.tp) * (ep - 1) / ep;
  return layers * sizes.moe_share * 4 * sent * expert_skew(assumptions, layout) / bandwidth *
         (1 - assumptions.ep_overlap);
}

/// Gradients reduced and weights gathered, per step; ZeRO-2 reduces, and ZeRO-3 also gathers twice,
/// once a micro-batch.
double data_seconds(const Assumptions& assumptions, const Layout& layout, const RankShare& share) {
  const double gradients = assumptions.gradient_bytes;
  const double weights = assumptions.weight_bytes;
  const double often = share.micro_batches;
  const double bytes = layout.sharding == Sharding::kNone    ? 2 * gradients
                       : layout.sharding == Sharding::kZero1 ? gradients + weights
                       : layout.sharding == Sharding::kZero2 ? gradients * often + weights
                                                             : (gradients + 2 * weights) * often;
  const auto moved = [&](double parameters, double ranks) {
    return (ranks - 1) / ranks * bytes * parameters;
  };
  const bool split_by_cp_only = layout.dp == 1;
  return (moved(share.dense_parameters, share.data_ranks) +
          moved(share.expert_parameters, share.expert_data_ranks)) /
         link_bandwidth(assumptions, layout, split_by_cp_only ? "cp" : "dp") *
         (1 - assumptions.dp_overlap);
}

}  // namespace

Estimate chapter_estimate(const Estimator::Sizes& sizes,
                          const Assumptions& assumptions,
                          const Layout& layout) {
  const RankShare share = rank_share(sizes, assumptions, layout);
  const double even = std::ceil(sizes.layers / real(layout.pp));
  Estimate estimate;
  estimate.layout = layout;
  estimate.micro_batches = std::llround(share.micro_batches);
  estimate.stage_layers = layout.most_layers > 0 ? real(layout.most_layers) : even;
  estimate.memory_limit = assumptions.memory * assumptions.memory_fraction;
  const ScheduleShape shape = sizes.shapes->of(layout, estimate.micro_batches);
  fit_memory(sizes, assumptions, share, shape.in_flight, estimate);

  const double layers = estimate.stage_layers;
  const double last = layout.last_layers > 0 ? real(layout.last_layers) : layers;
  const double seconds_per_flop =
      share.tokens / real(layout.tp) / (assumptions.peak * assumptions.efficiency);
  const double flops = sizes.layers * sizes.layer_flops() + sizes.head_flops;
  const double mean = flops / real(layout.pp) * seconds_per_flop;
  const double busiest =
      sizes.layer_flops() + sizes.expert_flops * (expert_skew(assumptions, layout) - 1);
  const double slowest =
      std::max(layers * busiest, last * busiest + sizes.head_flops) * seconds_per_flop;
  const double recompute = real(estimate.recompute_layers) * busiest / 3 * seconds_per_flop;
  const double activation = share.tokens * sizes.hidden * 2;
  const double tensor = tensor_seconds(sizes, assumptions, layout, layers, activation);
  const double context =
      ring_seconds(sizes, assumptions, layout, layers, share.tokens, seconds_per_flop);
  const double expert = expert_seconds(sizes, assumptions, layout, layers, activation);
  const double messages = layout.pp > 1 ? 2 * activation / real(layout.tp) * real(layout.vpp) /
                                              link_bandwidth(assumptions, layout, "pp") *
                                              (1 - assumptions.pp_overlap)
                                        : 0.0;
  const double micro_batch = slowest + recompute + tensor + context + expert + messages;
  const double times = share.micro_batches;
  EstimateParts& parts = estimate.parts;
  parts.compute = times * mean;
  parts.recompute = times * recompute;
  parts.imbalance = times * (slowest - mean);
  parts.tp = times * tensor;
  parts.cp = times * context;
  parts.ep = times * expert;
  parts.pp = times * messages;
  parts.bubble = shape.bubble * micro_batch;
  parts.dp = data_seconds(assumptions, layout, share);
  finish_estimate(estimate, assumptions, flops * sizes.batch * sizes.sequence_length);
  return estimate;
}

}  // namespace foretrain
