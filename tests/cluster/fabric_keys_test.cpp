// Rule: every key of a fabric changes the cluster that is built, or is refused by name. Both halves
// are asked of every key on every kind of fabric, in a scenario and in a topology's file.
#include "tests/support/fabric_text.h"
#include "tests/support/own_folder.h"

#include "foretrain/collective.h"
#include "foretrain/scenario.h"
#include "foretrain/topology.h"

#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kNode = 8;

const std::vector<std::string> kKinds = {
    "rail-optimized", "rail-only", "fat-tree", "clos", "discovered", "none"};

/// By key: x where it has an effect, in the order of kKinds; and a value unlike the base's.
struct Row {
  std::string key;
  std::string effect;
  Json value;
};

const std::vector<Row> kOfScenarios = {
    {"off_rail", "x-----", "nvlink"},
    {"oversubscription", "xxxx--", 4.0},
    {"pod_oversubscription", "---x--", 4.0},
    {"nodes_per_leaf_group", "xxxx--", 8},
    {"gpus_per_pod", "---x--", 32},
    {"nics_per_node", "xxxx--", 4},
    {"nic_bandwidth", "xxxx--", "100 Gb/s"},
    {"failed_links", "xxxxxx", Json{"gpu0>n0.nvs0"}},
    {"failed_nodes", "xxxxxx", Json{0}},
};

const std::vector<Row> kOfFiles = {
    {"off_rail", "x-----", "nvlink"},
    {"failed_links", "xxxxxx", Json{"gpu0>n0.nvs0"}},
    {"failed_nodes", "xxxxxx", Json{0}},
    {"oversubscription", "xxxx--", 4.0},
    {"pod_oversubscription", "---x--", 4.0},
    {"nodes_per_leaf_group", "xxxx--", 8},
    {"gpus_per_pod", "---x--", 32},
    {"nics_per_node", "xxxx-x", 4},  // of a node that nothing joins to another too
    {"nic_bandwidth", "xxxx--", "100 Gb/s"},
    {"nic_latency", "xxxxx-", "9 us"},
    {"switch_latency", "xxxxx-", "9 us"},
    {"nic_efficiency", "xxxxx-", 0.5},
    {"collective_latency_hop", "xxxxx-", "90 us"},
    {"low_latency_nic_efficiency", "xxxxx-", 0.5},
    {"low_latency_hop", "xxxxx-", "90 us"},
    {"all_to_all_efficiency", "xxxxx-", 0.2},
    {"network_reduction", "xxxxx-", true},
};

std::int64_t gpus_of(const std::string& kind) {
  return kind == "none" ? kNode : 16 * kNode;
}

/// DGX H100 with a fabric of a kind: leaves of 4 nodes, pods of 8, or 17 hosts as listed.
Json file_of(const std::string& kind) {
  std::ifstream preset(FORETRAIN_SOURCE_DIR "/topologies/dgx-h100-ndr400.json");
  Json file = Json::parse(preset);
  const auto put = [&](const char* key, const Json& value) {
    file[key] = {{"value", value}, {"source", "the test"}};
  };
  file["fabric"] = kind;
  put("nodes_per_leaf_group", 4);
  if (kind == "clos") {
    put("gpus_per_pod", 8 * kNode);
  }
  std::vector<std::string> absent;
  if (kind == "discovered" || kind == "none") {
    absent = {"nodes_per_leaf_group", "oversubscription", "nics_per_node", "nic_bandwidth"};
  }
  if (kind == "discovered") {
    std::ofstream(test::own_folder() + "fabric.out")
        << test::RailFabric{.groups = 4, .hosts = 5, .rails = 8, .spines = 4}.build().text();
    file["fabric_file"] = "fabric.out";
  }
  if (kind == "none") {
    absent.insert(absent.end(),
                  {"nic_latency",
                   "switch_latency",
                   "nic_efficiency",
                   "collective_latency_hop",
                   "low_latency_nic_efficiency",
                   "low_latency_hop",
                   "all_to_all_efficiency"});
  }
  for (const std::string& key : absent) {
    file.erase(key);
  }
  return file;
}

std::string written(const Json& file) {
  const std::string path = test::own_folder() + "topology.json";
  std::ofstream(path) << file.dump();
  return path;
}

std::string lines_of(const Faults& faults) {
  std::string lines;
  for (const Diagnostic& fault : faults.list) {
    lines += fault.pointer + " " + fault.message + "\n";
  }
  return lines;
}

/// Everything that a cluster is to those who ask it: devices, links, some routes, some costs.
std::string picture(const TopologySpec& spec, std::int64_t gpus) {
  const Expected<Topology> topology = Topology::build(spec, gpus);
  if (!topology) {
    return "refused: " + lines_of(topology.error());
  }
  std::string text;
  for (const Device& device : topology->devices()) {
    text += device.name + "\n";
  }
  for (const Link& link : topology->links()) {
    text += link.id + " " + std::to_string(link.capacity.bytes_per_second) + " " +
            std::to_string(link.latency.count()) + "\n";
  }
  for (std::int64_t to = 1; to < gpus; to += kNode + 1) {
    for (const std::int32_t link :
         topology->reachable(0, to) ? topology->route(0, to) : std::vector<std::int32_t>{}) {
      text += topology->links()[static_cast<std::size_t>(link)].id + " ";
    }
  }
  std::vector<std::int64_t> all(static_cast<std::size_t>(gpus));
  std::iota(all.begin(), all.end(), 0);
  if (topology->unreachable_pair(all, TrafficPattern::kAllPairs)) {
    return text + "parted";
  }
  const GroupShape shape = topology->group_shape(all);
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
    for (const std::int64_t bytes : {std::int64_t{1} << 16, std::int64_t{1} << 32}) {
      text += std::to_string(
                  collective_cost(kind, Bytes{bytes}, shape, link_model(spec)).total().count()) +
              " ";
    }
  }
  return text;
}

