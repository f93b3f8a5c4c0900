#include "tests/support/command.h"
#include "tests/support/own_folder.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: a list names each rank once; what has failed is gone round, and a group that it parts is
/// refused by its pair; nothing to do takes no time, and what cannot be counted is refused.
namespace foretrain {
namespace {

using nlohmann::json;
using test::Outcome;

const std::string kHopper = " --topology dgx-h100-ndr400 ";

json result(const std::string& line, int code = 0) {
  const Outcome outcome = test::run_program("collective " + line + " --json - 2>/dev/null");
  EXPECT_EQ(outcome.code, code) << line << "\n" << outcome.out;
  return json::parse(outcome.out, nullptr, false);
}

/// "pointer message; hint" of each fault.
std::vector<std::string> faults(const std::string& line) {
  std::vector<std::string> all;
  const json refused = result(line, 2);
  for (const json& fault : refused["faults"]) {
    all.push_back(fault["pointer"].get<std::string>() + " " + fault["message"].get<std::string>() +
                  "; " + fault["hint"].get<std::string>());
  }
  return all;
}

using Lines = std::vector<std::string>;

TEST(CollectiveRanks, ARankNamedTwiceIsNamed) {
  struct Case {
    const char* list;
    const char* fault;
  };
  for (const Case& bad : {Case{"0,0", R"(rank 0 is named twice, both times as "0")"},
                          Case{"5,7,5", R"(rank 5 is named twice, both times as "5")"},
                          Case{"0-3,2", R"(rank 2 is named twice, in "0-3" and in "2")"},
                          Case{"3,0-7", R"(rank 3 is named twice, in "3" and in "0-7")"},
                          Case{"0-7,9,6-12", R"(rank 6 is named twice, in "0-7" and in "6-12")"},
                          Case{"2-5,0-9", R"(rank 2 is named twice, in "2-5" and in "0-9")"},
                          Case{"1-2,01", R"(rank 1 is named twice, in "1-2" and in "01")"}}) {
    const std::string end = std::string(bad.fault) + "; name each rank once";
    const std::string line = "all_reduce" + kHopper + "--bytes 1 --ranks ";
    EXPECT_EQ(faults(line + bad.list), Lines{"/ranks --ranks: " + end});
    EXPECT_EQ(faults(line + "20 --beside " + bad.list), Lines{"/beside --beside: " + end});
  }
}

TEST(CollectiveRanks, EveryFaultOfAListAtOnce) {
  const Lines all = faults("all_reduce" + kHopper + "--gpus 8 --bytes 1 --ranks 0,x,0,9");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_NE(all[0].find("\"x\""), std::string::npos) << all[0];
  EXPECT_NE(all[1].find("rank 0 is named twice"), std::string::npos) << all[1];
  EXPECT_NE(all[2].find("rank 9 is not in this cluster"), std::string::npos) << all[2];
}

TEST(CollectiveRanks, NeighboursInAListAreNoDuplicates) {
  EXPECT_EQ(result("all_reduce" + kHopper + "--bytes 1 --ranks 8-11,0-7,12,13")["ranks"], 14);
}

/// Time of the bytes alone, in seconds.
double wire_s(const std::string& line) {
  const json answer = result(line);
  return answer["time_s"].get<double>() - answer["latency_s"].get<double>();
}

// Two nodes, leaf i of both: rank 0's NIC and rank 8's hang on leaf 0, which reaches leaf 1 over
// spines 0 and 1. NICs and cables carry 50 GB/s, of which NCCL gets 95 %: 19 GB take 0.4 s.
// 0 to 9 and 8 to 1 take a spine each; with one of them cut off leaf 0 they share a cable.
TEST(CollectiveFailures, WhatIsLeftIsShared) {
  const std::string one = "send_recv" + kHopper + "--bytes 19GB --ranks 0,9 ";
  const std::string two = one + "--beside 8,1 ";
  EXPECT_NEAR(wire_s(two), 0.4, 1e-9);
  for (const char* cable : {"'leaf0.0>spine0'", "'spine0>leaf0.0'", "'leaf0.0>spine1'"}) {
    const std::string failed = std::string("--failed-links ") + cable;
    EXPECT_NEAR(wire_s(one + failed), 0.4, 1e-9) << "a detour as wide as the way";
    EXPECT_NEAR(wire_s(two + failed), 0.8, 1e-9) << cable;
  }
}

// A cable that nothing crosses changes nothing.
TEST(CollectiveFailures, ElsewhereChangesNothing) {
  const std::string line = "all_reduce" + kHopper + "--bytes 1GB --ranks 0-15 ";
  EXPECT_EQ(result(line)["time_s"], result(line + "--failed-links 'leaf0.3>spine1'")["time_s"]);
}

TEST(CollectiveFailures, APartedGroupIsRefusedByItsPair) {
  const std::string nic = "--failed-links 'n0.nic1>leaf0.1'";
  EXPECT_EQ(faults("all_reduce" + kHopper + "--bytes 1 --ranks 0-15 " + nic),
            Lines{"/ranks rank 9 cannot be reached from rank 1; failed links (n0.nic1>leaf0.1) "
                  "take every way between them"});
  EXPECT_EQ(
      faults("send_recv" + kHopper + "--bytes 1 --ranks 0,8 --beside 3,4 --beside 9,1 " + nic),
      Lines{"/beside rank 1 cannot be reached from rank 9; failed links (n0.nic1>leaf0.1) "
            "take every way between them"});
  const std::string leaf = "--failed-links 'leaf0.0>spine0,leaf0.0>spine1'";
  EXPECT_EQ(faults("all_to_all" + kHopper + "--bytes 1 --ranks 0-15 " + leaf),
            Lines{"/ranks rank 9 cannot be reached from rank 0; failed links (leaf0.0>spine0, "
                  "leaf0.0>spine1) take every way between them"});
  EXPECT_EQ(faults("all_reduce" + kHopper + "--bytes 1 --ranks 0-7 --failed-links 'n0.nvs0>gpu5'"),
            Lines{"/ranks rank 5 cannot be reached from rank 4; failed links (n0.nvs0>gpu5) take "
                  "every way between them"});
}

// Rings between nodes stay on their rails and do not miss the spines.
TEST(CollectiveFailures, OnlyPairsThatTalkCount) {
  const std::string line = "all_reduce" + kHopper + "--bytes 1GB --ranks 0-15 ";
  EXPECT_EQ(result(line + "--failed-links 'leaf0.0>spine0,leaf0.0>spine1'")["time_s"],
            result(line)["time_s"]);
}

// Between eight pods at 1:7 all pairs wait for the pods' exits; a ring leaves each pod once.
TEST(CollectiveLimits, AreOfThePatternThatCrossesThem) {
  const std::string line = " --topology h100-roce-clos --bytes 1GiB --ranks 0-24575";
  EXPECT_EQ(result("all_to_all" + line)["limiting_link"], "pod0.spine0>core0");
  EXPECT_EQ(result("all_reduce" + line)["limiting_link"], "n0.nic0>leaf0.0");
}

// Ranks sit on the nodes that work, which keep their numbers: rank 8 is on node 2.
TEST(CollectiveFailures, NodesArePassedOver) {
  const std::string line = "send_recv" + kHopper + "--bytes 1GB --ranks 8,0 ";
  EXPECT_EQ(result(line)["limiting_link"], "n1.nic0>leaf0.0");
  EXPECT_EQ(result(line + "--failed-nodes 1")["limiting_link"], "n2.nic0>leaf0.0");
  EXPECT_EQ(result(line + "--failed-nodes 0,1")["limiting_link"], "n3.nic0>leaf0.0");
  EXPECT_EQ(result(line + "--failed-nodes 0-1")["limiting_link"], "n3.nic0>leaf0.0");
  EXPECT_EQ(result(line + "--failed-nodes 2,0-1")["limiting_link"], "n4.nic0>leaf0.0");
}

TEST(CollectiveFailures, WhatDoesNotExistCannotFail) {
  const std::string line = "all_reduce" + kHopper + "--bytes 1 --ranks 0-15 ";
  const Lines link = faults(line + "--failed-links 'n0.nic1>leaf0.l'");
  ASSERT_EQ(link.size(), 1U);
  EXPECT_EQ(link[0],
            "/failed-links/0 no link is called \"n0.nic1>leaf0.l\"; did you mean "
            "\"n0.nic1>leaf0.1\"?");
  const Lines node = faults(line + "--failed-nodes 9");
  ASSERT_EQ(node.size(), 1U);
  EXPECT_EQ(node[0].substr(0, 24), "/failed-nodes/0 node 9 i");
}

// Every fault of the operation, the cluster, what has failed there and the group at once.
TEST(CollectiveFailures, BesideOtherFaults) {
  using Starts = std::vector<std::string>;
  const auto starts = [](const std::string& line) {
    Starts all;
    for (const std::string& fault : faults(line)) {
      all.push_back(fault.substr(0, fault.find(' ')));
    }
    return all;
  };
  EXPECT_EQ(starts("allreduce --topology nope --bytes 1 --ranks 0-x"),
            (Starts{"/op", "/topology", "/ranks"}));
  EXPECT_EQ(starts("all_reduce" + kHopper +
                   "--bytes 1 --ranks 0-15 --algorithm quick "
                   "--failed-links zz,yy --failed-nodes 0,x,70-71"),
            (Starts{"/failed-nodes/1",
                    "/failed-nodes/2",
                    "/failed-nodes/2",
                    "/failed-links/0",
                    "/failed-links/1",
                    "/algorithm"}));
  EXPECT_EQ(starts("all_reduce" + kHopper + "--bytes 1 --gpus 16 --ranks 99 --failed-links zz"),
            (Starts{"/ranks", "/failed-links/0"}));
}

// A group of one, or no bytes: no time, no algorithm, no limit, whatever is asked.
TEST(CollectiveSizes, NothingToDo) {
  for (const char* op :
       {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv"}) {
    const std::string pair = op == std::string("send_recv") ? "0,8" : "0-15";
    const json none = result(op + kHopper + "--bytes 0 --ranks " + pair);
    const json alone =
        op == std::string("send_recv") ? none : result(op + kHopper + "--bytes 8GiB --ranks 3");
    for (const json& answer : {none, alone}) {
      EXPECT_EQ(answer["algorithm"], "none") << op;
      EXPECT_EQ(answer["limiting_link"], "") << op;
      for (const char* field : {"time_s", "latency_s", "algorithm_bandwidth", "bus_bandwidth"}) {
        EXPECT_EQ(answer[field], 0.0) << op << " " << field;
      }
    }
  }
  EXPECT_EQ(faults("send_recv" + kHopper + "--bytes 1 --ranks 3"),
            Lines{"/ranks send_recv is between two ranks, not 1; write for example --ranks 0,8"});
}

// One byte takes start-up and hops; its own way is less than a byte's over the slowest link, 1 / 25
// ns, each round.
TEST(CollectiveSizes, OneByteIsAllLatency) {
  for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast"}) {
    const json answer = result(op + kHopper + "--bytes 1 --ranks 0-15");
    EXPECT_GT(answer["latency_s"].get<double>(), 1e-5) << op;
    const double rest = answer["time_s"].get<double>() - answer["latency_s"].get<double>();
    EXPECT_GT(rest, 0.0) << op;
    EXPECT_LT(rest, 2 / 25e9) << op;
  }
  const Outcome page =
      test::run_program("collective broadcast" + kHopper + "--bytes 1 --ranks 0,1");
  EXPECT_NE(page.out.find("\n  1 byte in "), std::string::npos) << page.out;
}

// The largest size: 2^53 bytes at 95 % of 50 GB/s.
TEST(CollectiveSizes, UpToTwoToThe53) {
  const double expected = 9007199254740992.0 / 47.5e9;
  EXPECT_NEAR(wire_s("send_recv" + kHopper + "--ranks 0,8 --bytes 9007199254740992"),
              expected,
              1e-9 * expected);
  const std::string line = "send_recv" + kHopper + "--ranks 0,8 --bytes ";
  const std::string range = " is out of the range of a size; whole bytes, at most 2^53";
  EXPECT_EQ(faults(line + "9007199254740993"), Lines{"/bytes \"9007199254740993 B\"" + range});
  EXPECT_EQ(faults(line + "9223372036854775808"),
            Lines{"/bytes \"9223372036854775808 B\"" + range});
  EXPECT_EQ(faults(line + "9PiB"), Lines{"/bytes \"9PiB\"" + range});
  EXPECT_EQ(faults(line + "0.1B"), Lines{"/bytes \"0.1B\"" + range});
}

// 2^47 bytes over a NIC of 1 Gb/s take 13.03 days at line rate, of which NCCL gets 95 % (88 % when
// all talk to all). Two ranks pass on all of a buffer, or half of it: from 2^48 or 2^49 bytes on it
// takes more than 26 days; 2^53 would be more picoseconds than 64 bits hold.
TEST(CollectiveSizes, TimesThatCannotBeCounted) {
  std::ifstream preset(FORETRAIN_SOURCE_DIR "/topologies/dgx-h100-ndr400.json");
  json slow = json::parse(preset);
  slow["nic_bandwidth"]["value"] = "1 Gb/s";
  const std::string path = test::own_folder() + "slow.json";
  std::ofstream(path) << slow.dump();
  struct Case {
    const char* op;
    double days_at_2_to_47;
    const char* first_refused;
  };
  const double whole = 140737488355328.0 / 125e6 / 86400;
  const std::string end = " bytes would take more than the 26 days that can be counted; send less";
  for (const Case& ask : {Case{"all_reduce", whole / 0.95, "281,474,976,710,656"},
                          Case{"broadcast", whole / 0.95, "281,474,976,710,656"},
                          Case{"all_gather", whole / 2 / 0.95, "562,949,953,421,312"},
                          Case{"all_to_all", whole / 2 / 0.88, "562,949,953,421,312"}}) {
    const std::string line = ask.op + (" --ranks 0,8 --topology " + path);
    EXPECT_NEAR(wire_s(line + " --bytes 128TiB") / 86400, ask.days_at_2_to_47, 1e-6) << ask.op;
    EXPECT_EQ(faults(line + " --bytes 8PiB"), Lines{"/bytes 9,007,199,254,740,992" + end});
    EXPECT_EQ(faults(line + " --sweep 128TiB:8PiB"), Lines{"/sweep " + (ask.first_refused + end)});
  }
}

}  // namespace
}  // namespace foretrain
