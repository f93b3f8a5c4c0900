#pragma once

#include "foretrain/discover.h"

#include <string>
#include <variant>

/// Files about a real cluster, told apart by what is in them.
namespace foretrain {

/// Neither: a file of another kind, such as JSON.
using Import = std::variant<std::monostate, FabricDiscovery>;

/// Reads a path's file if it is one of the forms of discover.h. Faults name its lines.
Expected<Import> read_import(const std::string& path);

}  // namespace foretrain
