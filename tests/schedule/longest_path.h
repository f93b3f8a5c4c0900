#pragma once

#include "foretrain/schedule.h"

#include <cstdint>
#include <map>
#include <vector>

/// A second evaluator that shares no code with the library's: the longest path through the graph of
/// all actions, in topological order (Kahn), with every rule written out again from its definition.
namespace foretrain::reference {

struct Times {
  bool acyclic = false;
  std::int64_t makespan = 0;
  std::vector<std::vector<std::int64_t>> end;  ///< per rank, per action
};

Times longest_path(const Schedule& schedule,
                   std::int64_t forward,
                   std::int64_t backward,
                   std::int64_t p2p);

}  // namespace foretrain::reference
