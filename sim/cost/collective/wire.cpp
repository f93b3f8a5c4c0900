#include "sim/cost/collective/wire.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace foretrain {

Bandwidth derate(Bandwidth line, double efficiency) {
  const auto rate = std::llround(static_cast<double>(line.bytes_per_second) * efficiency);
  return {std::max<std::int64_t>(rate, 1)};
}

GroupWire wire_of(const GroupShape& group, const LinkModel& links, WireProtocol protocol) {
  const bool quick = protocol == WireProtocol::kLowLatency;
  const double inside = links.inside_efficiency * (quick ? links.low_latency_inside : 1.0);
  const double across = links.across_efficiency * (quick ? links.low_latency_across : 1.0);
  GroupWire wire{};
  wire.n = group.size;
  wire.nodes = group.nodes;
  wire.k = group.ranks_per_node;
  wire.even = group.even;
  wire.lanes = group.even ? group.ranks_per_node : std::max<std::int64_t>(group.fewest_per_node, 1);
  wire.inside = derate(group.inside, inside);
  wire.across = derate(group.across, across);
  const bool same = group.across_all_pairs.bytes_per_second <= 0;
  const double all_pairs =
      links.all_pairs_efficiency > 0 ? links.all_pairs_efficiency : links.across_efficiency;
  wire.across_all_pairs = derate(same ? group.across : group.across_all_pairs, all_pairs);
  wire.in_switch = derate(group.inside, links.nvls_efficiency);
  const Duration own_inside = links.topology_latency ? group.inside_latency : Duration{};
  const Duration own_across = links.topology_latency ? group.across_latency : Duration{};
  wire.inside_hop = quick ? links.low_latency_step : links.inside_hop + own_inside;
  wire.across_hop = (quick ? links.low_latency_hop : links.across_hop) + own_across;
  wire.start = quick ? links.low_latency_fixed : links.fixed;
  wire.quick_start = links.low_latency_inside > 0 ? links.low_latency_fixed : links.fixed;
  wire.phase_overlap = links.phase_overlap;
  wire.own_pass = links.own_pass;
  wire.forwarded_share = group.forwarded_share;
  wire.network_reduction = links.network_reduction;
  wire.nvls_channels = links.nvls_channels;
  return wire;
}

/// Two parts, their hops and start-up stay countable.
constexpr std::int64_t kLongestPart = std::numeric_limits<std::int64_t>::max() / 4;

Duration share_time(Bytes bytes, std::int64_t part, std::int64_t whole, Bandwidth rate) {
  const Int128 scaled = Int128{bytes.value} * part * 1'000'000'000'000;
  const Int128 divisor = Int128{whole} * rate.bytes_per_second;
  const Int128 rounded_up = (scaled + divisor - 1) / divisor;
  return Duration{static_cast<std::int64_t>(std::min<Int128>(rounded_up, kLongestPart))};
}

std::int64_t share_bytes(Bytes bytes, std::int64_t part, std::int64_t whole) {
  return static_cast<std::int64_t>((Int128{bytes.value} * part + whole - 1) / whole);
}

std::int64_t rounds_of(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce ? 2 : 1;
}

void overlap_phases(CollectiveCost& cost, double overlap) {
  Duration& shorter = cost.inside <= cost.across ? cost.inside : cost.across;
  const double left = static_cast<double>(shorter.count()) * (1.0 - overlap);
  shorter = Duration{static_cast<std::int64_t>(std::ceil(left))};
}

std::int64_t tree_depth(std::int64_t nodes) {
  return std::bit_width(static_cast<std::uint64_t>(nodes - 1));
}

}  // namespace foretrain
