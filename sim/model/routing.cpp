#include "foretrain/model.h"

#include <algorithm>

namespace foretrain {

/// k experts drawn without replacement from the nodes a token may go to: a node of e experts among
/// E is missed with probability C(E - e, k) / C(E, k).
double nodes_per_token(const ModelConfig& model, std::int64_t nodes) {
  std::int64_t allowed = nodes;
  if (model.expert_groups > 0) {
    const std::int64_t chosen = model.expert_groups_per_token;
    allowed = std::min(nodes, std::max(chosen, chosen * nodes / model.expert_groups));
  }
  const double here = static_cast<double>(model.experts) / static_cast<double>(nodes);
  const double all = here * static_cast<double>(allowed);
  double missed = 1.0;
  for (std::int64_t drawn = 0; drawn < model.experts_per_token; ++drawn) {
    const auto before = static_cast<double>(drawn);
    missed *= std::max(0.0, all - here - before) / std::max(1.0, all - before);
  }
  return static_cast<double>(allowed) * (1.0 - missed);
}

}  // namespace foretrain
