#include "tests/support/command.h"
#include "tests/support/fabric_text.h"
#include "tests/support/node_text.h"
#include "tests/support/own_folder.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: `foretrain topology FILE` tells what a cluster's own tools printed, with the contract's
/// fields and exit codes.
namespace foretrain {
namespace {

using nlohmann::json;
using test::Outcome;

std::string written(const std::string& name, const std::string& text) {
  const std::string path = test::own_folder() + "imports_" + name;
  std::ofstream(path) << text;
  return path;
}

Outcome run(const std::string& line) {
  return test::run_program("topology " + line + " 2>/dev/null");
}

json result(const std::string& line, int code = 0) {
  const Outcome outcome = run(line + " --json -");
  EXPECT_EQ(outcome.code, code) << line;
  return json::parse(outcome.out, nullptr, false);
}

std::string fabric_file() {
  const test::RailFabric shape{
      .groups = 2, .hosts = 4, .rails = 2, .spines = 3, .cables = 1, .aggregation = true};
  return written("fabric.out", shape.build().text());
}

// 2 groups of 4 hosts on 2 rails: 4 leaves and 3 spines; 16 adapters of hosts, 7 of switches; 12
// cables. Half the hosts are one group: 2 leaves with 3 cables up each.
TEST(TopologyImports, FieldsOfAFabric) {
  const json fabric = result(fabric_file());
  EXPECT_EQ(fabric["name"], "imports_fabric");
  EXPECT_EQ(fabric["gpus"], 0);
  EXPECT_EQ(fabric["nodes"], 8);
  EXPECT_EQ(fabric["hosts"], 8);
  EXPECT_EQ(fabric["switches"], 7);
  EXPECT_EQ(fabric["switches_by_level"], json({4, 3}));
  EXPECT_EQ(fabric["adapters"], 23);
  EXPECT_EQ(fabric["devices"], 30);
  EXPECT_EQ(fabric["links"], 2 * (23 + 12));
  EXPECT_EQ(fabric["bisection_bandwidth"], 6 * 50'000'000'000);
  EXPECT_EQ(fabric["path"], json::array());
  EXPECT_EQ(fabric["rails"], 2);
  EXPECT_EQ(fabric["odd"], json::array());
}

TEST(TopologyImports, TextAndDotOfAFabric) {
  const Outcome text = run(fabric_file());
  EXPECT_EQ(text.code, 0);
  for (const char* part : {"7 switches: 4 leaves, 3 spines",
                           "23 adapters: 16 ports of 8 hosts, 7 in switches",
                           "16 at 400 Gb/s",
                           "12 at 400 Gb/s",
                           "8 hosts have 2",
                           "mlx5_1",
                           "1.33 : 1",
                           "300 GB/s"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
  EXPECT_TRUE(run(fabric_file() + " --dot").out.starts_with("graph \"imports_fabric\""));
}

TEST(TopologyImports, FaultsOfAFabric) {
  const json options = result(fabric_file() + " --gpus 8 --path 0 1", 2);
  ASSERT_EQ(options["faults"].size(), 2U);
  EXPECT_EQ(options["faults"][0]["pointer"], "/gpus");
  EXPECT_EQ(options["faults"][1]["pointer"], "/path");
  const std::string text = test::RailFabric().build().text();
  const json cut = result(written("cut.out", text.substr(0, text.size() / 2)), 2);
  EXPECT_EQ(cut["ok"], false);
  EXPECT_NE(cut["faults"][0]["message"].get<std::string>().find("line "), std::string::npos);
  EXPECT_EQ(run(testing::TempDir() + "no-such.out").code, 3);
  EXPECT_EQ(run(written("other.txt", "neither JSON nor any of the others\n")).code, 2);
}

// 8 GPUs with 18 links of 25 GB/s to switches, each beside a NIC of 400 Gb/s; four of them reach
// the other four.
TEST(TopologyImports, FieldsOfANode) {
  const json node = result(written("node.xml", test::NcclText().text()));
  EXPECT_EQ(node["name"], "imports_node");
  EXPECT_EQ(node["gpus"], 8);
  EXPECT_EQ(node["nodes"], 1);
  EXPECT_EQ(node["devices"], 8 + 8 + 1);
  EXPECT_EQ(node["links"], 2 * (8 + 8));
  EXPECT_EQ(node["interconnect"], "nvswitch");
  EXPECT_EQ(node["nvlink_bandwidth"], 450'000'000'000);
  EXPECT_EQ(node["bisection_bandwidth"], 4 * 450'000'000'000);
  EXPECT_EQ(node["nics_in_use"], 8);
  EXPECT_EQ(node["nic_of_gpu"][5], "mlx5_5");
}

TEST(TopologyImports, TextAndDotOfANode) {
  const std::string mesh = written("mesh.txt", test::matrix(4, "NV4", 1).text());
  const Outcome text = run(mesh);
  EXPECT_EQ(text.code, 0);
  for (const char* part : {"NVLink from GPU to GPU, 12 links", "1 NIC, 1 nearest", "mlx5_4"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
  EXPECT_NE(run(mesh + " --dot").out.find("gpu0 -- gpu3 [label=\"NV4\"]"), std::string::npos);
  EXPECT_EQ(result(mesh)["links"], 4 * 3 + 4 * 2);
  EXPECT_EQ(result(mesh + " --path 0 1", 2)["faults"][0]["pointer"], "/path");
}

// The file that --write makes is a topology: two of its nodes are built with the node's own counts
// and rates, 450 GB/s from 18 links and NICs of 400 Gb/s.
TEST(TopologyImports, WritesANode) {
  const std::string node = written("node.xml", test::NcclText().text());
  const std::string out = test::own_folder() + "imports_written.json";
  EXPECT_EQ(run(node + " --write " + out + " --gpu h100-sxm").code, 0);
  const json built = result(out + " --gpus 16 --path 0 8");
  EXPECT_EQ(built["name"], "imports_written");
  EXPECT_EQ(built["nodes"], 2);
  EXPECT_EQ(built["bisection_bandwidth"], 8 * 50'000'000'000);
  EXPECT_EQ(result(out + " --path 0 1")["path"][0]["bandwidth"], 450'000'000'000);
  const std::string matrix = written("m8.txt", test::matrix(8, "NV12", 4).text());
  EXPECT_EQ(run(matrix + " --write " + out + " --gpu a100-80gb-sxm --gpus-per-node 4").code, 0);
  EXPECT_EQ(result(out + " --gpus 8 --path 0 1")["path"][0]["bandwidth"], 300'000'000'000);
  EXPECT_EQ(result(out + " --gpus 8")["nodes"], 2);
}

// A fabric of 4 hosts on 8 rails becomes a cluster with the cables that were listed. The two hosts
// of a half have 16 NICs and their 8 leaves 24 cables: the NICs bound what crosses the middle.
TEST(TopologyImports, WritesAFabric) {
  const test::RailFabric shape{.groups = 2, .hosts = 2, .rails = 8, .spines = 3, .cables = 1};
  const std::string fabric = written("rails.out", shape.build().text());
  const std::string out = test::own_folder() + "imports_rails.json";
  EXPECT_EQ(run(fabric + " --write " + out + " --gpu h100-sxm").code, 0);
  const json built = result(out + " --gpus 32 --path 0 31");
  EXPECT_EQ(built["nodes"], 4);
  EXPECT_EQ(built["bisection_bandwidth"], 16 * 50'000'000'000);
  EXPECT_EQ(built["bisection_bandwidth"], result(fabric)["bisection_bandwidth"]);
  EXPECT_EQ(built["devices"], 32 + 4 + 32 + 16 + 3);
  ASSERT_EQ(built["path"].size(), 6U) << "NIC, leaf, spine, leaf, NIC";
  EXPECT_EQ(built["path"][1]["to"], "MF0;leaf-0:MQM9701/U1");
  EXPECT_EQ(result(out + " --gpus 40", 2)["faults"][0]["pointer"], "/cluster/gpus");
}

TEST(TopologyImports, FaultsOfWriting) {
  const std::string node = written("node.xml", test::NcclText().text());
  const std::string out = " --write " + test::own_folder() + "imports_never.json";
  const json unnamed = result(node + out, 2);
  EXPECT_EQ(unnamed["faults"][0]["pointer"], "/gpu");
  EXPECT_NE(unnamed["faults"][0]["hint"].get<std::string>().find("h100-sxm"), std::string::npos);
  EXPECT_EQ(unnamed["faults"][0]["hint"].get<std::string>().find("a100"), std::string::npos);
  EXPECT_EQ(result(node + out + " --gpu h100", 2)["faults"][0]["pointer"], "/gpu");
  EXPECT_EQ(result("dgx-h100-ndr400" + out, 2)["faults"][0]["pointer"], "/write");
  EXPECT_EQ(run(node + " --gpu h100-sxm").code, 2) << "--gpu without --write";
  EXPECT_EQ(run(node + " --write " + node + " --gpu h100-sxm").code, 2) << "over its own input";
  EXPECT_FALSE(std::filesystem::exists(test::own_folder() + "imports_never.json"));
}

}  // namespace
}  // namespace foretrain
