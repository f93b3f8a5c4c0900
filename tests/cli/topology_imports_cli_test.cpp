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

std::string sentences(const json& list) {
  std::string text;
  for (const json& sentence : list) {
    text += sentence.get<std::string>() + "\n";
  }
  return text;
}

// What is written is said, and what of it the import does not tell. A manager with one adapter and
// a host with one down are no nodes: the others are, by name.
TEST(TopologyImports, WritingAFabricSaysWhatItTookForGranted) {
  test::FabricText text = test::RailFabric{.groups = 1, .hosts = 6, .rails = 4}.build();
  const int leaf = text.add("Switch", "MF0;leaf-x:MQM9701/U1");
  text.hang("aa-manager mlx5_0", leaf);
  for (int adapter = 0; adapter < 3; ++adapter) {
    text.hang("node3b mlx5_" + std::to_string(adapter), leaf, adapter == 0 ? "4xHDR" : "4xNDR");
  }
  const std::string fabric = written("mixed.out", text.text());
  const std::string out = test::own_folder() + "imports_mixed.json";
  const json told = result(fabric + " --write " + out + " --gpu h100-sxm");
  EXPECT_EQ(told["written"], out);
  EXPECT_EQ(sentences(told["holds"]),
            "a fabric of 7 switches; its nodes are 6 hosts, n0 is node0, 6 with 4 adapters\n");
  EXPECT_EQ(sentences(told["assumed"]),
            "2 hosts with fewer adapters than the usual 4 left out: aa-manager, node3b\n"
            "8 GPUs a node, as the preset has; a host has 4 adapters (--gpus-per-node says "
            "otherwise)\n"
            "every other constant as in the preset dgx-h100-ndr400\n");
  const json built = result(out + " --gpus 16 --failed-nodes 1");
  EXPECT_EQ(built["hosts"],
            json({{{"node", "n0"}, {"host", "node0"}}, {{"node", "n2"}, {"host", "node2"}}}));
  EXPECT_EQ(built["hosts_left_out"], json({"aa-manager", "node3b"}));
  EXPECT_EQ(result(out + " --gpus 49", 2)["faults"][0]["message"],
            "49 GPUs take 7 nodes, but 6 of 6 are left");
  const Outcome page = run(out + " --gpus 16 --failed-nodes 1");
  EXPECT_NE(page.out.find("  hosts  n0=node0, n2=node2\n"), std::string::npos) << page.out;
  EXPECT_NE(page.out.find("aa-manager, node3b"), std::string::npos) << page.out;
  const Outcome said = run(fabric + " --write " + out + " --gpu h100-sxm --gpus-per-node 4");
  EXPECT_TRUE(said.out.starts_with(out + ": written\n  holds    a fabric of 7 switches"))
      << said.out;
  EXPECT_EQ(said.out.find("GPUs a node, as the preset has"), std::string::npos) << said.out;
}

