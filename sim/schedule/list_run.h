#pragma once

#include "foretrain/schedule.h"

/// The lists executed action by action, under either kind of transfers.
namespace foretrain {

/// How far the lists came.
struct ListOutcome {
  std::vector<std::vector<Instant>> start, end;  ///< per rank, of the actions that were done
  std::vector<std::string> waits_for;  ///< per rank: what its next action waits for; else empty
  bool complete(const Schedule& schedule) const;
};

ListOutcome run_lists(const Schedule& schedule, const ScheduleCosts& costs);

Duration action_duration(const Action& action, const ScheduleCosts& costs);
/// Of an overlapped unit in one piece.
Duration unit_duration(const Action& forward, const Action& partner, const ScheduleCosts& costs);

}  // namespace foretrain
