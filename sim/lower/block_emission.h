#pragma once

#include "sim/lower/stage_blocks.h"

#include <cstdint>
#include <vector>

namespace foretrain {

/// A block under construction.
struct StageBlocks::Emission {
  Phase phase = Phase::kForward;
  const LinkClass* links = nullptr;
  Block block;
  StageBlock hooks;
  BlockFlops flops;
  std::vector<std::int32_t> open;  ///< collectives of the part before that nothing waited for
  std::int32_t last_compute = -1;
  /// What the operators of the part were made into, in order, and what the first of each waits for.
  struct Made {
    std::vector<std::int32_t> tasks, waits;
  };
  std::vector<Made> made;
  bool is_made(std::int32_t op) const {
    return op >= 0 && static_cast<std::size_t>(op) < made.size();
  }
  const Made& made_of(std::int32_t op) const { return made[static_cast<std::size_t>(op)]; }
  // zero3: units in the order they run, the gathers each waits for, and the one running.
  std::vector<RankParameters> units;
  std::vector<std::vector<std::int32_t>> gathers;
  std::size_t unit = 0;

  std::int32_t next() const { return static_cast<std::int32_t>(block.tasks.size()); }
};

}  // namespace foretrain
