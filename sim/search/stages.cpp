#include "sim/search/stages.h"

namespace foretrain {
namespace {

/// One layer more, as many as are left over, from the second stage on: the first holds the
/// embedding, the last the head.
StageSplit middle_heavy(std::int64_t layers, std::int64_t pp) {
  StageSplit split;
  const std::int64_t least = layers / pp;
  const std::int64_t over = layers % pp;
  for (std::int64_t stage = 0; stage < pp; ++stage) {
    const std::int64_t place = stage == 0 ? pp - 2 : stage - 1;
    const bool last = stage == pp - 1;
    split.per_stage.push_back(least + (!last && place < over ? 1 : 0));
  }
  split.most = least + 1;
  split.last = least;
  return split;
}

bool ends_divide(std::int64_t layers, std::int64_t chunks) {
  return (layers + 2) % chunks == 0;
}

}  // namespace

bool stages_divide(std::int64_t layers, std::int64_t pp, std::int64_t vpp, bool uneven) {
  const std::int64_t chunks = pp * vpp;
  return layers % chunks == 0 ||
         (uneven && layers >= pp && (ends_divide(layers, chunks) || vpp == 1));
}

std::optional<StageSplit> split_stages(std::int64_t layers,
                                       std::int64_t pp,
                                       std::int64_t vpp,
                                       bool uneven) {
  const std::int64_t chunks = pp * vpp;
  StageSplit split;
  if (layers % chunks == 0) {
    split.most = split.last = layers / pp;
    return split;
  }
  if (!stages_divide(layers, pp, vpp, uneven)) {
    return std::nullopt;
  }
  if (ends_divide(layers, chunks)) {
    split.ends_as_layers = true;
    const std::int64_t places = (layers + 2) / pp;
    split.last = pp > 1 ? places - 1 : layers;
    split.most = pp > 2 ? places : split.last;
    return split;
  }
  return middle_heavy(layers, pp);
}

}  // namespace foretrain
