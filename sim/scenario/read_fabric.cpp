#include "sim/scenario/fabric_keys.h"
#include "sim/scenario/sections.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr NumberRange kOversubscription = {1.0, 1000.0};

}  // namespace

void read_fabric_words(JsonCursor& file, TopologySpec& spec) {
  read_word(file, "fabric", kFabricNames, spec.fabric);
  read_word(file, "off_rail", kOffRailNames, spec.off_rail);
  if (const std::optional<JsonCursor> at = file.member("failed_links")) {
    spec.failed_links.clear();
    for (const JsonCursor& link : at->elements()) {
      spec.failed_links.push_back(link.string().value_or(""));
    }
  }
  if (const std::optional<JsonCursor> at = file.member("failed_nodes")) {
    spec.failed_nodes.clear();
    for (const JsonCursor& node : at->elements()) {
      spec.failed_nodes.push_back(node.integer(kCountOrNone).value_or(-1));
    }
  }
}

void read_fabric_overrides(JsonCursor& section, TopologySpec& spec) {
  if (!section.expect_object()) {
    return;
  }
  const FabricKind stated = spec.fabric;
  read_fabric_words(section, spec);
  if (stated == FabricKind::kNone && spec.fabric != stated) {
    section.member("fabric")->fault("the topology's file describes no network between nodes",
                                    "take a topology that has one");
  }
  section.read("oversubscription", spec.oversubscription, kOversubscription);
  section.read("pod_oversubscription", spec.pod_oversubscription, kOversubscription);
  section.read("nodes_per_leaf_group", spec.nodes_per_leaf_group, kCount);
  section.read("gpus_per_pod", spec.gpus_per_pod, kCountOrNone);
  section.read("nics_per_node", spec.nics_per_node, kCount);
  if (section.read("nic_bandwidth", spec.nic_bandwidth) &&
      spec.nic_bandwidth.bytes_per_second < 1) {
    section.member("nic_bandwidth")->fault("must be above 0", "e.g. \"400 Gb/s\"");
  }
  if (spec.fabric != FabricKind::kDiscovered) {
    spec.discovered.reset();
  }
  if (!why_idle("off_rail", spec).empty() && !section.member("off_rail")) {
    spec.off_rail = OffRail::kSpine;
  }
  refuse_idle_keys(section, spec);
  section.finish();
}

}  // namespace foretrain
