#include "sim/scenario/fabric_keys.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace foretrain {
namespace {

constexpr std::string_view kOfPods[] = {"gpus_per_pod", "pod_oversubscription"};
constexpr std::string_view kOfAdapters[] = {"nics_per_node", "nic_bandwidth"};
constexpr std::string_view kOfSwitches[] = {"nodes_per_leaf_group", "oversubscription"};
/// Stated in topology files only.
constexpr std::string_view kOfHops[] = {"nic_latency",
                                        "switch_latency",
                                        "nic_efficiency",
                                        "collective_latency_hop",
                                        "low_latency_nic_efficiency",
                                        "low_latency_hop",
                                        "all_to_all_efficiency",
                                        "network_reduction"};

template <std::size_t N>
bool one_of(const std::string_view (&keys)[N], std::string_view key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

std::string why_off_rail_is_idle(const TopologySpec& spec) {
  switch (spec.fabric) {
    case FabricKind::kRailOptimized:
      return spec.node_interconnect == "pcie"
                 ? "the nodes have no NVLink to reach another rail over"
             : spec.nics_per_node == 1 ? "nodes with one NIC have one rail"
                                       : "";
    case FabricKind::kRailOnly:
      return "rails that never meet are reached over NVLink";
    default:
      return "this fabric has no rails";
  }
}

std::string why_pods_are_idle(std::string_view key, const TopologySpec& spec) {
  if (spec.fabric != FabricKind::kClos) {
    return "only a clos fabric has pods";
  }
  const bool one = key == "pod_oversubscription" && spec.gpus_per_pod == 0;
  return one ? "without gpus_per_pod there is one pod" : "";
}

}  // namespace

std::string why_idle(std::string_view key, const TopologySpec& spec) {
  if (key == "off_rail") {
    return why_off_rail_is_idle(spec);
  }
  if (one_of(kOfPods, key)) {
    return why_pods_are_idle(key, spec);
  }
  const bool adapters = one_of(kOfAdapters, key);
  const bool switches = one_of(kOfSwitches, key);
  if (spec.fabric == FabricKind::kNone && (adapters || switches || one_of(kOfHops, key))) {
    return "there is no network between nodes";
  }
  if (spec.fabric == FabricKind::kDiscovered && (adapters || switches)) {
    return std::string("the ") + (adapters ? "adapters" : "switches and cables") +
           " are those that fabric_file lists";
  }
  return "";
}

void refuse_idle_keys(JsonCursor& section, const TopologySpec& spec, std::string_view allowed) {
  const auto refuse_idle = [&](std::string_view key) {
    const std::string why = key == allowed ? "" : why_idle(key, spec);
    if (const auto at = why.empty() ? std::nullopt : section.member(key)) {
      at->fault(std::string(kNoEffect) + why,
                one_of(kOfPods, key) && spec.fabric != FabricKind::kClos
                    ? "set fabric to \"clos\", or leave it out"
                    : "leave it out");
    }
  };
  refuse_idle("off_rail");
  for (const std::string_view key : kOfPods) {
    refuse_idle(key);
  }
  for (const std::string_view key : kOfAdapters) {
    refuse_idle(key);
  }
  for (const std::string_view key : kOfSwitches) {
    refuse_idle(key);
  }
  for (const std::string_view key : kOfHops) {
    refuse_idle(key);
  }
}

}  // namespace foretrain
