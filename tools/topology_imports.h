#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace foretrain {

/// What `topology` was asked about a file that is no topology of ours.
struct ImportRequest {
  std::string name;  ///< as typed: a preset's name is none of these files
  bool gpus_given = false;
  bool path_given = false;
  bool dot = false;
  std::string json_target;
  std::string write_target;  ///< of --write, with the two below
  std::string gpu;
  std::int64_t gpus_per_node = 0;
};

/// Tells what is in a file of ibnetdiscover and the like. The exit code; nothing if it is not one.
std::optional<int> topology_of_import(const ImportRequest& request);

}  // namespace foretrain
