#pragma once

#include "foretrain/program.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"
#include "sim/cost/operator_cost.h"

namespace foretrain {

/// In network mode "flow" gives the program's groups and sends their links (MODEL 4.6). Templates,
/// instances and groups are there already. A capacity is the line rate times the efficiency that
/// closed forms count with; a path's limit is the rate that its transfers have in closed form, at
/// most what its fullest link carries, so that a transfer alone takes its closed form's time.
void add_shared_paths(const Scenario& scenario,
                      const Topology& topology,
                      const LinkModel& model,
                      Program& program);

}  // namespace foretrain
