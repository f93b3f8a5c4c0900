#include "sim/cluster/layout.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

namespace foretrain {
namespace {

/// Larger than any cluster built; bounds the memory of a drawing.
constexpr std::int64_t kMaxGpus = 1 << 18;

/// More spines than this are drawn as fewer and wider ones.
constexpr std::int64_t kMaxSpines = 64;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

Bandwidth scale(Bandwidth line, double factor) {
  const auto rate = std::llround(static_cast<double>(line.bytes_per_second) * factor);
  return {std::max<std::int64_t>(rate, 1)};
}

void check_positive(const char* key, std::int64_t value, std::vector<Diagnostic>& faults) {
  if (value <= 0) {
    faults.push_back({std::string("/") + key, std::string(key) + " must be positive", ""});
  }
}

std::vector<Diagnostic> spec_faults(const TopologySpec& spec) {
  std::vector<Diagnostic> faults;
  check_positive("gpus_per_node", spec.gpus_per_node, faults);
  const bool pcie = spec.node_interconnect == "pcie";
  if (!pcie) {
    check_positive("nvlink_bandwidth", spec.nvlink_bandwidth.bytes_per_second, faults);
  }
  if (pcie || spec.fabric != FabricKind::kNone) {
    check_positive("pcie_bandwidth", spec.pcie_bandwidth.bytes_per_second, faults);
  }
  if (spec.fabric != FabricKind::kNone && spec.fabric != FabricKind::kDiscovered) {
    check_positive("nics_per_node", spec.nics_per_node, faults);
    check_positive("nic_bandwidth", spec.nic_bandwidth.bytes_per_second, faults);
    check_positive("nodes_per_leaf_group", spec.nodes_per_leaf_group, faults);
  }
  if (spec.oversubscription < 1.0 || spec.pod_oversubscription < 1.0) {
    faults.push_back({spec.oversubscription < 1.0 ? "/oversubscription" : "/pod_oversubscription",
                      "must be at least 1 (1 = full bisection)",
                      ""});
  }
  const bool rails =
      spec.fabric == FabricKind::kRailOptimized || spec.fabric == FabricKind::kRailOnly;
  if (spec.off_rail == OffRail::kNvlink && (!rails || pcie)) {
    faults.push_back(
        {"/off_rail",
         pcie ? "the nodes have no NVLink to reach another rail over" : "this fabric has no rails",
         "\"nvlink\" is for rail-optimized and rail-only fabrics of NVLink nodes"});
  }
  if (spec.fabric == FabricKind::kDiscovered && spec.discovered == nullptr) {
    faults.push_back({"/fabric", "no switches and cables are given", ""});
  }
  if (spec.fabric == FabricKind::kClos && spec.gpus_per_node > 0 &&
      spec.gpus_per_pod % spec.gpus_per_node != 0) {
    faults.push_back({"/gpus_per_pod", "must be a whole number of nodes", ""});
  }
  return faults;
}

std::vector<Diagnostic> size_faults(const TopologySpec& spec, std::int64_t gpus) {
  const std::string pointer = "/cluster/gpus";
  if (gpus < 1) {
    return {{pointer, "gpus is " + std::to_string(gpus) + ", must be at least 1", ""}};
  }
  if (gpus > kMaxGpus) {
    return {{pointer,
             std::to_string(gpus) + " GPUs, more than the " + std::to_string(kMaxGpus) +
                 " a topology may have",
             ""}};
  }
  if (spec.max_gpus > 0 && gpus > spec.max_gpus) {
    return {{pointer,
             std::to_string(gpus) + " GPUs, but " + spec.name + " describes at most " +
                 std::to_string(spec.max_gpus),
             ""}};
  }
  if (spec.fabric == FabricKind::kNone && gpus > spec.gpus_per_node) {
    return {{pointer,
             std::to_string(gpus) + " GPUs, but " + spec.name +
                 " has no network between nodes of " + std::to_string(spec.gpus_per_node),
             ""}};
  }
  return {};
}

std::string nodes_range(std::int64_t nodes) {
  return nodes == 1 ? "its only node is 0" : "nodes are 0 to " + std::to_string(nodes - 1);
}

std::set<std::int64_t> different(const std::vector<std::int64_t>& nodes) {
  return {nodes.begin(), nodes.end()};
}

/// Nodes of a machine whose number is told; nothing where it has as many as are asked for.
std::optional<std::int64_t> nodes_told(const TopologySpec& spec) {
  if (spec.discovered != nullptr) {
    return std::ssize(spec.discovered->hosts);
  }
  const bool limited = spec.max_gpus > 0 && !spec.failed_nodes.empty();
  return limited ? std::optional<std::int64_t>(spec.max_gpus / spec.gpus_per_node) : std::nullopt;
}

/// The first so many nodes hold the job and what has failed.
std::int64_t nodes_taken(const TopologySpec& spec, std::int64_t gpus) {
  const std::int64_t all =
      divide_up(gpus, spec.gpus_per_node) + std::ssize(different(spec.failed_nodes));
  return std::min(all, nodes_told(spec).value_or(all));
}

/// Failed nodes are among those the job and they take.
std::vector<Diagnostic> failed_node_faults(const TopologySpec& spec, std::int64_t gpus) {
  std::vector<Diagnostic> faults;
  const std::int64_t all = nodes_taken(spec, gpus);
  for (std::size_t at = 0; at < spec.failed_nodes.size(); ++at) {
    const std::int64_t node = spec.failed_nodes[at];
    if (node < 0 || node >= all) {
      faults.push_back({"/failed_nodes/" + std::to_string(at),
                        "node " + std::to_string(node) + " is not one of the " +
                            std::to_string(all) + " that " + std::to_string(gpus) +
                            " GPUs and the failed ones take",
                        nodes_range(all)});
    }
  }
  return faults;
}

/// Numbers of the nodes used when some have failed.
std::vector<std::int64_t> working_nodes(const TopologySpec& spec, std::int64_t nodes) {
  std::vector<std::int64_t> numbers;
  const std::set<std::int64_t> failed = different(spec.failed_nodes);
  for (std::int64_t node = 0; !failed.empty() && static_cast<std::int64_t>(numbers.size()) < nodes;
       ++node) {
    if (failed.count(node) == 0) {
      numbers.push_back(node);
    }
  }
  return numbers;
}

/// Pods, leaf groups, rails.
void place(ClusterLayout& layout) {
  const TopologySpec& spec = layout.spec;
  layout.nodes = divide_up(layout.gpus, spec.gpus_per_node);
  layout.working = working_nodes(spec, layout.nodes);
  const std::int64_t span = layout.number_of(layout.nodes - 1) + 1;
  layout.nodes_per_pod = span;
  if (spec.fabric == FabricKind::kClos && spec.gpus_per_pod > 0) {
    layout.nodes_per_pod = std::min<std::int64_t>(span, spec.gpus_per_pod / spec.gpus_per_node);
  }
  layout.pods = divide_up(span, layout.nodes_per_pod);
  layout.groups_per_pod = divide_up(layout.nodes_per_pod, std::max(spec.nodes_per_leaf_group, 1));
  const bool rails =
      spec.fabric == FabricKind::kRailOptimized || spec.fabric == FabricKind::kRailOnly;
  layout.leaves_per_group = rails ? spec.nics_per_node : 1;
  layout.planes = spec.fabric == FabricKind::kRailOnly ? spec.nics_per_node : 1;
}

/// Switch counts above the leaves and the capacities that the oversubscription leaves.
void size_fabric(ClusterLayout& layout) {
  const TopologySpec& spec = layout.spec;
  const std::int64_t leaves_per_pod = layout.groups_per_pod * layout.leaves_per_group;
  if (leaves_per_pod == layout.planes && layout.pods == 1) {
    return;  // one switch joins everything that is joined
  }
  const std::int64_t nodes_below =
      std::min<std::int64_t>(spec.nodes_per_leaf_group, layout.nodes_per_pod);
  const std::int64_t ports = nodes_below * spec.nics_per_node / layout.leaves_per_group;
  const double uplinks = static_cast<double>(ports) / spec.oversubscription;
  const std::int64_t above_a_leaf =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(uplinks)), 1, kMaxSpines);
  layout.uplinks_per_leaf = uplinks;
  layout.spines_per_pod = layout.planes * above_a_leaf;
  const double spines = static_cast<double>(above_a_leaf);
  layout.leaf_uplink = scale(spec.nic_bandwidth, uplinks / spines);
  layout.spine_uplink =
      scale(layout.leaf_uplink, static_cast<double>(leaves_per_pod) / spec.pod_oversubscription);
}

}  // namespace

