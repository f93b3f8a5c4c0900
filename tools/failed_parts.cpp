#include "tools/failed_parts.h"

#include <CLI/CLI.hpp>

namespace foretrain {

void add_failed_options(CLI::App& app, FailedParts& failed) {
  app.add_option("--failed-links", failed.links, "links by id; both directions go")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
  app.add_option("--failed-nodes", failed.nodes, "nodes on which no rank sits")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
}

void add_failed(const FailedParts& failed, TopologySpec& spec) {
  spec.failed_links.insert(spec.failed_links.end(), failed.links.begin(), failed.links.end());
  spec.failed_nodes.insert(spec.failed_nodes.end(), failed.nodes.begin(), failed.nodes.end());
}

}  // namespace foretrain
