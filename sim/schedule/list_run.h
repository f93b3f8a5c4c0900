#pragma once

#include "foretrain/schedule.h"

/// The lists executed action by action, under either kind of transfers.
namespace foretrain {

/// What keeps a rank from going on.
struct Blocked {
  std::int32_t on = -1;          ///< the rank that would have to go on first; -1: not blocked
  std::string what;              ///< `waits for 1B0 of rank 1`, `sends 0F1 to rank 1`
  std::string and_further = {};  ///< other transfers that are open at the same time
};

/// How far the lists came.
struct ListOutcome {
  std::vector<std::vector<Instant>> start, end;  ///< per rank, of the actions that were done
  std::vector<Blocked> blocked;                  ///< per rank
  bool complete(const Schedule& schedule) const;
};

/// Transfers as the costs say: eager, or rendezvous.
ListOutcome run_lists(const Schedule& schedule, const ScheduleCosts& costs);
ListOutcome run_rendezvous(const Schedule& schedule, const ScheduleCosts& costs);

/// The cost of a kind of action: `chunk.*cost_of(kind)`.
Duration ChunkCosts::*cost_of(ActionKind kind);
Duration action_duration(const Action& action, const ScheduleCosts& costs);
/// Of an overlapped unit in one piece.
Duration unit_duration(const Action& forward, const Action& partner, const ScheduleCosts& costs);

/// Actions that run in one piece from a place of a list on: an overlapped unit is one piece unless
/// the costs say otherwise.
inline std::size_t piece_length(const Action& first, const ScheduleCosts& costs) {
  return costs.sequential ? 1 : unit_length(first);
}

}  // namespace foretrain
