#include "tools/commands.h"
#include "tools/failed_parts.h"
#include "tools/output.h"
#include "tools/topology_imports.h"

#include "foretrain/scenario.h"
#include "foretrain/topology.h"
#include "sim/base/format.h"
#include "sim/base/wrapped.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

struct Request {
  std::string name;
  std::int64_t gpus = 0;  ///< 0: not given
  std::vector<std::int64_t> path;
  bool dot = false;
  std::string json_target;
  std::string write_target;
  std::string gpu;
  std::int64_t gpus_per_node = 0;
  FailedParts failed;
};

std::string rate_text(Bandwidth rate) {
  return human_rate(static_cast<double>(rate.bytes_per_second));
}

/// The given count, or the whole nodes that hold the highest rank named, or two nodes.
std::int64_t default_gpus(const Request& request, const TopologySpec& spec) {
  if (request.gpus != 0) {
    return request.gpus;
  }
  const std::int64_t per_node = std::max(spec.gpus_per_node, 1);
  if (request.path.empty()) {
    const std::int64_t two = spec.fabric == FabricKind::kNone ? per_node : 2 * per_node;
    return spec.max_gpus > 0 ? std::min<std::int64_t>(two, spec.max_gpus) : two;
  }
  const std::int64_t highest = *std::max_element(request.path.begin(), request.path.end());
  return (std::max<std::int64_t>(highest, 0) / per_node + 1) * per_node;
}

/// Ranks of the path that are not there; a path that the failed links leave nothing of.
std::vector<Diagnostic> path_faults(const Request& request,
                                    std::int64_t gpus,
                                    const std::optional<Topology>& topology) {
  std::vector<Diagnostic> faults;
  for (const std::int64_t rank : request.path) {
    if (rank < 0 || rank >= gpus) {
      faults.push_back(
          {"/path",
           "rank " + std::to_string(rank) + " is not one of the " + std::to_string(gpus) + " " +
               plural("GPU", gpus),
           gpus == 1 ? "its only rank is 0" : "ranks are 0 to " + std::to_string(gpus - 1)});
    }
  }
  if (faults.empty() && topology && !request.path.empty() &&
      !topology->reachable(request.path[0], request.path[1])) {
    faults.push_back({"/path",
                      "no route is left from gpu" + std::to_string(request.path[0]) + " to gpu" +
                          std::to_string(request.path[1]),
                      topology->why_unreachable()});
  }
  return faults;
}

const std::string& device_name(const Topology& topology, std::int32_t device) {
  return topology.devices()[static_cast<std::size_t>(device)].name;
}

std::vector<Link> path_links(const Topology& topology, const Request& request) {
  std::vector<Link> links;
  if (!request.path.empty()) {
    for (const std::int32_t link : topology.route(request.path[0], request.path[1])) {
      links.push_back(topology.links()[static_cast<std::size_t>(link)]);
    }
  }
  return links;
}

Json topology_json(const Topology& topology, const Request& request) {
  Json path = Json::array();
  for (const Link& link : path_links(topology, request)) {
    path.push_back({{"from", device_name(topology, link.from)},
                    {"to", device_name(topology, link.to)},
                    {"link", link.id},
                    {"bandwidth", link.capacity.bytes_per_second},
                    {"latency_s", seconds(link.latency)}});
  }
  Json result = {{"name", topology.spec().name},
                 {"gpus", topology.gpus()},
                 {"nodes", topology.nodes()},
                 {"devices", topology.devices().size()},
                 {"links", topology.links().size()},
                 {"bisection_bandwidth", topology.bisection_bandwidth().bytes_per_second},
                 {"path", std::move(path)}};
  if (const std::shared_ptr<const DiscoveredFabric>& fabric = topology.spec().discovered) {
    result["hosts"] = Json::array();
    for (const std::int64_t node : topology.node_numbers()) {
      result["hosts"].push_back({{"node", "n" + std::to_string(node)},
                                 {"host", fabric->hosts[static_cast<std::size_t>(node)].name}});
    }
    result["hosts_left_out"] = Json::array();
    for (const DiscoveredFabric::Host& host : fabric->others) {
      result["hosts_left_out"].push_back(host.name);
    }
  }
  if (request.dot) {
    result["dot"] = topology.dot();
  }
  return result;
}

