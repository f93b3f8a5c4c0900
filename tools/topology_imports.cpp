#include "tools/topology_imports.h"

#include "tools/fabric_text.h"
#include "tools/output.h"

#include "foretrain/imports.h"
#include "sim/base/data_directory.h"

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
    faults.push_back({"/path", what + " has no ranks: --path goes from GPU to GPU", hint});
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

}  // namespace

std::optional<int> topology_of_import(const ImportRequest& request) {
  if (!looks_like_path(request.name)) {
    return std::nullopt;
  }
  const Expected<Import> import = read_import(request.name);
  if (!import) {
    return report_faults(import.error(), request.name, request.json_target);
  }
  if (const auto* const fabric = std::get_if<FabricDiscovery>(&*import)) {
    return tell_fabric(*fabric, request);
  }
  return std::nullopt;
}

}  // namespace foretrain
