#include "tests/cli/schedule_command.h"

/// Rule: every cost of `foretrain schedule` is used as it was typed, or it is said that it is not;
/// what was not typed follows the contract's defaults, or it is said what was assumed.
namespace foretrain {
namespace {

using nlohmann::json;
using test::refused;
using test::result;
using test::run;

using Pointers = std::vector<std::string>;

// The published row zb-h1, p = 4, m = 12, F/I/W = 10/12/8, and its closed form at equal costs: the
// bubble is (p-1) max(F + I - W, F, I) = 42 and (p-1) 1 = 3.
TEST(ScheduleCosts, SplitBackwards) {
  const std::string line = "zb-h1 --pp 4 --micro-batches 12";
  const json value = result(line + " --forward 10 --dgrad 12 --wgrad 8");
  EXPECT_EQ(value["makespan"], 402);
  EXPECT_EQ(value["bubble"], json({42, 42, 42, 42}));
  EXPECT_EQ(value["costs"]["dgrad"], 12);
  EXPECT_EQ(value["costs"]["wgrad"], 8);
  EXPECT_EQ(value["costs"]["assumed"], json::array());
  EXPECT_EQ(result(line)["makespan"], 39);
  EXPECT_EQ(value["actions"][0][4], "0I0");
}

// A whole backward for a schedule that splits it: halves, said so, and exact for odd digits.
TEST(ScheduleCosts, HalvesAreSaidToBeAssumed) {
  const std::string line = "zb-h1 --pp 4 --micro-batches 12";
  const json value = result(line + " --backward 2");
  EXPECT_EQ(value["makespan"], 39);
  EXPECT_NE(value["costs"]["assumed"][0].get<std::string>().find("half of --backward"),
            std::string::npos);
  EXPECT_EQ(result(line + " --backward 3")["costs"]["dgrad"].dump(), "1.5");
  EXPECT_EQ(result(line + " --backward 0.5")["costs"]["wgrad"].dump(), "0.25");
  const json rest = result(line + " --forward 10 --backward 20 --dgrad 12");
  EXPECT_EQ(rest["costs"]["wgrad"], 8);
  EXPECT_EQ(rest["makespan"], 402);
  EXPECT_EQ(result(line + " --forward 10 --backward 20 --wgrad 8")["makespan"], 402);
  EXPECT_NE(run(line + " --backward 2").out.find("note         dgrad and wgrad are taken as half"),
            std::string::npos);
}

// DualPipe has all kinds: its published row p = 8, m = 20, F/I/W = 10/11/9, F&B = 26, makespan 610;
// a whole backward of its own cost changes only B: the row assumes B = I + W.
TEST(ScheduleCosts, WholeAndHalvesSideBySide) {
  const std::string line = "dualpipe --pp 8 --micro-batches 20 --forward 10 --dgrad 11 --wgrad 9";
  EXPECT_EQ(result(line + " --overlapped 26")["makespan"], 610);
  EXPECT_EQ(result(line + " --overlapped 26 --backward 20")["makespan"], 610);
  EXPECT_GT(result(line + " --overlapped 26 --backward 22")["makespan"], 610);
}

// With F&B = F + B nothing is gained; the reported pitfall is to take it for free. DualPipe p = 8,
// m = 20: bubble (p/2 - 1)(F&B + B - 3W) = 3 (3 + 2 - 3) = 6.
TEST(ScheduleCosts, OverlappedUnitsCostTheirSumUnlessTold) {
  const std::string line = "dualpipe --pp 8 --micro-batches 20";
  EXPECT_EQ(result(line)["makespan"], 66);
  EXPECT_EQ(result(line)["costs"]["overlapped"], 3);
  EXPECT_EQ(result(line + " --overlapped 3")["makespan"], 66);
  EXPECT_LT(result(line + " --overlapped 2")["makespan"], 60);
  EXPECT_NE(result(line)["costs"]["assumed"][0].get<std::string>().find("forward + backward"),
            std::string::npos);
}

// The published pair: dualpipev p = 4, m = 10 takes 66 in one piece and 63 as F and then B.
TEST(ScheduleCosts, OverlapSemantics) {
  const std::string line = "dualpipev --pp 4 --micro-batches 10";
  EXPECT_EQ(result(line + " --overlap-semantics atomic")["makespan"], 66);
  const json value = result(line + " --overlap-semantics sequential --overlapped 2");
  EXPECT_EQ(value["makespan"], 63);
  EXPECT_EQ(value["costs"]["unused"], json({"overlapped"}));
  EXPECT_EQ(value["costs"]["assumed"], json::array());  // its parts are costs of their own
}

// Stage times of a reported case: 3.153, 6 x 3.150 and 3.901 ms. The slowest stage sets the cycle:
// forwards alone take the sum, 25.954 ms, and 3.901 ms for each micro-batch after the first.
// The balance is 25.954 / (8 x 3.901) = 83.2 %, worth 6.65 ranks.
TEST(ScheduleCosts, OneCostPerStage) {
  const std::string times = " --forward 3.153ms,3.150ms,3.15ms,3.15ms,3.15ms,3.15ms,3.15ms,3.901ms";
  const std::string size = "gpipe --pp 8 --micro-batches 101";
  const json value = result(size + times + " --backward 0");
  EXPECT_EQ(value["makespan"].dump(), "0.416054");
  EXPECT_EQ(value["costs"]["forward"].size(), 8U);
  const std::string text = run(size + times + " --backward 0").out;
  EXPECT_NE(text.find("balance      83.2 %: rank 7"), std::string::npos) << text;
  EXPECT_NE(text.find("do the work of 6.65"), std::string::npos) << text;
  // 1f1b with backwards twice as long: the last rank never waits once it has begun, so
  // 3 (25.954 - 3.901) + m 3 x 3.901.
  const std::string twice = " --backward 6.306ms,6.3ms,6.3ms,6.3ms,6.3ms,6.3ms,6.3ms,7.802ms";
  EXPECT_EQ(result("1f1b --pp 8 --micro-batches 16" + times + twice)["makespan"].dump(),
            "0.253407");
}

// Chunks are stages: with two chunks a rank there are eight values for four ranks.
TEST(ScheduleCosts, ValuesAreOfVirtualStages) {
  const std::string line = "interleaved --pp 2 --micro-batches 2 --vpp 2 --backward 0 --forward ";
  const json value = result(line + "1,2,3,4");
  EXPECT_EQ(value["busy"], json({8, 12}));
  EXPECT_EQ(refused(line + "1,2"), Pointers{"/forward"});
  EXPECT_EQ(refused(line + "1,2,,4"), Pointers{"/forward"});
  EXPECT_EQ(refused(line + "1,-2,nan,inf"), (Pointers{"/forward", "/forward", "/forward"}));
  EXPECT_EQ(refused(line + "1 --p2p 1,2,3,4"), Pointers{"/p2p"});
}

TEST(ScheduleCosts, UnusedOptionsAreNamed) {
  const std::string size = " --pp 4 --micro-batches 8";
  const auto unused = [&](const std::string& line) { return result(line)["costs"]["unused"]; };
  EXPECT_EQ(unused("1f1b" + size + " --backward 2 --dgrad 9"), json({"dgrad"}));
  EXPECT_EQ(unused("1f1b" + size + " --backward 2 --wgrad 1 --overlapped 3"),
            json({"wgrad", "overlapped"}));
  EXPECT_EQ(unused("1f1b" + size + " --overlap-semantics atomic"), json({"overlap-semantics"}));
  EXPECT_EQ(unused("zb-h1" + size + " --backward 2 --dgrad 1 --wgrad 1"), json({"backward"}));
  EXPECT_EQ(unused("zb-h1" + size + " --backward 2 --dgrad 1"), json::array());
  EXPECT_EQ(unused("1f1b --pp 1 --micro-batches 8 --p2p 1"), json({"p2p"}));
  EXPECT_EQ(unused("1f1b" + size + " --unbatched"), json({"unbatched"}));
  const std::string text = run("1f1b" + size + " --overlapped 3").out;
  EXPECT_NE(text.find("--overlapped is not used"), std::string::npos) << text;
}

TEST(ScheduleCosts, Refusals) {
  const std::string size = " --pp 4 --micro-batches 8";
  EXPECT_EQ(refused("zb-h1" + size + " --dgrad 1"), Pointers{"/wgrad"});
  EXPECT_EQ(refused("zb-h1" + size + " --backward 2 --dgrad 3"), Pointers{"/dgrad"});
  EXPECT_EQ(refused("zb-h1" + size + " --backward 2 --wgrad 3"), Pointers{"/wgrad"});
  EXPECT_EQ(refused("zb-h1" + size + " --forward 1ms"), Pointers{"/backward"});
  EXPECT_EQ(refused("1f1b" + size + " --p2p-mode blocking"), Pointers{"/p2p_mode"});
  EXPECT_EQ(refused("1f1b" + size + " --forward nan --p2p=-1"), (Pointers{"/forward", "/p2p"}));
  EXPECT_EQ(refused("1f1b" + size + " --forward 1e400"), Pointers{"/forward"});
  EXPECT_EQ(refused("zb-h1" + size + " --backward 123456789012345678"), Pointers{"/schedule"});
}

// Both ranks stand still for a transfer: GPipe takes (m + p - 1) T + 2 (m + p - 2) c. 1f1b of two
// ranks, transfers one by one: each sends to the other and neither receives.
TEST(ScheduleCosts, Rendezvous) {
  const json value = result("gpipe --pp 4 --micro-batches 8 --p2p 2 --p2p-mode rendezvous");
  EXPECT_EQ(value["makespan"], 11 * 3 + 2 * 10 * 2);
  EXPECT_EQ(value["costs"]["p2p_mode"], "rendezvous");
  EXPECT_EQ(result("gpipe --pp 4 --micro-batches 8 --p2p 2")["makespan"], 33 + 6 * 2);
  const test::Outcome blocked =
      run("1f1b --pp 2 --micro-batches 4 --p2p-mode rendezvous --unbatched");
  EXPECT_EQ(blocked.code, 1);
  EXPECT_NE(blocked.out.find("circle: rank 0 sends 0F1 to rank 1, which sends 1B0 to rank 0"),
            std::string::npos)
      << blocked.out;
  EXPECT_EQ(run("1f1b --pp 2 --micro-batches 4 --p2p-mode rendezvous").code, 0);
}

// Costs of seq1f1b are per slice: the published row k = 2, p = 4, m = 8.
TEST(ScheduleCosts, Slices) {
  const json value = result("seq1f1b --pp 4 --micro-batches 8 --slices 2");
  EXPECT_EQ(value["makespan"], 57);
  EXPECT_EQ(value["peak_in_flight"], json({5, 4, 3, 2}));
  EXPECT_EQ(value["messages"], 96);
  EXPECT_EQ(value["actions"][0][0], "0F0.0");
}

// Schedules that fold two chunks into a V need no --vpp, and refuse another.
TEST(ScheduleCosts, ChunksOfAVAreImplied) {
  EXPECT_EQ(result("zb-v --pp 4 --micro-batches 12")["vpp"], 2);
  EXPECT_EQ(result("zb-v --pp 4 --micro-batches 12 --vpp 2")["makespan"], 75);
  EXPECT_EQ(refused("zb-v --pp 4 --micro-batches 12 --vpp 1"), Pointers{"/schedule"});
  EXPECT_EQ(refused("dualpipev --pp 4 --micro-batches 12 --vpp 4"), Pointers{"/schedule"});
}

}  // namespace
}  // namespace foretrain
