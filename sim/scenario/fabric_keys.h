#pragma once

#include "foretrain/topology_spec.h"
#include "sim/scenario/json_cursor.h"

#include <string_view>

/// Keys of a fabric that a topology file states and a scenario's cluster.fabric overrides.
namespace foretrain {

constexpr std::string_view kFabricNames[] = {
    "rail-optimized", "rail-only", "fat-tree", "clos", "discovered", "none"};  ///< FabricKind
constexpr std::string_view kOffRailNames[] = {"spine", "nvlink"};              ///< OffRail

/// off_rail, failed_links, failed_nodes; and fabric where it is there.
void read_fabric_words(JsonCursor& file, TopologySpec& spec);

/// An object of bare values, any of those that shape a fabric.
void read_fabric_overrides(JsonCursor& section, TopologySpec& spec);

}  // namespace foretrain
