#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/topology.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace foretrain {

/// What a command line says has failed, beside what the topology's file states; as typed.
struct FailedParts {
  std::vector<std::string> links;
  std::vector<std::string> nodes;  ///< "3" or "0-7" each
};

/// Adds --failed-links and --failed-nodes.
void add_failed_options(CLI::App& app, FailedParts& failed);

/// A cluster, or what is at fault of it. Where that is what has failed, the cluster is there all
/// the same, without the line's failed parts, so that the rest of the line can be judged too.
struct BuiltCluster {
  std::optional<Topology> topology;
  std::vector<Diagnostic> faults;
};
BuiltCluster build_cluster(const TopologySpec& spec,
                           const FailedParts& failed,
                           std::int64_t gpus,
                           Routing routing = Routing::kDestination);

/// Faults of the topology that an option names, told as that option's.
void adopt_topology_faults(const Faults& topology, Faults& faults);

}  // namespace foretrain
