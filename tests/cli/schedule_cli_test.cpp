#include "tests/cli/schedule_command.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

/// Rule: `foretrain schedule` prints the contract's fields exactly, in the input's unit, and
/// refuses by name what it cannot honour.
namespace foretrain {
namespace {

using nlohmann::json;
using test::Outcome;
using test::read_file;
using test::refused;
using test::result;
using test::run;
using test::temporary;

// The published row 1f1b, p = 4, m = 8, tF = 1, tB = 2, and its list from the definition.
TEST(ScheduleCommand, FieldsOfTheContract) {
  const json value = result("1f1b --pp 4 --micro-batches 8");
  EXPECT_EQ(value["name"], "1f1b");
  EXPECT_EQ(value["pp"], 4);
  EXPECT_EQ(value["micro_batches"], 8);
  EXPECT_EQ(value["vpp"], 1);
  EXPECT_EQ(value["makespan"], 33);
  EXPECT_EQ(value["bubble"], json({9, 9, 9, 9}));
  EXPECT_EQ(value["span_bubble"], json({9, 6, 3, 0}));
  EXPECT_EQ(value["peak_in_flight"], json({4, 3, 2, 1}));
  EXPECT_EQ(value["messages"], 48);
  EXPECT_EQ(value["actions"][3][1], "3B0");
  EXPECT_EQ(value["actions"].size(), 4U);
  EXPECT_EQ(value["actions"][0].size(), 16U);
}

// Decimal costs stay exact: (m + p - 1)(0.1 + 0.2) = 3.3 is not a sum of rounded doubles.
TEST(ScheduleCommand, UnitlessCostsAreExact) {
  const json value = result("gpipe --pp 4 --micro-batches 8 --forward 0.1 --backward 0.2");
  EXPECT_EQ(value["makespan"].dump(), "3.3");
  EXPECT_EQ(value["bubble"][0].dump(), "0.9");
  EXPECT_EQ(value["unit"], "");
  const std::string text = run("gpipe --pp 4 --micro-batches 8 --forward .1 --backward 2e-1").out;
  EXPECT_NE(text.find("makespan     3.3\n"), std::string::npos) << text;
  EXPECT_EQ(result("gpipe --pp 1 --micro-batches 1 --forward 1e3 --backward 1.50")["makespan"],
            1001.5);
}

// Costs with units print in the first unit typed, and as seconds in JSON: 11 x 9.9 us.
TEST(ScheduleCommand, CostsWithUnits) {
  const std::string costs = " --forward '3.3 us' --backward 6600ns --p2p 0";
  EXPECT_EQ(result("1f1b --pp 4 --micro-batches 8" + costs)["makespan"].dump(), "0.0001089");
  EXPECT_EQ(result("1f1b --pp 4 --micro-batches 8" + costs)["unit"], "s");
  const std::string text = run("1f1b --pp 4 --micro-batches 8" + costs).out;
  EXPECT_NE(text.find("makespan     108.9 us\n"), std::string::npos) << text;
}

// A backward is dgrad + wgrad; p2p shows in 1f1b as in the published row (49 with c = 1).
TEST(ScheduleCommand, BackwardOfTwoHalvesAndLatency) {
  EXPECT_EQ(result("1f1b --pp 4 --micro-batches 8 --dgrad 1 --wgrad 1 --p2p 1")["makespan"], 49);
  const json value = result("1f1b --pp 8 --micro-batches 20 --backward 2 --wgrad 1 --overlapped 3");
  EXPECT_EQ(value["bubble"][0], 21);
  EXPECT_EQ(value["costs"]["unused"], json({"wgrad", "overlapped"}));
}

TEST(ScheduleCommand, InterleavedGroups) {
  EXPECT_EQ(result("interleaved --pp 4 --micro-batches 8 --vpp 2")["makespan"], 57);
  EXPECT_EQ(result("interleaved --pp 4 --micro-batches 9 --vpp 2 --group 5")["makespan"], 63);
  EXPECT_EQ(refused("interleaved --pp 4 --micro-batches 9 --vpp 2"),
            std::vector<std::string>{"/schedule"});
}

TEST(ScheduleCommand, RefusesByName) {
  using Pointers = std::vector<std::string>;
  const std::string size = " --pp 4 --micro-batches 8";
  EXPECT_EQ(refused("1f1b" + size + " --vpp 2"), Pointers{"/schedule"});
  EXPECT_EQ(refused("1f1b" + size + " --slices 2"), Pointers{"/schedule"});
  EXPECT_EQ(refused("1f1b" + size + " --overlap-semantics both"), Pointers{"/overlap_semantics"});
  EXPECT_EQ(refused("1f1b" + size + " --dgrad 1"), Pointers{"/wgrad"});
  EXPECT_EQ(refused("1f1b" + size + " --forward '1 us'"), Pointers{"/backward"});
  EXPECT_EQ(refused("1f1b" + size + " --forward '1 us' --backward 2"), Pointers{"/backward"});
  EXPECT_EQ(refused("1f1b" + size + " --forward 1x --p2p=-1"), (Pointers{"/forward", "/p2p"}));
  EXPECT_EQ(refused("1f1b" + size + " --forward 1234567890123456789"), Pointers{"/forward"});
  EXPECT_EQ(refused("1f1b" + size + " --forward 999999999999999999"), Pointers{"/schedule"});
  EXPECT_EQ(refused("1f1b" + size + " --forward 999999999999 --p2p 1e-12"), Pointers{"/forward"});
  EXPECT_EQ(refused("1f1b --pp 0 --micro-batches 99999999999"),
            (Pointers{"/pp", "/micro_batches"}));
  EXPECT_EQ(refused("gpipe"), (Pointers{"/pp", "/micro_batches"}));
}

// Eight million actions and more are no JSON document; the lists may be much longer.
TEST(ScheduleCommand, ListsTooLongForJson) {
  EXPECT_EQ(refused("gpipe --pp 1 --micro-batches 4194305"), std::vector<std::string>{"/json"});
  EXPECT_EQ(refused("gpipe --pp 4 --micro-batches 99999999"),
            std::vector<std::string>{"/schedule"});
}

// The contract's examples, rank 0.
TEST(ScheduleCommand, TextOfActions) {
  const std::string csv = run("dualpipe --pp 4 --micro-batches 8 --csv").out;
  EXPECT_EQ(csv.substr(0, csv.find('\n')),
            "0F0@0,0F1@0,0F2@0,3F4@1,3I4@1,3W4@1,3F5@1,(0F3@0;3B5@1)OVERLAP_F_B,"
            "(3F6@1;0B0@0)OVERLAP_F_B,3B6@1,(3F7@1;0B1@0)OVERLAP_F_B,3B7@1,0I2@0,0W2@0,0I3@0,"
            "0W3@0");
  const json value = result("dualpipe --pp 4 --micro-batches 8");
  EXPECT_EQ(value["actions"][0][7], "(0F3@0;3B5@1)OVERLAP_F_B");
  EXPECT_EQ(value["actions"][0].size(), 16U);
  EXPECT_EQ(value["starts"][0].size(), 16U);
  EXPECT_EQ(value["model_copies"], 2);
  // Nothing but lists: the file reads back.
  const std::string path = temporary("dualpipe.csv");
  std::ofstream(path) << csv;
  EXPECT_EQ(result(path)["makespan"], value["makespan"]);
  EXPECT_EQ(run(path + " --csv").out, csv);
  std::filesystem::remove(path);
}

// What was taken for granted in reading is in every output.
TEST(ScheduleCommand, NotesOfReading) {
  const std::string path = temporary("old.csv");
  std::ofstream(path) << "0F0,0F1,0B0,0W0,0B1,0W1\n";
  EXPECT_NE(run(path).out.find("note         the lists have W but no I: 2 B"), std::string::npos);
  EXPECT_NE(result(path)["note"].get<std::string>().find("read as I"), std::string::npos);
  EXPECT_EQ(result(path)["actions"][0][2], "0I0");
  std::filesystem::remove(path);
}

// A file without an end is not read to its end.
TEST(ScheduleCommand, EndlessFiles) {
  EXPECT_EQ(refused("/dev/zero"), std::vector<std::string>{"/schedule"});
}

TEST(ScheduleCommand, UnknownNameGetsASuggestion) {
  const Outcome outcome = run("interleave --pp 2 --micro-batches 4", "2>&1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.out.find("did you mean \"interleaved\"?"), std::string::npos) << outcome.out;
}

TEST(ScheduleCommand, CsvReadsBack) {
  const std::string path = temporary("list.csv");
  const Outcome written = run("interleaved --pp 2 --micro-batches 4 --vpp 2 --csv");
  EXPECT_EQ(written.out.substr(0, 20), "0F0,0F1,2F0,2F1,0F2,");
  std::ofstream(path) << written.out;
  const json again = result(path);
  const json first = result("interleaved --pp 2 --micro-batches 4 --vpp 2");
  EXPECT_EQ(again["actions"], first["actions"]);
  EXPECT_EQ(again["starts"], first["starts"]);
  EXPECT_EQ(refused(path + " --pp 3"), std::vector<std::string>{"/pp"});
  std::filesystem::remove(path);
  EXPECT_EQ(run(path).code, 3);
}

// An empty file is read and found wanting; a folder cannot be read at all.
TEST(ScheduleCommand, EmptyListsAreBadInput) {
  const std::string path = temporary("empty.csv");
  std::ofstream(path).flush();
  EXPECT_EQ(refused(path), std::vector<std::string>{"/schedule"});
  std::filesystem::remove(path);
  EXPECT_EQ(run(std::filesystem::temp_directory_path().string() + "/.").code, 3);
}

TEST(ScheduleCommand, TwoOutputsInOnePlaceAreRefused) {
  const std::string line = "1f1b --pp 2 --micro-batches 2 ";
  EXPECT_EQ(refused(line + "--svg -"), std::vector<std::string>{"/svg"});
  EXPECT_EQ(run(line + "--svg - --csv").code, 2);
  const std::string path = temporary("same");
  EXPECT_EQ(run(line + "--svg " + path + " --json " + path).code, 2);
  std::filesystem::remove(path);
}

TEST(ScheduleCommand, DeadlockIsANegativeOutcome) {
  const std::string path = temporary("deadlock.csv");
  std::ofstream(path) << "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n";
  const Outcome text = run(path);
  EXPECT_EQ(text.code, 1);
  EXPECT_NE(text.out.find("[0B0]"), std::string::npos) << text.out;
  const Outcome as_json = run(path + " --json -");
  EXPECT_EQ(as_json.code, 1);
  EXPECT_TRUE(json::parse(as_json.out, nullptr, false)["makespan"].is_null());
  std::filesystem::remove(path);
}

TEST(ScheduleCommand, JsonOnStandardOutputStandsAlone) {
  EXPECT_EQ(run("1f1b --pp 2 --micro-batches 2 --csv --json -").out.front(), '{');
  const std::string both = run("1f1b --pp 2 --micro-batches 2").out;
  EXPECT_NE(both.find("makespan"), std::string::npos);
}

}  // namespace
}  // namespace foretrain
