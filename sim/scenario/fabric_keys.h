#pragma once

#include "foretrain/topology_spec.h"
#include "sim/scenario/json_cursor.h"

#include <string>
#include <string_view>

/// Keys of a fabric that a topology file states and a scenario's cluster.fabric overrides.
namespace foretrain {

/// Of nodes, NICs and links of a fabric.
constexpr IntegerRange kCount = {1, 1'000'000'000};
constexpr IntegerRange kCountOrNone = {0, 1'000'000'000};

constexpr std::string_view kFabricNames[] = {
    "rail-optimized", "rail-only", "fat-tree", "clos", "discovered", "none"};  ///< FabricKind
constexpr std::string_view kOffRailNames[] = {"spine", "nvlink"};              ///< OffRail

/// off_rail, failed_links, failed_nodes; and fabric where it is there.
void read_fabric_words(JsonCursor& file, TopologySpec& spec);

/// How the fault of a key that changes nothing begins.
constexpr std::string_view kNoEffect = "has no effect: ";

/// Why a key of a fabric changes nothing on this cluster, whatever its value; empty: it does.
std::string why_idle(std::string_view key, const TopologySpec& spec);

/// Each member that changes nothing is a fault; `allowed`: but this one.
void refuse_idle_keys(JsonCursor& section, const TopologySpec& spec, std::string_view allowed = "");

/// An object of bare values, any of those that shape a fabric.
void read_fabric_overrides(JsonCursor& section, TopologySpec& spec);

}  // namespace foretrain
