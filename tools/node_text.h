#pragma once

#include "foretrain/node_description.h"

#include <string>

namespace foretrain {

/// What follows from a node's devices.
struct NodeFigures {
  std::int64_t devices = 0;  ///< GPUs, NICs and one switch for all NVLink switches
  std::int64_t links = 0;    ///< one direction each: GPU to switch or GPU, GPU to its NIC
  Bandwidth nvlink;          ///< of a GPU, one direction; 0: the file does not tell the GPU
  Bandwidth bisection;       ///< NVLink between the halves of the GPUs, one direction; 0: not told
};
NodeFigures node_figures(const NodeDescription& node);

/// A node as people read it, and as Graphviz text.
std::string node_text(const NodeDescription& node, const std::string& name);
std::string node_dot(const NodeDescription& node, const std::string& name);

}  // namespace foretrain