Expected<Scenario> scenario_on(const std::string& topology,
                               const std::string& kind,
                               const Json& fabric) {
  const Json scenario = {
      {"model", "llama3-8b"},
      {"cluster", {{"topology", topology}, {"gpus", gpus_of(kind)}, {"fabric", fabric}}},
      {"training", {{"sequence_length", 8192}, {"global_batch_size", 128}}},
      {"parallelism", {{"tp", 8}}}};
  return parse_scenario(scenario.dump());
}

/// One fault, of this key, and it says what about the key.
void expect_refused(const Faults& faults, const std::string& pointer) {
  EXPECT_EQ(faults.list.size(), 1U) << lines_of(faults);
  EXPECT_EQ(faults.list.front().pointer, pointer);
  EXPECT_TRUE(faults.list.front().message.starts_with("has no effect: ")) << lines_of(faults);
  EXPECT_NE(faults.list.front().hint, "");
}

TEST(FabricKeys, InAScenario) {
  for (std::size_t at = 0; at < kKinds.size(); ++at) {
    const std::string& kind = kKinds[at];
    const std::string topology = written(file_of(kind));
    const Expected<Scenario> base = scenario_on(topology, kind, Json::object());
    ASSERT_TRUE(base.has_value()) << kind << "\n" << lines_of(base.error());
    for (const Row& row : kOfScenarios) {
      SCOPED_TRACE(row.key + " on " + kind);
      const Expected<Scenario> scenario = scenario_on(topology, kind, {{row.key, row.value}});
      ASSERT_EQ(scenario.has_value(), row.effect[at] == 'x');
      if (!scenario) {
        expect_refused(scenario.error(), "/cluster/fabric/" + row.key);
        continue;
      }
      EXPECT_NE(picture(scenario->cluster.hardware, gpus_of(kind)),
                picture(base->cluster.hardware, gpus_of(kind)));
      EXPECT_TRUE(parse_scenario(write_scenario(*scenario)).has_value());
    }
  }
}

TEST(FabricKeys, InATopologysFile) {
  for (std::size_t at = 0; at < kKinds.size(); ++at) {
    const std::string& kind = kKinds[at];
    const Json base = file_of(kind);
    const Expected<TopologySpec> usual = read_topology(written(base));
    ASSERT_TRUE(usual.has_value()) << kind << "\n" << lines_of(usual.error());
    for (const Row& row : kOfFiles) {
      SCOPED_TRACE(row.key + " on " + kind);
      Json file = base;
      const bool bare = row.key == "off_rail" || row.key.starts_with("failed_");
      file[row.key] = bare ? row.value : Json{{"value", row.value}, {"source", "the test"}};
      const Expected<TopologySpec> spec = read_topology(written(file));
      ASSERT_EQ(spec.has_value(), row.effect[at] == 'x');
      if (!spec) {
        expect_refused(spec.error(), "/" + row.key);
      } else {
        EXPECT_NE(picture(*spec, gpus_of(kind)), picture(*usual, gpus_of(kind)));
      }
    }
  }
}

// What one fabric takes from its file another does not: a scenario that changes the kind leaves it.
TEST(FabricKeys, OfTheFileDoNotBindAnotherKind) {
  Json rails = file_of("rail-optimized");
  rails["off_rail"] = "nvlink";
  const Expected<Scenario> tree = scenario_on(written(rails), "fat-tree", {{"fabric", "fat-tree"}});
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(picture(tree->cluster.hardware, 128).find("refused"), std::string::npos);
  EXPECT_TRUE(parse_scenario(write_scenario(*tree)).has_value());

  const Expected<Scenario> drawn =
      scenario_on(written(file_of("discovered")), "fat-tree", {{"fabric", "fat-tree"}});
  ASSERT_TRUE(drawn.has_value());
  EXPECT_EQ(drawn->cluster.hardware.discovered, nullptr);
}

TEST(FabricKeys, AMachineWithoutANetworkGetsNone) {
  const Expected<Scenario> scenario =
      scenario_on(written(file_of("none")), "none", {{"fabric", "fat-tree"}});
  ASSERT_FALSE(scenario.has_value());
  EXPECT_EQ(lines_of(scenario.error()),
            "/cluster/fabric/fabric the topology's file describes no network between nodes\n");
}

TEST(FabricKeys, PodsAreToldOfBeforeTheyAreThinned) {
  Json clos = file_of("clos");
  clos.erase("gpus_per_pod");
  const Expected<Scenario> scenario =
      scenario_on(written(clos), "clos", {{"pod_oversubscription", 4}});
  ASSERT_FALSE(scenario.has_value());
  EXPECT_EQ(lines_of(scenario.error()),
            "/cluster/fabric/pod_oversubscription has no effect: without gpus_per_pod there is one "
            "pod\n");
}

}  // namespace
}  // namespace foretrain
