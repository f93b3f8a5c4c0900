#pragma once

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
};

/// Tells what is in a file of ibnetdiscover and the like. The exit code; nothing if it is not one.
std::optional<int> topology_of_import(const ImportRequest& request);

}  // namespace foretrain
