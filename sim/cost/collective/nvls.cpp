#include "sim/cost/collective/algorithms.h"

#include <algorithm>
#include <utility>

namespace foretrain {
namespace {

/// GPUs of one NVLink domain that reduce: NCCL_MAX_NVLS_ARITY (NCCL, device.h).
constexpr std::int64_t kMostHeads = 32;

/// A loop of the buffer is a chunk per head and channel, of 128 KiB in large buffers and of less in
/// smaller ones (NCCL, enqueue.cc).
std::int64_t loop_bytes(std::int64_t bytes, std::int64_t heads, std::int64_t channels) {
  constexpr std::int64_t kKibi = 1024;
  const std::int64_t side_by_side = heads * channels;
  std::int64_t chunk = 128 * kKibi;
  for (const auto& [loops, smaller] :
       {std::pair<std::int64_t, std::int64_t>{64, 64 * kKibi}, {8, 32 * kKibi}, {2, 16 * kKibi}}) {
    if (bytes < loops * side_by_side * chunk) {
      chunk = smaller;
    }
  }
  return std::min(bytes, side_by_side * chunk);
}

/// Each GPU lets the switch read all of its buffer, S, and writes back the sum of its share, S/n:
/// H200 reaches .69 of that on 5 to 8 GPUs alike, B200 .60 on 6 to 8 (stas00/ml-engineering).
Duration through_switch(Bytes bytes, const GroupWire& wire) {
  const std::int64_t heads = std::min(wire.k, kMostHeads);
  return share_time(bytes, heads + 1, heads, wire.in_switch);
}

}  // namespace

/// Copying the first loop into the switch's buffers and the last one out of them hides nothing. The
/// start-up measured on 8 GPUs holds that; longer loops take longer.
CollectiveCost nvls_cost(CollectiveKind /*kind*/, Bytes bytes, const GroupWire& wire) {
  CollectiveCost cost;
  const std::int64_t heads = std::min(wire.k, kMostHeads);
  const Bytes loop{loop_bytes(bytes.value, heads, wire.nvls_channels)};
  const Duration filled = wire.quick_start + 2 * share_time(loop, 1, 1, wire.in_switch);
  cost.inside = through_switch(bytes, wire);
  cost.latency = 2 * wire.inside_hop + std::max(filled - wire.start, Duration{});
  cost.sent_bytes = share_bytes(bytes, heads + 1, heads);
  return cost;
}

CollectiveCost nvls_tree_cost(CollectiveKind /*kind*/, Bytes bytes, const GroupWire& wire) {
  CollectiveCost cost;
  const std::int64_t heads = std::min(wire.k, kMostHeads);
  cost.inside = through_switch(bytes, wire);
  cost.across = tree_exit_time(bytes, wire);
  cost.latency = 2 * (wire.inside_hop + tree_depth(wire.nodes) * wire.across_hop);
  cost.sent_bytes = share_bytes(bytes, heads + 1, heads);
  overlap_phases(cost, wire.phase_overlap);
  return cost;
}

}  // namespace foretrain
