#include "tests/support/command.h"
#include "tests/support/own_folder.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: `foretrain flows` shares links max-min fairly after each path's latency, prints the
/// contract's fields, and names every fault of its file at once.
namespace foretrain {
namespace {

using nlohmann::json;
using test::Outcome;

std::string file_with(const std::string& text) {
  const std::string path = test::own_folder() + "flows.json";
  std::ofstream(path) << text;
  return path;
}

Outcome run(const std::string& text, const std::string& options) {
  return test::run_program("flows " + file_with(text) + " " + options + " 2>/dev/null");
}

json result(const std::vector<json>& flows, int code = 0, const std::string& more = "") {
  const Outcome outcome =
      run(json({{"flows", flows}}).dump(), "--topology dgx-h100-ndr400 --json - " + more);
  EXPECT_EQ(outcome.code, code) << outcome.out;
  return json::parse(outcome.out, nullptr, false);
}

json flow(const std::string& id, int source, int destination, const json& bytes) {
  return {{"id", id}, {"source", source}, {"destination", destination}, {"bytes", bytes}};
}

// 50 GB over a NIC of 50 GB/s: one second after the latency of the path.
TEST(FlowsCommand, OneFlowRunsAtTheLineRate) {
  const json out = result({flow("a", 0, 8, "50 GB")});
  ASSERT_EQ(out["flows"].size(), 1U);
  const json& one = out["flows"][0];
  EXPECT_EQ(one["id"], "a");
  EXPECT_GT(one["latency_s"].get<double>(), 0.0);
  EXPECT_NEAR(one["finish_s"].get<double>(), 1.0 + one["latency_s"].get<double>(), 2e-12);
  EXPECT_EQ(one["path"].size(), 4U);
  ASSERT_EQ(out["links"].size(), 4U) << "only links that are used";
  for (const json& link : out["links"]) {
    EXPECT_GE(link["bandwidth"].get<std::int64_t>(), 50'000'000'000);
  }
}

// a and b share the NIC of gpu 0 for 2 x 25 GB at 25 GB/s each; then b has 25 GB left at 50 GB/s.
TEST(FlowsCommand, TwoFlowsShareANicAndTheLongerSpeedsUp) {
  const json out = result({flow("a", 0, 8, "25 GB"), flow("b", 0, 8, "50 GB")});
  const double latency = out["flows"][0]["latency_s"].get<double>();
  EXPECT_NEAR(out["flows"][0]["finish_s"].get<double>(), 1.0 + latency, 4e-12);
  EXPECT_NEAR(out["flows"][1]["finish_s"].get<double>(), 1.5 + latency, 4e-12);
}

// b starts when half of a is over: 25 GB alone, 25 GB shared, and b's other half alone.
TEST(FlowsCommand, AStartIsDelayedAndThenShares) {
  json late = flow("b", 0, 8, "50 GB");
  late["start"] = "500 ms";
  const json out = result({flow("a", 0, 8, "50 GB"), late});
  const double latency = out["flows"][0]["latency_s"].get<double>();
  EXPECT_NEAR(out["flows"][0]["finish_s"].get<double>(), 1.5 + latency, 4e-12);
  EXPECT_NEAR(out["flows"][1]["finish_s"].get<double>(), 2.0 + latency, 4e-12);
}

TEST(FlowsCommand, SizesAreBareOrWithAUnitAndMayBeNothing) {
  const json out = result({flow("a", 0, 8, 1024), flow("b", 1, 9, "1 KiB"), flow("c", 2, 10, 0)});
  EXPECT_EQ(out["flows"][0]["finish_s"], out["flows"][1]["finish_s"]);
  EXPECT_EQ(out["flows"][2]["finish_s"], out["flows"][2]["latency_s"]);
}

// Flows on links of their own end as if they were alone.
TEST(FlowsCommand, FlowsThatShareNothingDoNotSlowEachOther) {
  const json alone = result({flow("a", 0, 8, "1 GB")});
  const json both = result({flow("a", 0, 8, "1 GB"), flow("b", 1, 9, "1 GB")});
  EXPECT_EQ(alone["flows"][0]["finish_s"], both["flows"][0]["finish_s"]);
}

TEST(FlowsCommand, TextNamesFlowsAndBusiestLinks) {
  const json list = {{"flows", json::array({flow("a", 0, 8, "50 GB")})}};
  const Outcome text = run(list.dump(), "--topology dgx-h100-ndr400");
  EXPECT_EQ(text.code, 0);
  for (const char* part : {"1 flow,", "gpu8", "50.0 GB/s", "busiest links", "n0.nic0"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
}

TEST(FlowsCommand, EveryFaultAtOnce) {
  json odd = flow("a", 3, 3, "5 parsecs");
  odd["strat"] = "1 us";
  const json faults = result({flow("a", 0, 8, 1), odd, {{"id", "c"}}}, 2)["faults"];
  std::string pointers;
  for (const json& fault : faults) {
    pointers += fault["pointer"].get<std::string>() + " ";
  }
  EXPECT_EQ(pointers,
            "/flows/1/id /flows/1/destination /flows/1/bytes /flows/1/strat "
            "/flows/2/source /flows/2/destination /flows/2/bytes ");
  EXPECT_NE(faults[3]["hint"].get<std::string>().find("start"), std::string::npos);
}

// Leaf 0 of two nodes reaches leaf 1 over two spines, a flow each by their destinations' ports. One
// cable cut off, they share the other: 50 GB at 25 GB/s.
TEST(FlowsCommand, FailedLinksAreGoneRound) {
  const std::vector<json> two = {flow("a", 0, 9, "50 GB"), flow("b", 8, 1, "50 GB")};
  const json whole = result(two);
  const json left = result(two, 0, "--failed-links 'spine0>leaf0.0'");
  for (std::size_t at = 0; at < 2; ++at) {
    const double latency = whole["flows"][at]["latency_s"];
    EXPECT_EQ(left["flows"][at]["latency_s"], latency);
    EXPECT_NEAR(whole["flows"][at]["finish_s"].get<double>(), 1.0 + latency, 4e-12);
    EXPECT_NEAR(left["flows"][at]["finish_s"].get<double>(), 2.0 + latency, 4e-12);
    EXPECT_EQ(left["flows"][at]["path"][2], "leaf0.0>spine1");
  }
}

TEST(FlowsCommand, FaultsOfTheClusterStandBesideThoseOfTheList) {
  const json faults = result(
      {flow("a", 0, 99, 1)}, 2, "--gpus 16 --failed-links 'x,leaf0.0>spine0' --failed-nodes 0-y");
  std::string pointers;
  for (const json& fault : faults["faults"]) {
    pointers += fault["pointer"].get<std::string>() + " ";
  }
  EXPECT_EQ(pointers, "/failed-nodes/0 /failed-links/0 /flows/0/destination ");
}

// Columns stand under one another whatever a flow is called.
TEST(FlowsCommand, LongNamesKeepTheColumns) {
  const std::string wide = "a name of quite a few more than sixteen columns";
  const Outcome page = run(json({{"flows", {flow(wide, 0, 8, 1), flow("b", 1, 9, 1)}}}).dump(),
                           "--topology dgx-h100-ndr400");
  std::istringstream lines(page.out);
  std::set<std::size_t> ends;
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  flow") || line.starts_with("  a name") || line.starts_with("  b ")) {
      ends.insert(line.size());
      ++rows;
    }
  }
  EXPECT_EQ(rows, 3) << page.out;
  EXPECT_EQ(ends.size(), 1U) << page.out;
  EXPECT_NE(page.out.find("  " + wide.substr(0, 40) + "...  "), std::string::npos) << page.out;
}

TEST(FlowsCommand, FlowsThatFailedLinksCutAreRefused) {
  const json faults =
      result({flow("a", 0, 8, 1), flow("b", 0, 9, 1), flow("c", 4, 0, 1)},
             2,
             "--failed-links 'leaf0.0>spine0' --failed-links 'leaf0.0>spine1'")["faults"];
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0]["pointer"], "/flows/1");
  EXPECT_EQ(faults[0]["message"], "rank 9 cannot be reached from rank 0");
  EXPECT_EQ(faults[0]["hint"],
            "failed links (leaf0.0>spine0, leaf0.0>spine1) take every way between them");
  EXPECT_EQ(result({flow("a", 0, 8, 1)}, 2, "--failed-links x")["faults"][0]["pointer"],
            "/failed-links/0");
}

TEST(FlowsCommand, NoRankSitsOnAFailedNode) {
  const json out = result({flow("a", 8, 0, 1)}, 0, "--failed-nodes 1");
  EXPECT_EQ(out["flows"][0]["path"][1], "n2.nic0>leaf0.0");
}

TEST(FlowsCommand, RanksThatAreNotThereAndTimesThatCannotBeCounted) {
  const json beyond = result({flow("a", 0, 8, 1)}, 2, "--gpus 8")["faults"];
  ASSERT_EQ(beyond.size(), 1U);
  EXPECT_EQ(beyond[0]["pointer"], "/flows/0/destination");
  std::vector<json> many;
  for (int at = 0; at < 40; ++at) {
    many.push_back(flow(std::to_string(at), 0, 8, 9007199254740992));
  }
  EXPECT_EQ(result(many, 2)["faults"][0]["pointer"], "/flows");
}

// 32 flows fill a leaf's uplinks: destinations spread over the 32 spines, a hash puts some on the
// same one, and one route for all makes them share.
TEST(FlowsCommand, RoutingChoosesAmongEqualRoutes) {
  std::vector<json> flows;
  for (int node = 0; node < 32; ++node) {
    flows.push_back(flow(std::to_string(node), node * 8, 512 + node * 8, "50 GB"));
  }
  const auto last = [&flows](const std::string& routing) {
    double finish = 0;
    const json out = result(flows, 0, "--gpus 1024 --routing " + routing);
    for (const json& one : out["flows"]) {
      finish = std::max(finish, one["finish_s"].get<double>());
    }
    return finish;
  };
  EXPECT_NEAR(last("destination"), 1.0, 1e-4);
  EXPECT_NEAR(last("single"), 32.0, 1e-4);
  const double hashed = last("hashed");
  EXPECT_GT(hashed, 1.5);
  EXPECT_LT(hashed, 16.0);
  EXPECT_EQ(run("{}", "--topology dgx-h100-ndr400 --routing shortest").code, 2);
}

TEST(FlowsCommand, BadFiles) {
  const std::string topology = "--topology dgx-h100-ndr400 --json -";
  EXPECT_EQ(run("{}", topology).code, 2);
  EXPECT_EQ(run("[]", topology).code, 2);
  EXPECT_EQ(run("{\"flows\": []}", topology).code, 2);
  EXPECT_EQ(run("{\"flows\": [1, null]}", topology).code, 2);
  EXPECT_EQ(run("{\"flows\": ", topology).code, 2);
  EXPECT_EQ(test::run_program("flows ./no-such.json " + topology + " 2>/dev/null").code, 3);
  EXPECT_EQ(run("{\"flows\": []}", "--topology dgx-h10").code, 2);
}

}  // namespace
}  // namespace foretrain