/// "16 gpu, 2 nvswitch, 16 nic, 8 leaf"
std::string device_counts(const Topology& topology) {
  std::vector<std::pair<DeviceKind, std::int64_t>> counts;
  for (const Device& device : topology.devices()) {
    const auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& entry) {
      return entry.first == device.kind;
    });
    if (found == counts.end()) {
      counts.emplace_back(device.kind, 1);
    } else {
      ++found->second;
    }
  }
  std::string text;
  for (const auto& [kind, count] : counts) {
    text += (text.empty() ? "" : ", ") + with_commas(count) + " " + std::string(to_string(kind));
  }
  return text;
}

/// Each kind of link once: how many, how fast.
std::string link_kinds(const Topology& topology) {
  std::map<std::pair<LinkKind, std::int64_t>, std::pair<std::int64_t, const Link*>> kinds;
  for (const Link& link : topology.links()) {
    auto& [count, example] = kinds[{link.kind, link.capacity.bytes_per_second}];
    ++count;
    example = example == nullptr ? &link : example;
  }
  std::string text;
  for (const auto& [key, entry] : kinds) {
    text += "    " + pad(std::string(to_string(key.first)), 8) +
            pad(with_commas(entry.first), 9, true) + "  " +
            pad(rate_text(entry.second->capacity), 12) +
            pad(human_time(entry.second->latency), 10) + "e.g. " + entry.second->id + "\n";
  }
  return text;
}

std::string path_text(const Topology& topology, const Request& request) {
  if (request.path.empty()) {
    return "";
  }
  std::string text = "  path gpu" + std::to_string(request.path[0]) + " to gpu" +
                     std::to_string(request.path[1]) + "\n";
  const std::vector<Link> links = path_links(topology, request);
  int width = 28;  // names of discovered switches may be longer
  for (const Link& link : links) {
    width = std::max(width, display_width(link.id) + 2);
  }
  Duration total{};
  Bandwidth narrowest = links.empty() ? Bandwidth{} : links.front().capacity;
  for (const Link& link : links) {
    text += "    " + pad(link.id, width) + pad(rate_text(link.capacity), 12) +
            human_time(link.latency) + "\n";
    total += link.latency;
    narrowest = std::min(narrowest, link.capacity);
  }
  return text + (links.empty() ? "    the same GPU\n"
                               : "    " + pad("in all", width) + pad(rate_text(narrowest), 12) +
                                     human_time(total) + "\n");
}

/// Which host each node of a discovered fabric is, and which are none.
std::string hosts_text(const Topology& topology) {
  constexpr std::size_t kShown = 64;
  const std::shared_ptr<const DiscoveredFabric>& fabric = topology.spec().discovered;
  if (fabric == nullptr) {
    return "";
  }
  const std::vector<std::int64_t> nodes = topology.node_numbers();
  std::string names;
  for (std::size_t at = 0; at < std::min(nodes.size(), kShown); ++at) {
    names += (at == 0 ? "n" : ", n") + std::to_string(nodes[at]) + "=" +
             fabric->hosts[static_cast<std::size_t>(nodes[at])].name;
  }
  std::string text = wrapped("  hosts  ",
                             names + (nodes.size() > kShown ? ", ... (--json lists all)" : ""),
                             9,
                             page_width());
  if (fabric->others.empty()) {
    return text;
  }
  names = "";
  for (std::size_t at = 0; at < std::min(fabric->others.size(), kShown); ++at) {
    names += (at == 0 ? "" : ", ") + fabric->others[at].name;
  }
  return text + wrapped("  left out, for fewer adapters than most  ",
                        names + (fabric->others.size() > kShown ? ", ..." : ""),
                        4,
                        page_width());
}

