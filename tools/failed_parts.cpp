#include "tools/failed_parts.h"

#include "tools/rank_list.h"

#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

namespace foretrain {
namespace {

/// No cluster has a node of this number: such a range is not written out.
constexpr std::int64_t kBeyondAnyNode = std::int64_t{1} << 18;

/// Nodes with the place of each in the line's list.
struct FailedNodes {
  std::vector<std::int64_t> numbers;
  std::vector<std::size_t> places;
};

FailedNodes nodes_of(const std::vector<std::string>& words, std::vector<Diagnostic>& faults) {
  FailedNodes nodes;
  for (std::size_t place = 0; place < words.size(); ++place) {
    const std::optional<std::pair<std::int64_t, std::int64_t>> range = number_range(words[place]);
    if (!range) {
      faults.push_back({"/failed-nodes/" + std::to_string(place),
                        "\"" + words[place] + "\" is no node or range of nodes",
                        "write for example 0,8-15"});
      continue;
    }
    const auto [first, last] = *range;
    for (std::int64_t node = last < kBeyondAnyNode ? first : last; node <= last; ++node) {
      nodes.numbers.push_back(node);
      nodes.places.push_back(place);
    }
  }
  return nodes;
}

/// Where in the line's list a fault lies whose pointer counts the file's own before; nothing: in
/// the file, or of another kind.
std::optional<std::size_t> place_in(const std::string& pointer,
                                    std::string_view key,
                                    std::size_t stated) {
  if (!pointer.starts_with(key)) {
    return std::nullopt;
  }
  const std::size_t at = std::stoul(pointer.substr(key.size()));
  return at < stated ? std::nullopt : std::optional(at - stated);
}

}  // namespace

void add_failed_options(CLI::App& app, FailedParts& failed) {
  app.add_option("--failed-links", failed.links, "links by id; both directions go")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
  app.add_option("--failed-nodes", failed.nodes, "nodes on which no rank sits, e.g. 0,8-15")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("LIST");
}

BuiltCluster build_cluster(const TopologySpec& spec,
                           const FailedParts& failed,
                           std::int64_t gpus,
                           Routing routing) {
  BuiltCluster built;
  TopologySpec left = spec;
  left.failed_links.insert(left.failed_links.end(), failed.links.begin(), failed.links.end());
  const FailedNodes nodes = nodes_of(failed.nodes, built.faults);
  left.failed_nodes.insert(left.failed_nodes.end(), nodes.numbers.begin(), nodes.numbers.end());
  Expected<Topology> topology = Topology::build(left, gpus, routing);
  if (!topology) {
    for (Diagnostic& fault : topology.error().list) {
      if (const auto link = place_in(fault.pointer, "/failed_links/", spec.failed_links.size())) {
        fault.pointer = "/failed-links/" + std::to_string(*link);
      }
      if (const auto node = place_in(fault.pointer, "/failed_nodes/", spec.failed_nodes.size())) {
        fault.pointer = "/failed-nodes/" + std::to_string(nodes.places[*node]);
      }
      built.faults.push_back(std::move(fault));
    }
    topology = Topology::build(spec, gpus, routing);
  }
  if (topology) {
    built.topology = *std::move(topology);
  }
  return built;
}

void adopt_topology_faults(const Faults& topology, Faults& faults) {
  for (const Diagnostic& fault : topology.list) {
    faults.list.push_back({"/topology",
                           (fault.pointer.empty() ? "" : fault.pointer + ": ") + fault.message,
                           fault.hint});
  }
  if (topology.kind == FaultKind::kFile) {
    faults.kind = topology.kind;
  }
}

}  // namespace foretrain