Duration link_latency(Duration stated) {
  return std::max(stated, Duration{1});
}

std::vector<Diagnostic> layout_faults(const TopologySpec& spec, std::int64_t gpus) {
  std::vector<Diagnostic> faults = spec_faults(spec);
  return faults.empty() ? size_faults(spec, gpus) : faults;
}

std::vector<Diagnostic> node_faults(TopologySpec& spec, std::int64_t& gpus) {
  std::vector<Diagnostic> faults = failed_node_faults(spec, gpus);
  const std::int64_t used = divide_up(gpus, spec.gpus_per_node);
  const std::int64_t all = nodes_taken(spec, gpus);
  std::erase_if(spec.failed_nodes, [all](std::int64_t node) { return node < 0 || node >= all; });
  const std::optional<std::int64_t> told = nodes_told(spec);
  const std::int64_t left = told.value_or(all) - std::ssize(different(spec.failed_nodes));
  if (told && left < used) {
    faults.push_back({"/cluster/gpus",
                      std::to_string(gpus) + " GPUs take " + std::to_string(used) + " nodes, but " +
                          std::to_string(left) + " of " + std::to_string(*told) + " are left",
                      ""});
    gpus = std::max<std::int64_t>(left, 0) * spec.gpus_per_node;
  }
  return faults;
}

