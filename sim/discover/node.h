#pragma once

#include "foretrain/node_description.h"

#include <vector>

namespace foretrain {

/// Fills in what follows from the devices: the interconnect, NVLinks of each GPU, its NIC.
/// `paths` is by GPU and NIC. `switched`: the source says that NVLinks lead to switches.
void finish_node(NodeDescription& node,
                 const std::vector<std::vector<PciePath>>& paths,
                 bool switched);

}  // namespace foretrain
