#pragma once

#include "foretrain/scenario.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace foretrain::test {

/// The override that leaves a scenario its degrees and its schedule but at most two micro-batches
/// per pipeline stage, one in a pipeline of more than 16: warm-up, steady state and drain in as few
/// tasks as show all three.
inline std::string short_batch(const Scenario& scenario) {
  const Parallelism& degrees = scenario.parallelism;
  const std::int64_t all = scenario.training.global_batch_size;
  const std::int64_t per_step = scenario.training.micro_batch_size * degrees.dp;
  const std::int64_t per_stage = degrees.pp > 16 ? 1 : 2;
  return "training.global_batch_size=" +
         std::to_string(std::min(all, per_step * per_stage * degrees.pp));
}

}  // namespace foretrain::test
