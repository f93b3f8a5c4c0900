#pragma once

#include "foretrain/topology_spec.h"

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace foretrain {

/// What a command line says has failed, beside what the topology's file states.
struct FailedParts {
  std::vector<std::string> links;
  std::vector<std::int64_t> nodes;
};

/// Adds --failed-links and --failed-nodes.
void add_failed_options(CLI::App& app, FailedParts& failed);

void add_failed(const FailedParts& failed, TopologySpec& spec);

}  // namespace foretrain