ClusterLayout lay_out(const TopologySpec& spec, std::int64_t gpus) {
  ClusterLayout layout;
  layout.spec = spec;
  layout.gpus = gpus;
  place(layout);
  if (layout.has_fabric() && spec.fabric != FabricKind::kDiscovered) {
    size_fabric(layout);
  }
  return layout;
}

std::int64_t ClusterLayout::gpus_in_node(std::int64_t node) const {
  return std::min<std::int64_t>(spec.gpus_per_node, gpus - node * spec.gpus_per_node);
}

std::int64_t ClusterLayout::group_of(std::int64_t node) const {
  return pod_of(node) * groups_per_pod +
         number_of(node) % nodes_per_pod / spec.nodes_per_leaf_group;
}

std::int64_t ClusterLayout::place_in_group(std::int64_t node) const {
  return number_of(node) % nodes_per_pod % spec.nodes_per_leaf_group;
}

std::int64_t ClusterLayout::nic_of(std::int64_t rank) const {
  return rank % spec.gpus_per_node * spec.nics_per_node / spec.gpus_per_node;
}

std::int64_t ClusterLayout::leaf_of(std::int64_t node, std::int64_t nic) const {
  return group_of(node) * leaves_per_group + nic % leaves_per_group;
}

bool ClusterLayout::forwards() const {
  return !behind_pcie() && has_rails() && (planes > 1 || spec.off_rail == OffRail::kNvlink);
}

std::int64_t ClusterLayout::gpu_beside(std::int64_t node, std::int64_t nic) const {
  const std::int64_t local = divide_up(nic * spec.gpus_per_node, spec.nics_per_node);
  const std::int64_t beside = spec.nics_per_node <= spec.gpus_per_node
                                  ? local
                                  : nic * spec.gpus_per_node / spec.nics_per_node;
  return beside < gpus_in_node(node) ? beside : -1;
}

Bandwidth ClusterLayout::nic_share() const {
  const Int128 node_rate = Int128{spec.nic_bandwidth.bytes_per_second} * spec.nics_per_node;
  const auto share = static_cast<std::int64_t>(node_rate / spec.gpus_per_node);
  return std::min(Bandwidth{std::max<std::int64_t>(share, 1)}, spec.pcie_bandwidth);
}

Bandwidth ClusterLayout::inside_bandwidth() const {
  return spec.node_interconnect == "pcie" ? spec.pcie_bandwidth : spec.nvlink_bandwidth;
}

Duration ClusterLayout::inside_latency() const {
  const bool pcie = spec.node_interconnect == "pcie";
  return pcie ? 2 * link_latency(spec.pcie_latency) : std::max(spec.nvlink_latency, Duration{2});
}

std::string ClusterLayout::nic_name(std::int64_t node, std::int64_t nic) const {
  return "n" + std::to_string(number_of(node)) + ".nic" + std::to_string(nic);
}

std::string ClusterLayout::hub_name(std::int64_t node) const {
  const char* hub = spec.node_interconnect == "pcie" ? ".pcie0" : ".nvs0";
  return "n" + std::to_string(number_of(node)) + hub;
}

std::string ClusterLayout::leaf_name(std::int64_t leaf) const {
  return "leaf" + std::to_string(leaf / leaves_per_group) + "." +
         std::to_string(leaf % leaves_per_group);
}

std::string ClusterLayout::spine_name(std::int64_t pod, std::int64_t spine) const {
  if (planes > 1) {
    const std::int64_t each = spines_per_pod / planes;
    return "rail" + std::to_string(spine / each) + ".spine" + std::to_string(spine % each);
  }
  const std::string name = "spine" + std::to_string(spine);
  return pods > 1 ? "pod" + std::to_string(pod) + "." + name : name;
}

bool crosses_nvlink(const ClusterLayout& layout, std::int64_t from, std::int64_t to) {
  return layout.forwards() && layout.nic_of(from) != layout.nic_of(to);
}

Duration across_latency(const ClusterLayout& layout, std::int64_t from, std::int64_t to) {
  const TopologySpec& spec = layout.spec;
  const std::int64_t a = layout.node_of(from);
  const std::int64_t b = layout.node_of(to);
  const std::int64_t host_links = layout.behind_pcie() ? 4 : 2;  // a PCIe switch at both ends
  Duration latency =
      host_links * link_latency(spec.pcie_latency) + 2 * link_latency(spec.nic_latency);
  const bool forwarded = crosses_nvlink(layout, from, to);
  if (forwarded) {
    latency += layout.inside_latency();
  }
  // Behind a PCIe switch every NIC is as near: the route takes the rail it needs.
  const bool same_rail = forwarded || layout.behind_pcie();
  const std::int64_t leaf_a = layout.leaf_of(a, layout.nic_of(same_rail ? to : from));
  const std::int64_t leaf_b = layout.leaf_of(b, layout.nic_of(to));
  if (layout.pod_of(a) != layout.pod_of(b)) {
    latency += 4 * link_latency(spec.switch_latency);
  } else if (leaf_a != leaf_b) {
    latency += 2 * link_latency(spec.switch_latency);
  }
  return latency;
}

}  // namespace foretrain
