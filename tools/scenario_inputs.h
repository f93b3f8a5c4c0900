#pragma once

#include <string>
#include <vector>

namespace foretrain {

/// Files that reading a scenario may open: its own, and every one that a string of its text or an
/// override names (model, topology, lists, loads), relative to it or to the working directory.
std::vector<std::string> scenario_inputs(const std::string& scenario,
                                         const std::vector<std::string>& overrides);

}  // namespace foretrain
