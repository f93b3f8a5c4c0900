#include "sim/scenario/imported_hardware.h"

#include "sim/scenario/named_file.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

namespace foretrain {
namespace {

using Interconnect = NodeDescription::Interconnect;

/// The file a key names, read; nothing when the key is absent or the file is at fault.
std::optional<Import> import_of(JsonCursor& file, std::string_view key, const std::string& folder) {
  const std::optional<JsonCursor> at = file.member(key);
  const std::optional<std::string> path = at ? at->string() : std::nullopt;
  if (!path) {
    return std::nullopt;
  }
  Expected<Import> import = read_import(resolve_path(*path, folder));
  if (!import) {
    for (const Diagnostic& fault : import.error().list) {
      at->fault(*path + ": " + fault.message, fault.hint);
    }
    return std::nullopt;
  }
  return std::move(*import);
}

/// The commonest rate of adapters.
Bandwidth usual_rate(const std::map<std::int64_t, std::int64_t>& counts) {
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      });
  return {most == counts.end() ? 0 : most->first};
}

int capability_told(const NodeDescription& node) {
  return node.gpus.empty() ? 0 : node.gpus.front().sm;
}

}  // namespace

int capability_of(std::string_view gpu) {
  constexpr std::pair<std::string_view, int> kBeginnings[] = {{"v100", 70},
                                                              {"a100", 80},
                                                              {"a800", 80},
                                                              {"h100", 90},
                                                              {"h200", 90},
                                                              {"h800", 90},
                                                              {"b200", 100},
                                                              {"gb200", 100},
                                                              {"b300", 103},
                                                              {"gb300", 103}};
  for (const auto& [beginning, capability] : kBeginnings) {
    if (gpu.starts_with(beginning)) {
      return capability;
    }
  }
  return 0;
}

ToldKeys node_values(const NodeDescription& node, int capability, TopologySpec& spec) {
  ToldKeys told = {"gpus_per_node"};
  spec.gpus_per_node = static_cast<int>(node.gpus.size());
  if (node.nics_in_use() > 0) {
    spec.nics_per_node = node.nics_in_use();
    told.insert("nics_per_node");
  }
  if (node.nic_rate().bytes_per_second > 0) {
    spec.nic_bandwidth = node.nic_rate();
    told.insert("nic_bandwidth");
  }
  if (node.interconnect == Interconnect::kNotTold) {
    return told;
  }
  told.insert("node_interconnect");
  const bool nvlink =
      node.interconnect == Interconnect::kNvSwitch || node.interconnect == Interconnect::kMesh;
  spec.node_interconnect = nvlink ? "nvswitch" : "pcie";
  const Bandwidth slot = node.gpus.front().pcie;
  const std::int64_t link = nvlink_rate(capability).bytes_per_second;
  const Bandwidth rate = nvlink ? Bandwidth{link * node.nvlinks_per_gpu()} : slot;
  if (rate.bytes_per_second > 0) {
    spec.nvlink_bandwidth = rate;
    told.insert("nvlink_bandwidth");
  }
  return told;
}

ToldKeys fabric_values(const FabricDiscovery& discovery, TopologySpec& spec) {
  const FabricSummary summary = summarise(discovery);
  DiscoveredFabric cluster = discovery.fabric;
  const auto others = std::stable_partition(
      cluster.hosts.begin(), cluster.hosts.end(), [&](const DiscoveredFabric::Host& host) {
        return std::ssize(host.adapters) >= summary.usual_adapters;
      });
  cluster.others.assign(std::move_iterator(others), std::move_iterator(cluster.hosts.end()));
  cluster.hosts.erase(others, cluster.hosts.end());
  spec.discovered = std::make_shared<const DiscoveredFabric>(std::move(cluster));
  spec.nics_per_node = static_cast<int>(summary.usual_adapters);
  spec.nic_bandwidth = usual_rate(summary.adapters_by_rate);
  return {"nics_per_node", "nic_bandwidth"};
}

ToldKeys read_imported_hardware(JsonCursor& file,
                                TopologySpec& spec,
                                const std::string& gpu,
                                const std::string& folder) {
  ToldKeys told;
  if (const std::optional<Import> import = import_of(file, "node_file", folder)) {
    const JsonCursor at = *file.member("node_file");
    if (const auto* const node = std::get_if<NodeDescription>(&*import)) {
      const int capability = capability_of(gpu);
      const int stated = capability_told(*node);
      if (stated != 0 && capability != 0 && stated != capability) {
        at.fault("its GPUs have compute capability " + std::to_string(stated) + ", " + gpu +
                     " has " + std::to_string(capability),
                 "name the GPU that the node has");
      }
      told = node_values(*node, stated != 0 ? stated : capability, spec);
    } else {
      at.fault("describes no node", "give `nvidia-smi topo -m` or a topology file of NCCL");
    }
  }
  if (const std::optional<Import> import = import_of(file, "fabric_file", folder)) {
    const JsonCursor at = *file.member("fabric_file");
    const auto* const fabric = std::get_if<FabricDiscovery>(&*import);
    if (fabric == nullptr) {
      at.fault("lists no fabric", "give the text of ibnetdiscover");
    } else if (fabric->fabric.hosts.empty()) {
      at.fault("lists no host", "its adapters carry no names of hosts and devices");
    } else {
      told.merge(fabric_values(*fabric, spec));
    }
  }
  return told;
}

}  // namespace foretrain
