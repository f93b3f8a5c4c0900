#pragma once

#include "foretrain/discover.h"
#include "foretrain/node_description.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

/// Files about a real cluster, told apart by what is in them.
namespace foretrain {

/// std::monostate: a file of another kind, such as JSON.
using Import = std::variant<std::monostate, FabricDiscovery, NodeDescription>;

/// Reads a path's file if it is one of the forms that discover.h and node_description.h read, with
/// or without the byte order mark of UTF-8. Faults name its lines; what is no JSON either is one.
Expected<Import> read_import(const std::string& path);

/// What a topology file is made of that the import does not tell.
struct ImportedTopology {
  std::string name;                ///< of the topology
  std::string gpu;                 ///< a file of topologies/gpu; may be empty where one fits
  std::int64_t gpus_per_node = 0;  ///< 0: the node's, or the preset's
  std::string path;                ///< of the import, as the file should name it
};

struct WrittenTopology {
  std::string text;
  /// What it holds, in words; what the import does not tell, or tells in a way that a topology
  /// cannot, and what is written instead. A sentence each.
  std::vector<std::string> holds, assumed;
};

/// A topology file: a node's values, or a fabric by the path of its text, and every other constant
/// from a preset with the same GPU (DGX and HGX before others), each with its source.
Expected<WrittenTopology> write_imported_topology(const Import& import,
                                                  const ImportedTopology& how);

}  // namespace foretrain
