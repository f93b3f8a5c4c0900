#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/schedule.h"

#include <optional>
#include <string>
#include <vector>

namespace foretrain {

/// Costs per chunk as typed: each a bare number or a time with a unit; unset where not given.
struct CostOptions {
  std::optional<std::string> forward, backward, dgrad, wgrad, overlapped, p2p;
};

/// The same as whole ticks, so that no digit of the input is lost.
struct TypedCosts {
  ScheduleCosts ticks;
  Duration second_or_one{1};        ///< ticks in one second, or in 1 when the costs have no unit
  Duration unit{1};                 ///< ticks in one printed unit
  std::string suffix;               ///< " us", or "" when the costs have no unit
  std::vector<std::string> unused;  ///< options given for actions a whole-backward schedule lacks

  bool has_unit() const { return !suffix.empty(); }
  std::string printed(Duration duration) const { return exact_decimal(duration, unit) + suffix; }
};

/// Faults: pointers /forward, /backward and so on.
Expected<TypedCosts> read_costs(const CostOptions& options);

}  // namespace foretrain
