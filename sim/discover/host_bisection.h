#pragma once

#include "foretrain/discovered_fabric.h"

namespace foretrain {

/// Max-flow from the hosts of the first half (rounded down) to the others, one direction.
Bandwidth host_bisection(const DiscoveredFabric& fabric);

}  // namespace foretrain
