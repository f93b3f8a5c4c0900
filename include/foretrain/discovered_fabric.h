#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/units.h"

#include <cstdint>
#include <string>
#include <vector>

/// A fabric as its subnet manager lists it: switches, cables, and where hosts' adapters hang.
namespace foretrain {

struct DiscoveredFabric {
  /// A cable between two switches, both directions.
  struct Cable {
    std::int32_t a = 0, b = 0;  ///< indices into `switches`
    Bandwidth rate;             ///< one direction
  };
  struct Adapter {
    std::string name;       ///< "mlx5_5"
    std::int32_t at = 0;    ///< index into `switches`
    std::int32_t port = 0;  ///< of the switch
    Bandwidth rate;         ///< one direction
    bool operator==(const Adapter&) const = default;
  };
  struct Host {
    std::string name;               ///< "node001"
    std::vector<Adapter> adapters;  ///< by name, numbers compared as numbers
  };
  std::vector<std::string> switches;  ///< names, in the file's order
  std::vector<Cable> cables;
  std::vector<Host> hosts;          ///< by name, numbers compared as numbers
  std::vector<Host> others;         ///< of a cluster: hosts that are none of its nodes
  std::int64_t other_adapters = 0;  ///< aggregation nodes and the like: not hosts
};

}  // namespace foretrain
