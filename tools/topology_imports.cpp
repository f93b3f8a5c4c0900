#include "tools/topology_imports.h"

#include "tools/fabric_text.h"
#include "tools/node_text.h"
#include "tools/output.h"

#include "foretrain/imports.h"
#include "sim/base/data_directory.h"
#include "sim/base/wrapped.h"

#include <cstdio>
#include <filesystem>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

std::string stem_of(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

Json fabric_json(const FabricDiscovery& discovery, const ImportRequest& request) {
  const FabricSummary summary = summarise(discovery);
  const std::size_t switches = discovery.fabric.switches.size();
  Json result = {
      {"name", stem_of(request.name)},
      {"gpus", 0},
      {"nodes", discovery.fabric.hosts.size()},
      {"devices", static_cast<std::int64_t>(switches) + discovery.adapters + discovery.routers},
      {"links", discovery.links},
      {"bisection_bandwidth", summary.bisection.bytes_per_second},
      {"path", Json::array()},
      {"switches", switches},
      {"switches_by_level", summary.switches_by_level},
      {"adapters", discovery.adapters},
      {"aggregation_nodes", discovery.aggregation_nodes},
      {"unnamed_adapters", discovery.unnamed_adapters},
      {"hosts", discovery.fabric.hosts.size()},
      {"rails", summary.rails.size()},
      {"odd", summary.odd}};
  if (request.dot) {
    result["dot"] = fabric_dot(discovery, stem_of(request.name));
  }
  return result;
}

/// Options that only a cluster of GPUs answers.
std::vector<Diagnostic> cluster_options(const ImportRequest& request, const std::string& what) {
  std::vector<Diagnostic> faults;
  const std::string hint = "leave it out";
  if (request.gpus_given) {
    faults.push_back({"/gpus", what + " is what it is: --gpus builds clusters", hint});
  }
  if (request.path_given) {
    faults.push_back({"/path", what + " is no cluster: --path goes from rank to rank", hint});
  }
  return faults;
}

int tell_fabric(const FabricDiscovery& discovery, const ImportRequest& request) {
  if (std::vector<Diagnostic> faults = cluster_options(request, "a fabric"); !faults.empty()) {
    return report_faults(
        Faults{std::move(faults), FaultKind::kBadInput}, request.name, request.json_target);
  }
  if (!request.json_target.empty()) {
    return write_json(request.json_target, fabric_json(discovery, request));
  }
  const std::string name = stem_of(request.name);
  return write_output("-",
                      request.dot ? fabric_dot(discovery, name) : fabric_text(discovery, name));
}

Json node_json(const NodeDescription& node, const ImportRequest& request) {
  const NodeFigures figures = node_figures(node);
  Json nearest = Json::array();
  for (const NodeDescription::Gpu& gpu : node.gpus) {
    nearest.push_back(gpu.nic < 0 ? Json()
                                  : Json(node.nics[static_cast<std::size_t>(gpu.nic)].name));
  }
  Json result = {{"name", stem_of(request.name)},
                 {"gpus", node.gpus.size()},
                 {"nodes", 1},
                 {"devices", figures.devices},
                 {"links", figures.links},
                 {"bisection_bandwidth", figures.bisection.bytes_per_second},
                 {"path", Json::array()},
                 {"interconnect", to_string(node.interconnect)},
                 {"nvlinks_per_gpu", node.nvlinks_per_gpu()},
                 {"nvlink_bandwidth", figures.nvlink.bytes_per_second},
                 {"nics", node.nics.size()},
                 {"nics_in_use", node.nics_in_use()},
                 {"nic_of_gpu", std::move(nearest)}};
  if (request.dot) {
    result["dot"] = node_dot(node, stem_of(request.name));
  }
  return result;
}

int tell_node(const NodeDescription& node, const ImportRequest& request) {
  if (std::vector<Diagnostic> faults = cluster_options(request, "a node"); !faults.empty()) {
    return report_faults(
        Faults{std::move(faults), FaultKind::kBadInput}, request.name, request.json_target);
  }
  if (!request.json_target.empty()) {
    return write_json(request.json_target, node_json(node, request));
  }
  const std::string name = stem_of(request.name);
  return write_output("-", request.dot ? node_dot(node, name) : node_text(node, name));
}

/// On standard error where the topology itself is on standard output.
int tell_written(const WrittenTopology& topology, const std::string& target) {
  std::string text = target == "-" ? "" : target + ": written\n";
  for (const std::string& held : topology.holds) {
    text += wrapped("  holds    ", held, 11, page_width());
  }
  for (const std::string& assumed : topology.assumed) {
    text += wrapped("  assumed  ", assumed, 11, page_width());
  }
  if (target != "-") {
    return write_output("-", text);
  }
  std::fputs(text.c_str(), stderr);
  return kExitDone;
}

/// Writes a topology file beside which the import is named by its relative path.
int write_topology(const Import& import, const ImportRequest& request) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::absolute(request.write_target, error).parent_path();
  const fs::path path = fs::absolute(request.name, error).lexically_relative(folder);
  const Expected<WrittenTopology> topology = write_imported_topology(
      import, {stem_of(request.write_target), request.gpu, request.gpus_per_node, path.string()});
  if (!topology) {
    return report_faults(topology.error(), request.name, request.json_target);
  }
  if (const int status = write_output(request.write_target, topology->text); status != kExitDone) {
    return status;
  }
  if (!request.json_target.empty()) {
    return write_json(request.json_target,
                      {{"written", request.write_target},
                       {"holds", topology->holds},
                       {"assumed", topology->assumed}});
  }
  return tell_written(*topology, request.write_target);
}

}  // namespace

std::optional<int> topology_of_import(const ImportRequest& request) {
  if (!looks_like_path(request.name)) {
    return std::nullopt;
  }
  const Expected<Import> import = read_import(request.name);
  if (!import) {
    return report_faults(import.error(), request.name, request.json_target);
  }
  if (!request.write_target.empty() && !std::holds_alternative<std::monostate>(*import)) {
    return write_topology(*import, request);
  }
  if (const auto* const fabric = std::get_if<FabricDiscovery>(&*import)) {
    return tell_fabric(*fabric, request);
  }
  if (const auto* const node = std::get_if<NodeDescription>(&*import)) {
    return tell_node(*node, request);
  }
  return std::nullopt;
}

}  // namespace foretrain
