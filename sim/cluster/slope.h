#pragma once

#include "sim/cluster/wiring.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace foretrain {

/// The way down to one or several switches from all others: what is left from each, and the cables
/// that lead on along shortest paths.
class Slope {
 public:
  Slope(const Router::Wiring& wiring, const std::vector<std::size_t>& targets);

  /// Picoseconds to the nearest target, `kUnreached` when there is no way.
  std::int64_t left(std::size_t from) const { return left_[from]; }

  /// What flows down a slope: flows at each switch, and on each link.
  struct Flow {
    std::vector<double> at_switch, on_link;
    std::vector<double> variance_at_switch, variance_on_link;  ///< of random choices
  };

  /// Lets all that stands at switches flow down to the targets, each switch choosing one cable.
  void run(Flow& flow, std::size_t choice) const;

  /// The same with every flow choosing at random: the mean, and how far the number may stray.
  void run_split(Flow& flow) const;

 private:
  struct Step {
    std::int32_t link = 0;
    std::uint32_t next = 0;
  };
  std::vector<std::int64_t> left_;
  std::vector<std::uint32_t> order_;  ///< of switches that have a way, farthest first
  std::vector<std::uint32_t> first_;  ///< by place in `order_`: its steps; last: how many in all
  std::vector<Step> steps_;
};

}  // namespace foretrain
