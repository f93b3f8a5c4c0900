#pragma once

#include "foretrain/imports.h"
#include "foretrain/topology_spec.h"
#include "sim/scenario/json_cursor.h"

#include <set>
#include <string>
#include <string_view>

namespace foretrain {

/// Compute capability of the GPUs that a file of topologies/gpu is named after: 90 for "h100-sxm";
/// 0: not known.
int capability_of(std::string_view gpu);

/// Keys of a topology file whose values another file told; they need not be stated.
using ToldKeys = std::set<std::string, std::less<>>;

/// "node_file" and "fabric_file" of a topology file, relative to `folder`, into the specification.
/// What they tell is overridden by what the file states.
ToldKeys read_imported_hardware(JsonCursor& file,
                                TopologySpec& spec,
                                const std::string& gpu,
                                const std::string& folder);

/// The values that a node tells, written into `spec`.
ToldKeys node_values(const NodeDescription& node, int capability, TopologySpec& spec);

/// The same of a fabric: NICs of most hosts, their usual rate. Hosts with fewer than most are no
/// nodes: managers and storage, or with an adapter down.
ToldKeys fabric_values(const FabricDiscovery& discovery, TopologySpec& spec);

}  // namespace foretrain
