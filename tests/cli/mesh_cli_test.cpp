#include "tests/support/command.h"

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: `foretrain mesh` prints the contract's fields exactly and refuses illegal foldings.
namespace foretrain {
namespace {

using nlohmann::json;

using test::Outcome;

Outcome run(const std::string& line) {
  return test::run_program("mesh " + line + " 2>/dev/null");
}

json result(const std::string& line, int code = 0) {
  const Outcome outcome = run(line + " --json -");
  EXPECT_EQ(outcome.code, code) << line;
  return json::parse(outcome.out, nullptr, false);
}

// The parallelism chapter's example: 16 ranks, rank 13 at PP 1, DP 1, CP 0, TP 1.
TEST(MeshCommand, Fields) {
  const json mesh = result("--tp 2 --cp 2 --dp 2 --pp 2");
  EXPECT_EQ(mesh["ranks"], 16);
  EXPECT_EQ(mesh["order"], "tp-cp-ep-dp-pp");
  EXPECT_EQ(mesh["groups"]["tp"][0], json({0, 1}));
  EXPECT_EQ(mesh["groups"]["cp"][1], json({1, 3}));
  EXPECT_EQ(mesh["groups"]["dp"][2], json({2, 6}));
  EXPECT_EQ(mesh["groups"]["pp"][3], json({3, 11}));
  EXPECT_EQ(mesh["groups"]["ep"].size(), 16U);
  EXPECT_EQ(mesh["inside_node"],
            json({{"tp", true}, {"cp", true}, {"dp", true}, {"pp", false}, {"ep", true}}));
  ASSERT_EQ(mesh["coordinates"].size(), 16U);
  EXPECT_EQ(mesh["coordinates"][13],
            json({{"rank", 13}, {"tp", 1}, {"cp", 0}, {"dp", 1}, {"pp", 1}}));
}

TEST(MeshCommand, NodeSizeDecidesWhatStaysInside) {
  EXPECT_FALSE(result("--tp 2 --dp 2 --gpus-per-node 2")["inside_node"]["dp"]);
  EXPECT_TRUE(result("--tp 2 --dp 2 --gpus-per-node 4")["inside_node"]["dp"]);
}

TEST(MeshCommand, Text) {
  const Outcome outcome = run("--tp 8 --pp 16 --dp 128 --order tp-cp-pp-dp");
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"16,384 ranks", "2,048 nodes", "inside a node", "across nodes"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
}

TEST(MeshCommand, Faults) {
  const json faults = result("--tp 2 --dp 2 --ep 3 --order tp-cp-ep-pp", 2);
  EXPECT_EQ(faults["ok"], false);
  std::vector<std::string> pointers;
  for (const json& fault : faults["faults"]) {
    pointers.push_back(fault["pointer"]);
  }
  EXPECT_EQ(pointers, (std::vector<std::string>{"/parallelism/order", "/parallelism/ep"}));
  EXPECT_EQ(run("--tp x").code, 2);
  EXPECT_EQ(run("--tp 0").code, 2);
  EXPECT_EQ(run("--tpp 2").code, 2);
  EXPECT_EQ(run("--dp 9007199254740993").code, 2);
}

}  // namespace
}  // namespace foretrain
