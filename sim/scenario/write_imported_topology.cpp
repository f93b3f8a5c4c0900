#include "foretrain/imports.h"
#include "sim/base/data_directory.h"
#include "sim/base/edit_distance.h"
#include "sim/base/format.h"
#include "sim/scenario/fabric_keys.h"
#include "sim/scenario/imported_hardware.h"
#include "sim/scenario/json_value.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;
using Interconnect = NodeDescription::Interconnect;

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

/// The preset to take constants from: the first by name, DGX and HGX before others.
Expected<Json> preset_with(const std::string& gpu) {
  const auto is_machine = [](const std::string& name) {
    return name.starts_with("dgx-") || name.starts_with("hgx-");
  };
  Json found;
  for (const std::string& name : preset_names("topologies")) {
    const Expected<std::string> text = read_text_file(preset_path("topologies", name).string());
    Json preset = text ? Json::parse(*text, nullptr, false) : Json();
    if (preset.is_object() && preset.value("gpu", "") == gpu &&
        (found.is_null() || (is_machine(name) && !is_machine(found.value("name", ""))))) {
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
  const auto put_if = [&](const char* key, const auto& value) {
    if (told.contains(key)) {
      put(topology, key, value, source);
    }
  };
  if (told.contains("node_interconnect")) {
    topology["node_interconnect"] = spec.node_interconnect;
  }
  put_if("gpus_per_node", spec.gpus_per_node);
  put_if("nics_per_node", spec.nics_per_node);
  put_if("nvlink_bandwidth", rate_value(spec.nvlink_bandwidth));
  put_if("nic_bandwidth", rate_value(spec.nic_bandwidth));
}

std::string counted(std::int64_t number, const std::string& noun) {
  return std::to_string(number) + " " + plural(noun, number);
}

std::string per_second(Bandwidth rate) {
  return human_rate(static_cast<double>(rate.bytes_per_second));
}

/// NVLink as a topology can say it, where the node has it otherwise or does not tell.
std::string nvlink_assumed(const NodeDescription& node, const std::string& interconnect) {
  const std::string written = interconnect == "pcie" ? "PCIe alone" : "NVSwitch";
  switch (node.interconnect) {
    case Interconnect::kNotTold:
      return written + " inside a node: the file lists slots and tells no NVLinks";
    case Interconnect::kPartial:
      return "PCIe alone inside a node, though some pairs of its GPUs have NVLink: a topology has "
             "NVLink between all or none";
    case Interconnect::kMesh:
      return "NVSwitch inside a node, of as many NVLinks as lead from GPU to GPU: a pair alone "
             "reaches less";
    default:
      return "";
  }
}

void tell_node(const NodeDescription& node,
               const ToldKeys& told,
               const TopologySpec& spec,
               const Json& topology,
               WrittenTopology& written) {
  const std::string nics = counted(node.nics_in_use(), "NIC");
  written.holds.push_back("a node of " + counted(spec.gpus_per_node, "GPU") + ", " + nics +
                          " nearest to one, from " + node.form);
  std::set<std::int64_t> rates;
  for (const NodeDescription::Gpu& gpu : node.gpus) {
    if (gpu.nic >= 0) {
      rates.insert(node.nics[static_cast<std::size_t>(gpu.nic)].rate.bytes_per_second);
    }
  }
  const std::string interconnect = topology.value("node_interconnect", "");
  if (std::string nvlink = nvlink_assumed(node, interconnect); !nvlink.empty()) {
    written.assumed.push_back(std::move(nvlink));
  }
  if (!told.contains("nics_per_node")) {
    written.assumed.push_back("as many NICs a node as the preset has: none is listed");
  }
  if (rates.size() > 1 && told.contains("nic_bandwidth")) {
    written.assumed.push_back(per_second(spec.nic_bandwidth) + " from every NIC, the slowest of " +
                              std::to_string(rates.size()) + " rates");
  } else if (!told.contains("nic_bandwidth")) {
    written.assumed.push_back("NICs as fast as the preset's: their rate is not told");
  }
}

void tell_fabric(const TopologySpec& spec, WrittenTopology& written) {
  constexpr std::size_t kNamed = 8;
  const DiscoveredFabric& fabric = *spec.discovered;
  std::set<std::int64_t> rates;
  std::map<std::int64_t, std::int64_t> sizes;
  for (const DiscoveredFabric::Host& host : fabric.hosts) {
    ++sizes[std::ssize(host.adapters)];
    for (const DiscoveredFabric::Adapter& adapter : host.adapters) {
      rates.insert(adapter.rate.bytes_per_second);
    }
  }
  std::string text = "a fabric of " + counted(std::ssize(fabric.switches), "switch") +
                     "; its nodes are " + counted(std::ssize(fabric.hosts), "host") + ", n0 is " +
                     fabric.hosts.front().name;
  for (const auto& [adapters, hosts] : sizes) {
    text += ", " + std::to_string(hosts) + " with " + counted(adapters, "adapter");
  }
  written.holds.push_back(text + (rates.size() > 1 ? ", each at its own rate" : ""));
  if (!fabric.others.empty()) {
    std::string names;
    for (std::size_t at = 0; at < std::min(fabric.others.size(), kNamed); ++at) {
      names += (at == 0 ? "" : ", ") + fabric.others[at].name;
    }
    written.assumed.push_back(counted(std::ssize(fabric.others), "host") +
                              " with fewer adapters than the usual " +
                              std::to_string(spec.nics_per_node) + " left out: " + names +
                              (fabric.others.size() > kNamed ? ", ..." : ""));
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

Expected<WrittenTopology> write_imported_topology(const Import& import,
                                                  const ImportedTopology& how) {
  const Expected<std::string> gpu = gpu_of(import, how.gpu);
  if (!gpu) {
    return tl::unexpected<Faults>(gpu.error());
  }
  Expected<Json> preset = preset_with(*gpu);
  if (!preset) {
    return tl::unexpected<Faults>(preset.error());
  }
  Json topology = std::move(*preset);
  const std::string preset_name = topology.value("name", "");
  TopologySpec spec;
  WrittenTopology written;
  topology["name"] = how.name;
  topology["max_gpus"] = {{"value", 0}, {"source", "no limit stated"}};
  if (const auto* const node = std::get_if<NodeDescription>(&import)) {
    const int told_capability = node->gpus.empty() ? 0 : node->gpus.front().sm;
    const int capability = told_capability != 0 ? told_capability : capability_of(*gpu);
    const ToldKeys told = node_values(*node, capability, spec);
    put_told(topology, told, spec, node->form + ", " + how.path);
    topology["display_name"] = how.name + ", node from " + node->form;
    tell_node(*node, told, spec, topology, written);
  } else if (const auto* const fabric = std::get_if<FabricDiscovery>(&import)) {
    if (fabric->fabric.hosts.empty()) {
      return refuse(Diagnostic{"", "lists no host", "adapters carry names of hosts and devices"});
    }
    topology["display_name"] = how.name + ", fabric from ibnetdiscover";
    topology["fabric"] = "discovered";
    topology["fabric_file"] = how.path;
    spec.fabric = FabricKind::kDiscovered;
    fabric_values(*fabric, spec);
    drop_idle_keys(spec, topology);
    tell_fabric(spec, written);
    const std::int64_t usual = topology["gpus_per_node"].value("value", std::int64_t{0});
    if (how.gpus_per_node == 0) {
      written.assumed.push_back(counted(usual, "GPU") + " a node, as the preset has; a host has " +
                                counted(spec.nics_per_node, "adapter") +
                                " (--gpus-per-node says otherwise)");
    }
  }
  if (how.gpus_per_node > 0) {
    put(topology, "gpus_per_node", how.gpus_per_node, "stated when the file was written");
  }
  written.assumed.push_back("every other constant as in the preset " + preset_name);
  written.text = topology.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return written;
}

}  // namespace foretrain
