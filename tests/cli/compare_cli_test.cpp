#include "tests/support/command.h"

#include "sim/base/format.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: `foretrain compare` sets rows side by side, each what `run` says of it alone; what is
/// illegal is a row with its reason.
namespace foretrain {
namespace {

using nlohmann::json;
using test::Outcome;

std::string scratch(const std::string& name) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return testing::TempDir() + "foretrain_" + test->name() + "_" + name;
}

std::string contents(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

Outcome compared(const std::string& arguments) {
  const std::string errors = scratch("stderr");
  Outcome outcome = test::run_program("compare " + arguments + " 2>" + errors);
  outcome.err = contents(errors);
  return outcome;
}

json result(const std::string& arguments, int code = 0) {
  const Outcome outcome = compared(arguments + " --json -");
  EXPECT_EQ(outcome.code, code) << arguments << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

json run_result(const std::string& arguments) {
  return json::parse(
      test::run_program("run " + arguments + " --json - 2>/dev/null").out, nullptr, false);
}

/// What the run itself took is the one thing that two equal runs tell differently.
json without_run(json answer) {
  answer.erase("simulation");
  return answer;
}

std::vector<std::string> labels(const json& answer) {
  std::vector<std::string> all;
  for (const json& row : answer["rows"]) {
    all.push_back(row["label"]);
  }
  return all;
}

// Eight equal layers on four stages, free messages, eight micro-batches: a step is m + (p - 1) / v
// micro-batches, of which (p - 1) / v are bubble; between first and last action the first rank
// waits as long.
TEST(CompareCommand, RowsHoldTheClosedForms) {
  const json answer = result("tutorial-2x4 --schedules gpipe,1f1b,interleaved:2");
  const json& rows = answer["rows"];
  ASSERT_EQ(labels(answer), (std::vector<std::string>{"gpipe", "1f1b", "interleaved:2"}));
  EXPECT_EQ(rows[2]["schedule"], "interleaved");
  EXPECT_EQ(rows[2]["scenario"]["parallelism"]["vpp"], 2);
  const double idle[] = {3.0, 3.0, 1.5};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double step = 8 + idle[row];
    EXPECT_NEAR(rows[row]["step_time_s"].get<double>() / rows[1]["step_time_s"].get<double>(),
                step / 11,
                1e-9);
    EXPECT_NEAR(rows[row]["bubble_share"].get<double>(), idle[row] / step, 1e-9);
    EXPECT_NEAR(rows[row]["span_share"].get<double>(), idle[row] / step, 1e-9);
    EXPECT_EQ(rows[row]["exposed_comm_s"], 0.0);
    EXPECT_EQ(rows[row]["fastest"], row == 2);
  }
  EXPECT_EQ(answer["fastest"], "interleaved:2");
}

// Every rank of zb-h2 has work from its first action to its last; it starts and ends later than
// others. Stated costs, so that all passes are alike.
TEST(CompareCommand, SpanIsWhatABarrierDoesNotCost) {
  const std::string stated =
      R"( --set 'costs={"model":"stated","forward":"1 ms","backward":"2 ms","dgrad":"1 ms",)"
      R"("wgrad":"1 ms","p2p":"0 s","optimizer":"0 s"}')";
  const json rows = result("tutorial-2x4 --schedules zb-h1,zb-h2" + stated)["rows"];
  EXPECT_NEAR(rows[0]["span_share"].get<double>(), 3.0 / 27, 1e-9);
  EXPECT_EQ(rows[1]["span_share"], 0.0);
  EXPECT_NEAR(rows[1]["bubble_share"].get<double>(), 3.0 / 27, 1e-9);
  const json free =
      result("tutorial-2x4 --schedules zb-h1,zb-h2 --set schedule.barrier=false" + stated)["rows"];
  EXPECT_EQ(free[1]["bubble_share"], 0.0);
  EXPECT_NEAR(
      free[1]["step_time_s"].get<double>(), rows[1]["step_time_s"].get<double>() * 24 / 27, 1e-9);
}

TEST(CompareCommand, ARowIsWhatRunSaysOfIt) {
  const std::string job = "llama3-70b-64 --set training.global_batch_size=64";
  const json rows = result(job + " --schedules 1f1b,zb-v,interleaved:5")["rows"];
  const std::string sets[] = {"--set schedule=1f1b --set parallelism.vpp=1",
                              "--set schedule=zb-v --set parallelism.vpp=2",
                              "--set schedule=interleaved --set parallelism.vpp=5"};
  for (std::size_t at = 0; at < 3; ++at) {
    json row = without_run(rows[at]);
    for (const char* key : {"label",
                            "schedule",
                            "settings",
                            "ways",
                            "fastest",
                            "bubble_share",
                            "span_share",
                            "exposed_comm_s"}) {
      ASSERT_EQ(row.erase(key), 1U) << key;
    }
    json alone = without_run(run_result(job + " " + sets[at]));
    // Advice on what would fit is run's own.
    alone.erase("notes");
    row.erase("notes");
    EXPECT_EQ(row, alone) << sets[at];
  }
}

TEST(CompareCommand, WhatIsIllegalIsARowWithItsReason) {
  const std::string line = "tutorial-2x4 --schedules 1f1b,interleaved:3,nonsense,zb-v";
  const json rows = result(line)["rows"];
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_FALSE(rows[0].contains("refused"));
  EXPECT_EQ(rows[1]["label"], "interleaved:3");
  EXPECT_EQ(rows[1]["schedule"], "interleaved");
  EXPECT_EQ(rows[1]["faults"][0]["pointer"], "/parallelism");
  EXPECT_NE(rows[1]["refused"].get<std::string>().find("pp 4 x vpp 3"), std::string::npos);
  EXPECT_NE(rows[2]["refused"].get<std::string>().find("nonsense"), std::string::npos);
  EXPECT_FALSE(rows[3].contains("refused"));
  const Outcome page = compared(line);
  EXPECT_EQ(page.code, 0);
  EXPECT_NE(page.out.find("interleaved:3  refused: 8 layers do not divide"), std::string::npos)
      << page.out;
}

TEST(CompareCommand, ExitCodes) {
  EXPECT_EQ(compared("tutorial-2x4").code, 0);
  EXPECT_EQ(compared("tutorial-2x4 --schedules interleaved:3,1f1b").code, 0);
  EXPECT_EQ(compared("tutorial-2x4 --schedules interleaved:3,nonsense").code, 2);
  for (const char* unreadable : {"interleaved:x",
                                 "interleaved:0",
                                 "zb-v:2:2:2",
                                 ",",
                                 ":2",
                                 "interleaved:best:2",
                                 "1f1b,1f1b"}) {
    EXPECT_EQ(compared(std::string("tutorial-2x4 --schedules ") + unreadable).code, 2)
        << unreadable;
  }
  EXPECT_EQ(compared("llama3-8b-8 --set parallelism.sharding=none --schedules 1f1b").code, 1);
  EXPECT_EQ(compared("tutorial-2x4 /no/such/file.json").code, 3);
  EXPECT_EQ(compared("tutorial-2x4 --trace /no/such/folder/t.json").code, 3);
  EXPECT_EQ(compared("tutorial-2x4 --trace-ranks 0").code, 2);
  EXPECT_EQ(compared("tutorial-2x4 --trace t.speedscope.json").code, 2);
  EXPECT_EQ(compared("tutorial-2x4 --trace - --json -").code, 2);
}

// Where no row is legal, faults of the scenario are told as every command tells them.
TEST(CompareCommand, FaultsOfTheScenarioAreThoseOfCheck) {
  const std::string bad = "tutorial-2x4 --set training.global_batch_size=7 --set model.n_head=3";
  const json checked = json::parse(test::run_program("check " + bad + " --json - 2>/dev/null").out);
  ASSERT_FALSE(checked["faults"].empty());
  EXPECT_EQ(result(bad, 2)["faults"], checked["faults"]);
  EXPECT_EQ(result(bad + " --schedules 1f1b,gpipe", 2)["faults"], checked["faults"]);
}

TEST(CompareCommand, OtherKeysOfTheScheduleStay) {
  const std::string kept =
      "tutorial-2x4 --set schedule.overlap_semantics=sequential"
      " --set schedule.slices=2 --set schedule.name=seq1f1b";
  const json rows = result(kept + " --schedules dualpipe,seq1f1b,zb-h1")["rows"];
  EXPECT_EQ(rows[0]["scenario"]["schedule"]["overlap_semantics"], "sequential");
  EXPECT_EQ(rows[1]["scenario"]["schedule"]["slices"], 2);
  EXPECT_FALSE(rows[2]["scenario"]["schedule"].contains("slices")) << "it cuts no sequences";
}

TEST(CompareCommand, ListsOfTheUsersOwnStandBesideOthers) {
  const std::string csv = scratch("own.csv");
  const Outcome lists = test::run_program("schedule gpipe --pp 4 --micro-batches 8 --csv");
  write(csv, lists.out);
  const json rows = result("tutorial-2x4 --schedules gpipe," + csv)["rows"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["step_time_s"], rows[1]["step_time_s"]);
  // And the other way: the scenario's own lists are replaced.
  const json back = result("tutorial-2x4 --set 'schedule={\"csv\":\"" + csv +
                           "\"}' --schedules 1f1b," + csv)["rows"];
  EXPECT_EQ(back[0]["step_time_s"], rows[0]["step_time_s"]) << "as long, in less memory";
  EXPECT_LT(back[0]["memory"]["peak_bytes"], back[1]["memory"]["peak_bytes"]);
}

// Rank 0 wants the backward of micro-batch 0 before it sends 1, rank 1 waits for 1 first.
TEST(CompareCommand, ADeadlockIsARow) {
  const std::string csv = scratch("stuck.csv");
  write(csv, "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
  const std::string line =
      "tutorial-2x4 --set parallelism.pp=2 --set cluster.gpus=2"
      " --set training.global_batch_size=2 --schedules ";
  const json rows = result(line + csv + ",1f1b")["rows"];
  EXPECT_EQ(rows[0]["outcome"], "deadlock");
  EXPECT_EQ(rows[0]["step_time_s"], nullptr);
  EXPECT_EQ(rows[1]["fastest"], true);
  const Outcome alone = compared(line + csv);
  EXPECT_EQ(alone.code, 1);
  EXPECT_NE(alone.out.find("deadlock: rank "), std::string::npos) << alone.out;
}

TEST(CompareCommand, ScenariosHaveLabelsThatTellThemApart) {
  const std::string folder = testing::TempDir() + "foretrain_other/";
  std::filesystem::create_directories(folder);
  const std::string shipped =
      contents(std::string(FORETRAIN_SOURCE_DIR) + "/scenarios/tutorial-2x4.json");
  const std::string one = folder + "one.json";
  const std::string same = folder + "tutorial-2x4.json";
  write(one, shipped);
  write(same, shipped);
  EXPECT_EQ(labels(result("tutorial-2x4 " + one)),
            (std::vector<std::string>{"tutorial-2x4", "one"}));
  EXPECT_EQ(labels(result("tutorial-2x4 " + same)),
            (std::vector<std::string>{"tutorial-2x4", same}));
  EXPECT_EQ(labels(result("tutorial-2x4 tutorial-2x4")),
            (std::vector<std::string>{"tutorial-2x4 #1", "tutorial-2x4 #2"}));
  EXPECT_EQ(
      labels(result("tutorial-2x4 " + one + " --schedules 1f1b,zb-v")),
      (std::vector<std::string>{"tutorial-2x4 1f1b", "tutorial-2x4 zb-v", "one 1f1b", "one zb-v"}));
}

TEST(CompareCommand, ThreadsNeverChangeTheResult) {
  const std::string line = "tutorial-2x4 --schedules all";
  std::set<std::string> answers;
  std::set<std::string> pages;
  for (const char* threads : {"1", "2", "7"}) {
    json answer = result(line + " --threads " + threads);
    for (json& row : answer["rows"]) {
      row.erase("simulation");
    }
    answers.insert(answer.dump());
    pages.insert(compared(line + " --threads " + threads).out);
  }
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_EQ(pages.size(), 1U);
}

TEST(CompareCommand, ThePageStaysWithinAHundredColumns) {
  for (const char* line :
       {"tutorial-2x4 --schedules all",
        "llama3-8b-8 --schedules 1f1b,interleaved:3,nonsense,zb-v",
        "tutorial-2x4 llama3-8b-8 --schedules interleaved-overlap:2,looped-bfs:2"}) {
    std::istringstream page(compared(line).out);
    int lines = 0;
    for (std::string text; std::getline(page, text); ++lines) {
      EXPECT_LE(display_width(text), 100) << text;
    }
    EXPECT_GT(lines, 4) << line;
  }
}

// The command on the last line runs the winner alone.
TEST(CompareCommand, NextRunsTheFastest) {
  const Outcome page = compared("tutorial-2x4 --schedules all");
  const std::size_t at = page.out.find("next    foretrain run ");
  ASSERT_NE(at, std::string::npos) << page.out;
  std::string command = page.out.substr(at + std::string("next    foretrain ").size());
  std::replace(command.begin(), command.end(), '\n', ' ');
  const json alone = json::parse(test::run_program(command + " --json - 2>/dev/null").out);
  const json rows = result("tutorial-2x4 --schedules all")["rows"];
  EXPECT_EQ(alone["step_time_s"], rows[0]["step_time_s"]) << "ranked: the fastest stands first";
}

/// Slices and arrows of a process, without its number and the arrows'.
std::vector<std::string> events_of(const json& trace, std::int64_t pid) {
  std::vector<std::string> events;
  for (json event : trace["traceEvents"]) {
    if (event["pid"] == pid && event["ph"] != "M") {
      event.erase("pid");
      event.erase("id");
      events.push_back(event.dump());
    }
  }
  return events;
}

// 4 ranks: the next power of ten is 10.
TEST(CompareCommand, OneTraceHoldsEveryRunAsItsOwnTraceDoes) {
  const std::string path = scratch("t.json");
  const std::string job = "tutorial-2x4 --set costs.communication=links";
  const Outcome outcome = compared(job + " --schedules 1f1b,interleaved:3,zb-v --trace " + path);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("trace: 8 of 8 ranks"), std::string::npos) << outcome.err;
  const json merged = json::parse(contents(path));
  std::map<std::int64_t, std::string> names;
  std::map<std::int64_t, std::int64_t> order;
  std::map<std::int64_t, std::vector<std::string>> arrows;
  for (const json& event : merged["traceEvents"]) {
    if (event["name"] == "process_name") {
      EXPECT_TRUE(names.emplace(event["pid"], event["args"]["name"]).second);
    } else if (event["name"] == "process_sort_index") {
      order[event["pid"]] = event["args"]["sort_index"];
    } else if (event["ph"] == "s" || event["ph"] == "f") {
      arrows[event["id"]].push_back(event["ph"]);
    }
  }
  const std::string schedules[] = {"1f1b", "zb-v"};
  ASSERT_EQ(names.size(), 8U);
  for (const auto& [pid, name] : names) {
    const std::string rank = std::to_string(pid % 10);
    EXPECT_EQ(name, schedules[pid / 10] + " · rank " + rank + " (pp " + rank + ")");
    EXPECT_EQ(order[pid], pid);
  }
  EXPECT_FALSE(arrows.empty());
  for (const auto& [id, ends] : arrows) {
    EXPECT_EQ(ends.size(), 2U) << "arrow " << id << " is shared by two runs";
  }
  for (int part = 0; part < 2; ++part) {
    const json own =
        json::parse(test::run_program("run " + job + " --set schedule=" + schedules[part] +
                                      " --trace - 2>/dev/null")
                        .out);
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(events_of(merged, part * 10 + rank), events_of(own, rank)) << part << rank;
    }
  }
}

TEST(CompareCommand, TraceRanksAreThoseNamed) {
  const json trace =
      json::parse(compared("tutorial-2x4 --schedules 1f1b,gpipe --trace-ranks 1,3 --trace -").out);
  std::set<std::int64_t> pids;
  for (const json& event : trace["traceEvents"]) {
    pids.insert(event["pid"].get<std::int64_t>());
  }
  EXPECT_EQ(pids, (std::set<std::int64_t>{1, 3, 11, 13}));
}

}  // namespace
}  // namespace foretrain
