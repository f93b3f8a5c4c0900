#include "sim/scenario/fabric_keys.h"

#include <algorithm>
#include <iterator>

namespace foretrain {
namespace {

constexpr IntegerRange kCount = {1, 1'000'000'000};
constexpr IntegerRange kCountOrNone = {0, 1'000'000'000};
constexpr NumberRange kOversubscription = {1.0, 1000.0};

template <typename Enum, std::size_t N>
void read_word(JsonCursor& file,
               std::string_view key,
               const std::string_view (&words)[N],
               Enum& target) {
  std::string word;
  if (file.read(key, word, words)) {
    target = static_cast<Enum>(std::find(std::begin(words), std::end(words), word) - words);
  }
}

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
      spec.failed_nodes.push_back(node.integer(kCountOrNone).value_or(0));
    }
  }
}

void read_fabric_overrides(JsonCursor& section, TopologySpec& spec) {
  if (!section.expect_object()) {
    return;
  }
  read_fabric_words(section, spec);
  section.read("oversubscription", spec.oversubscription, kOversubscription);
  const bool thinned =
      section.read("pod_oversubscription", spec.pod_oversubscription, kOversubscription);
  section.read("nodes_per_leaf_group", spec.nodes_per_leaf_group, kCount);
  const bool pods = section.read("gpus_per_pod", spec.gpus_per_pod, kCountOrNone);
  section.read("nics_per_node", spec.nics_per_node, kCount);
  if (section.read("nic_bandwidth", spec.nic_bandwidth) &&
      spec.nic_bandwidth.bytes_per_second < 1) {
    section.fault("nic_bandwidth must be above 0", "e.g. \"400 Gb/s\"");
  }
  if ((pods || thinned) && spec.fabric != FabricKind::kClos) {
    section.fault(std::string(pods ? "gpus_per_pod" : "pod_oversubscription") +
                      " has no effect: only a clos fabric has pods",
                  "set fabric to \"clos\", or leave it out");
  }
  section.finish();
}

}  // namespace foretrain
