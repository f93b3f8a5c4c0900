#include "tests/support/command.h"

#include <array>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: `foretrain topology` prints the contract's fields exactly, builds what
/// its default says, and refuses what it does not know.
namespace foretrain {
namespace {

using nlohmann::json;

using test::Outcome;

Outcome run(const std::string& line) {
  return test::run_program("topology " + line + " 2>/dev/null");
}

json result(const std::string& line, int code = 0) {
  const Outcome outcome = run(line + " --json -");
  EXPECT_EQ(outcome.code, code) << line;
  return json::parse(outcome.out, nullptr, false);
}

// Two nodes of 8 H100: 16 GPUs, 2 switches, 16 NICs, 8 rail leaves, 2 spines. 8
// NICs of 50 GB/s cross the middle.
TEST(TopologyCommand, Fields) {
  const json topology = result("dgx-h100-ndr400 --gpus 16 --path 0 8");
  EXPECT_EQ(topology["name"], "dgx-h100-ndr400");
  EXPECT_EQ(topology["gpus"], 16);
  EXPECT_EQ(topology["nodes"], 2);
  EXPECT_EQ(topology["devices"], 16 + 2 + 16 + 8 + 2);
  EXPECT_EQ(topology["links"], 2 * (16 + 16 + 16 + 8 * 2));
  EXPECT_EQ(topology["bisection_bandwidth"], 400'000'000'000);
  ASSERT_EQ(topology["path"].size(), 4U);
  EXPECT_EQ(topology["path"][1]["from"], "n0.nic0");
  EXPECT_EQ(topology["path"][1]["to"], "leaf0.0");
  EXPECT_EQ(topology["path"][1]["link"], "n0.nic0>leaf0.0");
  EXPECT_EQ(topology["path"][1]["bandwidth"], 50'000'000'000);
  EXPECT_GT(topology["path"][1]["latency_s"].get<double>(), 0.0);
}

// Rule: --gpus defaults to the whole nodes that hold the highest rank named;
// rank 17 is in the third node of 8.
TEST(TopologyCommand, DefaultSize) {
  EXPECT_EQ(result("dgx-h100-ndr400 --path 17 3")["gpus"], 24);
  EXPECT_EQ(result("dgx-h100-ndr400 --path 0 7")["gpus"], 8);
  EXPECT_EQ(result("dgx-h100-ndr400 --gpus 11")["nodes"], 2) << "a partly used node is legal";
}

// Parts that are not there and ranks that are not, at once; what the line names is told by its
// options, what the file names by its key.
TEST(TopologyCommand, EveryFaultAtOnce) {
  const auto pointers = [](const std::string& line) {
    std::string all;
    const json refused = result(line, 2);
    for (const json& fault : refused["faults"]) {
      all += fault["pointer"].get<std::string>() + " ";
    }
    return all;
  };
  const std::string line = "dgx-h100-ndr400 --gpus 32 ";
  EXPECT_EQ(pointers(line + "--failed-links 'n0.nic0>leaf0.0,zz' --failed-nodes 77 --path 0 99"),
            "/failed-nodes/0 /failed-links/1 /path ");
  EXPECT_EQ(pointers(line + "--failed-nodes 1-2,x,3-1,-1"),
            "/failed-nodes/1 /failed-nodes/2 /failed-nodes/3 ");
  EXPECT_EQ(pointers(line + "--failed-nodes 0-999999999999"), "/failed-nodes/0 ");
  EXPECT_EQ(pointers(line + "--failed-links 'n0.nic1>leaf0.1' --path 1 9"), "/path ");
  EXPECT_EQ(result(line + "--failed-nodes 0-1,4 --path 0 8")["path"][1]["from"], "n2.nic0");
}

TEST(TopologyCommand, TextAndDot) {
  const Outcome text = run("h100-roce-clos --gpus 6144 --path 0 6143");
  EXPECT_EQ(text.code, 0);
  for (const char* part : {"6,144 GPUs", "bisection bandwidth", "core", "50.0 GB/s"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
  const Outcome dot = run("dgx-h100-ndr400 --dot");
  EXPECT_EQ(dot.code, 0);
  EXPECT_TRUE(dot.out.starts_with("digraph"));
}

TEST(TopologyCommand, Faults) {
  EXPECT_EQ(run("dgx-h100").code, 2);
  EXPECT_EQ(run("./no-such-file.json").code, 3);
  EXPECT_EQ(run("dgx-h100-ndr400 --gpus 0").code, 2);
  EXPECT_EQ(run("dgx-h100-ndr400 --path 1").code, 2);
  EXPECT_EQ(run("dgx-h100-ndr400 --gpus 9007199254740992").code, 2);
  const json beyond = result("dgx-h100-ndr400 --gpus 8 --path 0 8", 2);
  EXPECT_EQ(beyond["ok"], false);
  EXPECT_EQ(beyond["faults"][0]["pointer"], "/path");
  EXPECT_EQ(result("h100-roce-clos --gpus 24577", 2)["faults"][0]["pointer"], "/cluster/gpus");
}

}  // namespace
}  // namespace foretrain
