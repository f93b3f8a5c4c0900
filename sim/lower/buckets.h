#pragma once

#include "foretrain/model.h"
#include "foretrain/scenario.h"

#include <cstdint>
#include <vector>

/// Gradient buckets: how a chunk's parameters are cut for reduction and gathering (MODEL 4.4).
namespace foretrain {

struct Bucket {
  std::int32_t stage = 0;       ///< virtual stage
  std::int32_t first_part = 0;  ///< parts of the slice in forward order, inclusive
  std::int32_t last_part = 0;
  std::int64_t parameters = 0;  ///< on one rank
  bool experts = false;         ///< routed experts, reduced over expert data parallelism
};

/// Buckets of one virtual stage in the order their gradients become final: from the last part back;
/// routed experts have buckets of their own. A bucket closes when it holds `bucket_bytes` of
/// gradients, or, when that is 0, Megatron's max(40 M, 1 M x dp) parameters.
/// `parts`: parameters of each part of the slice on one rank, in forward order.
std::vector<Bucket> gradient_buckets(const Scenario& scenario,
                                     const std::vector<RankParameters>& parts,
                                     std::int32_t stage);

}  // namespace foretrain
