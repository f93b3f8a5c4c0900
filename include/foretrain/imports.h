#pragma once

#include "foretrain/discover.h"
#include "foretrain/node_description.h"

#include <string>
#include <variant>

/// Files about a real cluster, told apart by what is in them.
namespace foretrain {

/// std::monostate: a file of another kind, such as JSON.
using Import = std::variant<std::monostate, FabricDiscovery, NodeDescription>;

/// Reads a path's file if it is one of the forms that discover.h and
/// node_description.h read. Faults name its lines.
Expected<Import> read_import(const std::string& path);

}  // namespace foretrain
