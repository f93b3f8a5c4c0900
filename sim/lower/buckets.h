#pragma once

#include "foretrain/model.h"
#include "foretrain/scenario.h"
#include "foretrain/units.h"

#include <cstdint>
#include <vector>

/// Gradient buckets: how a chunk's parameters are cut for reduction and gathering (MODEL 4.5).
namespace foretrain {

struct Bucket {
  std::int32_t stage = 0;       ///< virtual stage
  std::int32_t first_part = 0;  ///< parts of the slice in forward order, inclusive
  std::int32_t last_part = 0;
  std::int64_t parameters = 0;  ///< on one rank
};

/// Parameters of each part of a slice (embedding, layers, head) on one rank.
std::vector<std::int64_t> part_parameters(const Scenario& scenario, const StageSlice& slice);

/// Buckets of one virtual stage in the order their gradients become final: from the last part back.
/// A bucket closes when it holds `bucket_bytes` of gradients, or, when that is 0, Megatron's max(40
/// M, 1 M x dp) parameters.
std::vector<Bucket> gradient_buckets(const Scenario& scenario,
                                     const StageSlice& slice,
                                     std::int32_t stage);

}  // namespace foretrain
