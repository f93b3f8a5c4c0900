#include "foretrain/estimate.h"

#include <algorithm>
#include <limits>

namespace foretrain {
namespace {

/// Transformer layers of one pipeline rank, of each of its chunks no more than `most`.
std::int64_t layers_of_rank(const Parallelism& degrees,
                            std::int64_t rank,
                            std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  std::int64_t layers = 0;
  for (std::size_t at = static_cast<std::size_t>(rank); at < degrees.layers_per_stage.size();
       at += static_cast<std::size_t>(degrees.pp)) {
    layers += std::min(degrees.layers_per_stage[at], most);
  }
  return layers;
}

/// Layers that recompute in full on the pipeline rank where most do.
std::int64_t recomputed_layers(const Scenario& scenario, const Layout& layout) {
  if (scenario.recompute.mode != RecomputeMode::kFull) {
    return 0;
  }
  std::int64_t recomputed = 0;
  for (std::int64_t rank = 0; rank < layout.pp; ++rank) {
    const std::int64_t of_chunk = scenario.recompute.layers.value_or(layout.most_layers);
    recomputed = std::max(recomputed, layers_of_rank(scenario.parallelism, rank, of_chunk));
  }
  return recomputed;
}

}  // namespace

Layout layout_of(const Scenario& scenario, ClosedForm form) {
  const Parallelism& degrees = scenario.parallelism;
  Layout layout;
  layout.tp = degrees.tp;
  layout.cp = degrees.cp;
  layout.pp = degrees.pp;
  layout.dp = degrees.dp;
  layout.ep = degrees.ep;
  layout.etp = degrees.etp;
  layout.micro_batch_size = scenario.training.micro_batch_size;
  layout.order = degrees.order;
  for (std::int64_t rank = 0; rank < degrees.pp; ++rank) {
    layout.most_layers = std::max(layout.most_layers, layers_of_rank(degrees, rank));
  }
  // The head is on the last virtual stage, which the last rank holds.
  layout.last_layers = layers_of_rank(degrees, degrees.pp - 1);
  if (form == ClosedForm::kWorkshop) {
    layout.vpp = degrees.vpp;
    layout.sharding = degrees.sharding;
    layout.recompute_layers = recomputed_layers(scenario, layout);
  }
  return layout;
}

}  // namespace foretrain
