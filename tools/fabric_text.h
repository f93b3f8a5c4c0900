#pragma once

#include "foretrain/discover.h"

#include <string>

namespace foretrain {

/// A discovered fabric as people read it.
std::string fabric_text(const FabricDiscovery& discovery, const std::string& name);

}  // namespace foretrain