std::string topology_text(const Topology& topology, const Request& request) {
  const TopologySpec& spec = topology.spec();
  std::string text = spec.name + ": " + spec.display_name + "\n";
  text += "  " + with_commas(topology.gpus()) + " " + plural("GPU", topology.gpus()) + " (" +
          spec.gpu.display_name + ") in " + with_commas(topology.nodes()) + " " +
          plural("node", topology.nodes()) + "\n";
  text += "  devices " + with_commas(static_cast<std::int64_t>(topology.devices().size())) + ": " +
          device_counts(topology) + "\n";
  text += "  links " + with_commas(static_cast<std::int64_t>(topology.links().size())) +
          " (one direction each)\n" + link_kinds(topology);
  text +=
      "  bisection bandwidth " + rate_text(topology.bisection_bandwidth()) + " (one direction, " +
      (topology.nodes() > 1 ? "between the two halves of the nodes" : "inside the node") + ")\n";
  return text + hosts_text(topology) + path_text(topology, request);
}

void add_options(CLI::App& app, Request& request) {
  app.add_option("topology", request.name, "a preset's name or a path")
      ->required()
      ->type_name("NAME|FILE")
      ->check(not_empty());
  app.add_option("--gpus", request.gpus, "GPUs to build (default: two nodes, or those of --path)")
      ->check(whole_number(1));
  app.add_option("--path", request.path, "the route from rank A to rank B")
      ->expected(2)
      ->check(whole_number())
      ->type_name("A B");
  add_failed_options(app, request.failed);
  app.add_flag("--dot", request.dot, "print the graph as Graphviz text");
  CLI::Option* const write =
      app.add_option("--write",
                     request.write_target,
                     "write a topology file from what ibnetdiscover, nvidia-smi or NCCL printed")
          ->type_name("FILE")
          ->check(not_empty());
  app.add_option("--gpu", request.gpu, "with --write: the GPU, a file of topologies/gpu")
      ->needs(write);
  app.add_option("--gpus-per-node", request.gpus_per_node, "with --write: GPUs of a node")
      ->needs(write)
      ->check(whole_number(1, 65536));
  add_json_option(app, request.json_target);
}

}  // namespace

int cmd_topology(int argc, char** argv) {
  CLI::App app("Devices, links, routes and bisection bandwidth of a cluster.", "topology");
  Request request;
  add_options(app, request);
  if (const std::optional<int> over = parse_options(app, argc, argv)) {
    return *over;
  }
  if (const std::optional<int> over =
          refuse_overwriting("topology",
                             {{"json", request.json_target}, {"write", request.write_target}},
                             {request.name})) {
    return *over;
  }
  if (request.dot && !request.path.empty() && request.json_target.empty()) {
    const Diagnostic fault{
        "/path", "--dot prints the graph alone, without --path", "leave one out"};
    return report_faults(Faults{{fault}, FaultKind::kBadInput}, request.name, "");
  }
  if (const std::optional<int> over = topology_of_import({request.name,
                                                          request.gpus != 0,
                                                          !request.path.empty(),
                                                          request.dot,
                                                          request.json_target,
                                                          request.write_target,
                                                          request.gpu,
                                                          request.gpus_per_node})) {
    return *over;
  }
  if (!request.write_target.empty()) {
    const Diagnostic fault{"/write",
                           "a topology is no import",
                           "give the text of ibnetdiscover or nvidia-smi topo -m, or NCCL's file"};
    return report_faults(Faults{{fault}, FaultKind::kBadInput}, request.name, request.json_target);
  }
  Expected<TopologySpec> spec = read_topology(request.name);
  if (!spec) {
    return report_faults(spec.error(), request.name, request.json_target);
  }
  const std::int64_t gpus = default_gpus(request, *spec);
  BuiltCluster cluster = build_cluster(*spec, request.failed, gpus);
  for (Diagnostic& fault : path_faults(request, gpus, cluster.topology)) {
    cluster.faults.push_back(std::move(fault));
  }
  if (!cluster.faults.empty()) {
    return report_faults(
        Faults{std::move(cluster.faults), FaultKind::kBadInput}, request.name, request.json_target);
  }
  const std::optional<Topology>& topology = cluster.topology;
  if (!request.json_target.empty()) {
    return write_json(request.json_target, topology_json(*topology, request));
  }
  return write_output("-", request.dot ? topology->dot() : topology_text(*topology, request));
}

}  // namespace foretrain
