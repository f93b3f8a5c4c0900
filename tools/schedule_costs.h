#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/schedule.h"

#include <optional>
#include <string>
#include <vector>

namespace foretrain {

/// Costs per chunk as typed: each a bare number or a time with a unit, or one of these for every
/// virtual stage, separated by commas; unset where not given.
struct CostOptions {
  std::optional<std::string> forward, backward, dgrad, wgrad, overlapped, p2p;
  std::optional<std::string> overlap_semantics, p2p_mode;
  bool unbatched = false;
};

/// What a schedule's lists hold that costs something.
struct CostUses {
  std::int32_t stages = 0;  ///< virtual stages; 0: not known
  bool whole_backwards = true;
  bool split_backwards = true;
  bool overlapped = true;
  bool transfers = true;
};
CostUses uses_of(const Schedule& schedule);

/// An option that changes nothing here, and why.
struct UnusedOption {
  std::string name;  ///< without dashes
  std::string why;
};

/// The same as whole ticks, so that no digit of the input is lost.
struct TypedCosts {
  ScheduleCosts ticks;
  CostUses uses;
  Duration second_or_one{1};  ///< ticks in one second, or in 1 when the costs have no unit
  Duration unit{1};           ///< ticks in one printed unit
  std::string suffix;         ///< " us", or "" when the costs have no unit
  std::vector<UnusedOption> unused;
  std::vector<std::string> assumed;  ///< costs that were derived rather than given

  bool has_unit() const { return !suffix.empty(); }
  std::string printed(Duration duration) const { return exact_decimal(duration, unit) + suffix; }
};

/// Faults: pointers /forward, /backward and so on.
Expected<TypedCosts> read_costs(const CostOptions& options, const CostUses& uses);

}  // namespace foretrain
