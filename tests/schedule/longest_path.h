#pragma once

#include "foretrain/schedule.h"

#include <cstdint>
#include <vector>

/// A second evaluator that shares no code with the library's: the longest path through the graph of
/// all units, in topological order (Kahn), with every rule written out again from its definition.
/// Where an action lies is read off the list it stands in.
namespace foretrain::reference {

struct Times {
  bool acyclic = false;
  std::int64_t makespan = 0;
  std::vector<std::vector<std::int64_t>> start, end;  ///< per rank, per action
};

Times longest_path(const Schedule& schedule, const ScheduleCosts& costs);

}  // namespace foretrain::reference
