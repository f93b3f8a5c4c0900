#include "tests/support/fabric_text.h"
#include "tests/support/node_text.h"
#include "tests/support/own_folder.h"

#include "foretrain/scenario.h"

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: a topology file takes its node and its fabric from what a cluster's own tools printed, and
/// what it states itself stands above that.
namespace foretrain {
namespace {

using Json = nlohmann::ordered_json;

std::string written(const std::string& name, const std::string& text) {
  std::ofstream(test::own_folder() + "hardware_" + name) << text;
  return "hardware_" + name;
}

/// The file of DGX H100, without what a node tells.
Json without_node(const std::string& node_file) {
  std::ifstream file(FORETRAIN_SOURCE_DIR "/topologies/dgx-h100-ndr400.json");
  Json topology = Json::parse(file);
  for (const char* key : {"gpus_per_node",
                          "nics_per_node",
                          "node_interconnect",
                          "nvlink_bandwidth",
                          "nic_bandwidth"}) {
    topology.erase(key);
  }
  topology["node_file"] = node_file;
  return topology;
}

Expected<TopologySpec> read(const Json& topology) {
  return read_topology(test::own_folder() + written("topology.json", topology.dump()));
}

std::string faults_of(const Json& topology) {
  const Expected<TopologySpec> spec = read(topology);
  std::string all;
  for (const Diagnostic& fault : spec ? std::vector<Diagnostic>{} : spec.error().list) {
    all += fault.pointer + " " + fault.message + "\n";
  }
  return all;
}

TEST(ImportedHardware, ANodeOfNccl) {
  test::NcclText node{.gpus = 4, .links = 4, .switches = 2, .megabits = 200'000};
  const Expected<TopologySpec> spec = read(without_node(written("node.xml", node.text())));
  ASSERT_TRUE(spec.has_value()) << spec.error().list.front().message;
  EXPECT_EQ(spec->gpus_per_node, 4);
  EXPECT_EQ(spec->nics_per_node, 4);
  EXPECT_EQ(spec->node_interconnect, "nvswitch");
  EXPECT_EQ(spec->nvlink_bandwidth.bytes_per_second, 2 * 4 * 25'000'000'000);
  EXPECT_EQ(spec->nic_bandwidth.bytes_per_second, 25'000'000'000);
}

// The matrix tells no rate of a NIC; the rate of a link follows from the GPU that the file names.
TEST(ImportedHardware, AMatrixOfNvidiaSmi) {
  Json topology = without_node(written("node.txt", test::matrix(8, "NV18", 4).text()));
  EXPECT_NE(faults_of(topology).find("/nic_bandwidth"), std::string::npos);
  topology["nic_bandwidth"] = {{"value", "400 Gb/s"}, {"source", "the test"}};
  const Expected<TopologySpec> spec = read(topology);
  ASSERT_TRUE(spec.has_value()) << spec.error().list.front().message;
  EXPECT_EQ(spec->nics_per_node, 4);
  EXPECT_EQ(spec->nvlink_bandwidth.bytes_per_second, 450'000'000'000);
}

TEST(ImportedHardware, WhatTheFileStatesStandsAbove) {
  Json topology = without_node(written("node.xml", test::NcclText().text()));
  topology["gpus_per_node"] = {{"value", 2}, {"source", "the test"}};
  topology["nvlink_bandwidth"] = {{"value", "1 GB/s"}, {"source", "the test"}};
  const Expected<TopologySpec> spec = read(topology);
  ASSERT_TRUE(spec.has_value()) << spec.error().list.front().message;
  EXPECT_EQ(spec->gpus_per_node, 2);
  EXPECT_EQ(spec->nvlink_bandwidth.bytes_per_second, 1'000'000'000);
  EXPECT_EQ(spec->nics_per_node, 8);
}

// A node without NVLink states none of it; any other states all.
TEST(ImportedHardware, OnlyPcieNeedsNoNvlink) {
  Json topology = without_node(written("nccl.xml", test::NcclText().text()));
  topology.erase("nvlink_latency");
  EXPECT_EQ(faults_of(topology).substr(0, 16), "/nvlink_latency ");
  topology["node_interconnect"] = "pcie";
  EXPECT_EQ(faults_of(topology), "");
  topology["node_interconnect"] = "nvswitch";
  topology["nvlink_latency"] = {{"value", "1 us"}, {"source", "the test"}};
  EXPECT_EQ(faults_of(topology), "");
}

TEST(ImportedHardware, FaultsOfANode) {
  Json topology = without_node(written("old.xml", test::NcclText{.sm = 80}.text()));
  EXPECT_NE(faults_of(topology).find("/node_file its GPUs have compute capability 80"),
            std::string::npos);
  topology["node_file"] = written("fabric.out", test::RailFabric().build().text());
  EXPECT_NE(faults_of(topology).find("/node_file describes no node"), std::string::npos);
  topology["node_file"] = written("cut.xml", test::NcclText().text().substr(0, 400));
  EXPECT_NE(faults_of(topology).find("/node_file hardware_cut.xml: line "), std::string::npos);
}

TEST(ImportedHardware, AFabric) {
  Json topology = without_node(written("node.xml", test::NcclText().text()));
  const test::RailFabric shape{.groups = 2, .hosts = 3, .rails = 8, .spines = 2};
  topology["fabric_file"] = written("fabric.out", shape.build().text());
  EXPECT_NE(faults_of(topology).find("/fabric_file the fabric is drawn by rule"),
            std::string::npos);
  topology["fabric"] = "discovered";
  topology.erase("nodes_per_leaf_group");
  topology.erase("oversubscription");
  const Expected<TopologySpec> spec = read(topology);
  ASSERT_TRUE(spec.has_value()) << spec.error().list.front().message;
  EXPECT_EQ(spec->fabric, FabricKind::kDiscovered);
  ASSERT_NE(spec->discovered, nullptr);
  EXPECT_EQ(spec->discovered->hosts.size(), 6U);
  EXPECT_EQ(spec->nics_per_node, 8);
  topology.erase("fabric_file");
  EXPECT_NE(faults_of(topology).find("/fabric_file"), std::string::npos);
}

}  // namespace
}  // namespace foretrain
