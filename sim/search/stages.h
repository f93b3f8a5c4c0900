#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace foretrain {

/// Transformer layers of each pipeline rank, and how a scenario says so.
struct StageSplit {
  bool ends_as_layers = false;          ///< embedding and loss count as layers
  std::vector<std::int64_t> per_stage;  ///< stated only where neither rule gives them
  std::int64_t most = 0, last = 0;      ///< layers of the fullest rank and of the last
};

/// Even where the layers divide by pp x vpp. Otherwise, if `uneven`: embedding and loss as layers
/// where that divides; else (vpp 1) one layer more on stages in the middle. Nothing if neither.
std::optional<StageSplit> split_stages(std::int64_t layers,
                                       std::int64_t pp,
                                       std::int64_t vpp,
                                       bool uneven);

/// Whether split_stages has an answer.
bool stages_divide(std::int64_t layers, std::int64_t pp, std::int64_t vpp, bool uneven);

}  // namespace foretrain
