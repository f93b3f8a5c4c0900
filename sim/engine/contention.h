#pragma once

#include "foretrain/program.h"

#include <array>
#include <vector>

namespace foretrain {

/// Which links can hold somebody up. A link that all transfers that may run at once cannot fill is
/// left out of their paths; a transfer that then has none takes the time it takes alone.
class Contention {
 public:
  explicit Contention(const Program& program);

  const std::vector<LinkUse>& of_group(std::int32_t kind, std::int32_t group) const {
    return groups_.empty() || groups_[kind].empty() ? nothing_ : groups_[kind][group];
  }
  const std::vector<LinkUse>& of_send(std::int32_t instance, std::int32_t slot) const {
    return sends_.empty() ? nothing_ : sends_[instance][slot];
  }
  /// Bytes per second, by link.
  const std::vector<double>& capacities() const { return capacities_; }

 private:
  std::vector<LinkUse> nothing_;
  std::vector<double> capacities_;
  std::vector<std::vector<std::vector<LinkUse>>> groups_;            ///< [kind][group]
  std::vector<std::array<std::vector<LinkUse>, kPeerSlots>> sends_;  ///< [instance][slot]
};

}  // namespace foretrain
