#include "foretrain/imports.h"
#include "sim/base/data_directory.h"
#include "sim/base/edit_distance.h"
#include "sim/scenario/fabric_keys.h"
#include "sim/scenario/imported_hardware.h"
#include "sim/scenario/json_value.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

/// The GPU named, or the only one of the node's compute capability.
Expected<std::string> gpu_of(const Import& import, const std::string& named) {
  const std::vector<std::string> known = preset_names("topologies/gpu");
  if (!named.empty() && std::find(known.begin(), known.end(), named) != known.end()) {
    return named;
  }
  const auto* const node = std::get_if<NodeDescription>(&import);
  const int capability = node == nullptr || node->gpus.empty() ? 0 : node->gpus.front().sm;
  std::vector<std::string> fitting;
  std::string list;
  for (const std::string& name : known) {
    if (capability == 0 || capability_of(name) == capability) {
      fitting.push_back(name);
      list += (list.empty() ? "" : ", ") + name;
    }
  }
  if (named.empty() && capability != 0 && fitting.size() == 1) {
    return fitting.front();
  }
  const std::string near = did_you_mean(named, known);
  return refuse(Diagnostic{
      "/gpu",
      named.empty() ? "the text does not tell which GPU it is" : "unknown GPU \"" + named + "\"",
      near.empty() ? "say --gpu, one of " + list : near});
}

/// The preset to take constants from.
Expected<Json> preset_with(const std::string& gpu) {
  Json found;
  for (const std::string& name : preset_names("topologies")) {
    const Expected<std::string> text = read_text_file(preset_path("topologies", name).string());
    Json preset = text ? Json::parse(*text, nullptr, false) : Json();
    if (preset.is_object() && preset.value("gpu", "") == gpu &&
        (found.is_null() || name.starts_with("dgx-") || name.starts_with("hgx-"))) {
      found = std::move(preset);
    }
  }
  if (found.is_null()) {
    return refuse(Diagnostic{"/gpu",
                             "no preset of topologies/ has the GPU " + gpu,
                             "name a GPU that one has: the other constants come from there"});
  }
  return found;
}

void put(Json& topology, const std::string& key, Json value, const std::string& source) {
  topology[key] = {{"value", std::move(value)}, {"source", source}};
}

std::string rate_value(Bandwidth rate) {
  return json_number(static_cast<double>(rate.bytes_per_second) / 1e9) + " GB/s";
}

void put_told(Json& topology,
              const ToldKeys& told,
              const TopologySpec& spec,
              const std::string& source) {
  if (told.contains("node_interconnect")) {
    topology["node_interconnect"] = spec.node_interconnect;
  }
  if (told.contains("gpus_per_node")) {
    put(topology, "gpus_per_node", spec.gpus_per_node, source);
  }
  if (told.contains("nics_per_node")) {
    put(topology, "nics_per_node", spec.nics_per_node, source);
  }
  if (told.contains("nvlink_bandwidth")) {
    put(topology, "nvlink_bandwidth", rate_value(spec.nvlink_bandwidth), source);
  }
  if (told.contains("nic_bandwidth")) {
    put(topology, "nic_bandwidth", rate_value(spec.nic_bandwidth), source);
  }
}

/// What the preset states of a fabric, and this one does not take.
void drop_idle_keys(const TopologySpec& spec, Json& topology) {
  Json kept = Json::object();
  for (const auto& [key, value] : topology.items()) {
    if (why_idle(key, spec).empty()) {
      kept[key] = value;
    }
  }
  topology = std::move(kept);
}

}  // namespace

Expected<std::string> write_imported_topology(const Import& import, const ImportedTopology& how) {
  const Expected<std::string> gpu = gpu_of(import, how.gpu);
  if (!gpu) {
    return tl::unexpected<Faults>(gpu.error());
  }
  Expected<Json> preset = preset_with(*gpu);
  if (!preset) {
    return tl::unexpected<Faults>(preset.error());
  }
  Json topology = std::move(*preset);
  TopologySpec spec;
  topology["name"] = how.name;
  topology["max_gpus"] = {{"value", 0}, {"source", "no limit stated"}};
  if (const auto* const node = std::get_if<NodeDescription>(&import)) {
    const int told_capability = node->gpus.empty() ? 0 : node->gpus.front().sm;
    const int capability = told_capability != 0 ? told_capability : capability_of(*gpu);
    put_told(topology, node_values(*node, capability, spec), spec, node->form + ", " + how.path);
    topology["display_name"] = how.name + ", node from " + node->form;
  } else if (std::holds_alternative<FabricDiscovery>(import)) {
    topology["display_name"] = how.name + ", fabric from ibnetdiscover";
    topology["fabric"] = "discovered";
    topology["fabric_file"] = how.path;
    spec.fabric = FabricKind::kDiscovered;
    drop_idle_keys(spec, topology);
  }
  if (how.gpus_per_node > 0) {
    put(topology, "gpus_per_node", how.gpus_per_node, "stated when the file was written");
  }
  return topology.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace foretrain