// The topology has NVLink between all GPUs of a node or none, and one rate of NICs.
TEST(TopologyImports, WritingANodeSaysWhatItTookForGranted) {
  const std::string out = test::own_folder() + "imports_node.json";
  const auto assumed = [&out](const std::string& file, const std::string& gpu) {
    const json told = result(file + " --write " + out + " --gpu " + gpu);
    return sentences(told["assumed"]);
  };
  EXPECT_EQ(assumed(written("whole.xml", test::NcclText().text()), "h100-sxm"),
            "every other constant as in the preset dgx-h100-ndr400\n");

  std::string mixed = test::NcclText().text();
  mixed.replace(mixed.find("speed=\"400000\""), 14, "speed=\"200000\"");
  EXPECT_NE(assumed(written("mixed.xml", mixed), "h100-sxm")
                .find("25.0 GB/s from every NIC, the slowest of 2 rates\n"),
            std::string::npos);

  std::string slots = test::NcclText{.switches = 0}.text();
  for (std::size_t at = slots.find("    <gpu"); at != std::string::npos;
       at = slots.find("    <gpu")) {
    const std::size_t end = slots.find("</gpu>\n", at);
    slots.erase(at, end + 7 - at);
  }
  EXPECT_NE(assumed(written("slots.xml", slots), "h100-sxm")
                .find("NVSwitch inside a node: the file lists slots and tells no NVLinks\n"),
            std::string::npos);

  test::MatrixText pairs = test::matrix(4, "SYS", 1);
  pairs.cells[0][1] = pairs.cells[1][0] = pairs.cells[2][3] = pairs.cells[3][2] = "NV12";
  const std::string said = assumed(written("pairs.txt", pairs.text()), "a100-80gb-sxm");
  EXPECT_NE(said.find("PCIe alone inside a node, though some pairs of its GPUs have NVLink"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("NICs as fast as the preset's: their rate is not told\n"), std::string::npos)
      << said;
  EXPECT_NE(assumed(written("mesh.txt", test::matrix(4, "NV4", 0).text()), "a100-80gb-sxm")
                .find("as many NICs a node as the preset has: none is listed\n"),
            std::string::npos);
}

// Each file says what was expected of it and what it is.
TEST(TopologyImports, FilesOfOtherKindsAreNamed) {
  const std::string fabric = test::RailFabric().build().text();
  const auto fault = [](const std::string& name, const std::string& text) {
    const json refused = result(written(name, text), 2);
    EXPECT_EQ(refused["faults"].size(), 1U) << refused;
    EXPECT_NE(refused["faults"][0]["hint"].get<std::string>(), "");
    return refused["faults"][0]["message"].get<std::string>();
  };
  EXPECT_EQ(fault("empty.out", ""), "the file is empty");
  EXPECT_EQ(fault("blank.out", "\n \n"), "the file is empty");
  EXPECT_EQ(fault("wide.out", "\xff\xfe" + fabric), "the file is UTF-16");
  EXPECT_EQ(fault("root.xml", "<graphs version=\"1\"/>\n"),
            "the file is XML without a <system>; it begins \"<graphs version=\"1\"/>\"");
  EXPECT_EQ(fault("prose.txt", "neither JSON nor any of the others, and longer than that\n"),
            "the file is of no kind known; it begins \"neither JSON nor any of the others, and "
            "...\"");
  std::string nul = fabric;
  nul[nul.find("MQM9701")] = '\0';
  EXPECT_TRUE(fault("nul.out", nul).ends_with(": a byte of value 0, which no text has"));
  EXPECT_EQ(result(written("bom.out", "\xef\xbb\xbf" + fabric))["hosts"], 8);
  const std::string node = test::NcclText().text();
  EXPECT_EQ(result(written("bom.xml", "\xef\xbb\xbf" + node))["gpus"], 8);
  const Outcome other =
      test::run_program("collective all_reduce --bytes 1 --ranks 0-7 --topology " +
                        written("node.xml", node) + " --json - 2>/dev/null");
  EXPECT_EQ(json::parse(other.out)["faults"][0]["message"],
            "the file lists a node and is no topology, which tells more");
}

// NVLinks that a file leads back to their own GPU join nothing.
TEST(TopologyImports, NvlinksToThemselvesAreNone) {
  std::string text = test::NcclText{.gpus = 2, .links = 12, .switches = 1}.text();
  for (int gpu = 0; gpu < 2; ++gpu) {
    const std::string target = "target=\"" + test::NcclText::bus(40) + "\"";
    text.replace(text.find(target), target.size(), "target=\"" + test::NcclText::bus(gpu) + "\"");
    text.replace(text.find("0x068000"), 8, "0x030200");
  }
  const Outcome page = run(written("self.xml", text));
  EXPECT_NE(
      page.out.find("  no NVLink between GPUs: the file leads those of 2 back to themselves\n"),
      std::string::npos)
      << page.out;
  EXPECT_EQ(page.out.find("NVLink of a GPU"), std::string::npos) << page.out;
  EXPECT_EQ(page.out.find("bisection"), std::string::npos) << page.out;
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
