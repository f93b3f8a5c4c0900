#include "tests/support/command.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: a list names each rank once.
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

}  // namespace
}  // namespace foretrain
