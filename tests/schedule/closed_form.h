#pragma once

#include "foretrain/schedule.h"

#include <cstdint>
#include <vector>

/// What the tests of closed forms share: costs as plain numbers, and time and memory of a schedule.
namespace foretrain::closed_form {

/// Per chunk. A whole backward is the sum of its halves, an overlapped unit by default that of its
/// two parts.
struct SplitCosts {
  std::int64_t forward, input, weight;
  std::int64_t overlapped = -1;
  std::int64_t backward() const { return input + weight; }
  std::int64_t unit() const { return overlapped >= 0 ? overlapped : forward + backward(); }
};

Schedule built(const char* name, const ScheduleSize& size);
ScheduleCosts costs_of(std::int64_t forward, std::int64_t backward, std::int64_t p2p = 0);
ScheduleCosts costs_of(const SplitCosts& costs);

struct Figures {
  std::int64_t makespan = 0;
  std::vector<std::int64_t> busy, bubble, span_bubble;  ///< per rank
  std::int64_t most_span_bubble = 0;
};
Figures figures(const Schedule& schedule, const ScheduleCosts& costs);

/// Checks the same bubble on every rank, and that each is busy for m v (tF + tB), k times as long
/// where costs are per slice.
void expect_bubble(const Schedule& schedule, const ScheduleCosts& costs, std::int64_t bubble);

/// The peak in flight of every rank by a formula of the rank.
template <typename PeakOfRank>
std::vector<std::int32_t> each_peak(const ScheduleSize& size, PeakOfRank peak_of_rank) {
  std::vector<std::int32_t> peaks;
  for (std::int32_t rank = 0; rank < size.pp; ++rank) {
    peaks.push_back(peak_of_rank(rank));
  }
  return peaks;
}

}  // namespace foretrain::closed_form
