#pragma once

#include "foretrain/diagnostic.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace foretrain {

/// More stages than this no pipeline has; keeps lists small whatever a file says.
inline constexpr std::int64_t kMostStages = 65536;

/// One virtual stage of Megatron-LM's --pipeline-model-parallel-layout.
struct LayoutStage {
  std::int64_t layers = 0;  ///< t
  std::int64_t mtp = 0;     ///< m, multi-token-prediction modules
  bool embedding = false;   ///< E
  bool loss = false;        ///< L
};

/// Reads a layout: tokens E t m L, stages parted by '|', commas for the eye, repetition of a token
/// or of a bracket by *n. "Et*3|(tt|)*29,m|L" is 32 stages. Faults have pointer
/// /parallelism/layout.
Expected<std::vector<LayoutStage>> parse_layout(std::string_view text);

}  // namespace foretrain
