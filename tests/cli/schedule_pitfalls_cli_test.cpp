#include "tests/cli/schedule_command.h"

#include <map>

/// Rule: what users of pipeline schedules reported as surprising elsewhere comes out right here.
namespace foretrain {
namespace {

using nlohmann::json;
using test::refused;
using test::result;
using test::run;

/// Start of each action by its text.
std::map<std::string, std::int64_t> starts_of(const json& value) {
  std::map<std::string, std::int64_t> starts;
  for (std::size_t rank = 0; rank < value["actions"].size(); ++rank) {
    for (std::size_t i = 0; i < value["actions"][rank].size(); ++i) {
      starts[value["actions"][rank][i].get<std::string>()] = value["starts"][rank][i];
    }
  }
  return starts;
}

std::string action(int stage, char kind, int micro_batch) {
  return std::to_string(stage) + kind + std::to_string(micro_batch);
}

// With two interleaved ranks the next and the previous peer are one rank
// (github.com/NVIDIA/Megatron-LM/issues/750): a message is known by stage and micro-batch, and each
// action starts when its own input is there, not another one of that peer.
TEST(SchedulePitfalls, TwoRanksAreBothNeighbours) {
  const json value = result("interleaved --pp 2 --micro-batches 4 --vpp 2 --p2p 5");
  const std::map<std::string, std::int64_t> starts = starts_of(value);
  for (int k = 0; k < 4; ++k) {
    for (int stage = 1; stage < 4; ++stage) {
      EXPECT_GE(starts.at(action(stage, 'F', k)), starts.at(action(stage - 1, 'F', k)) + 1 + 5);
      EXPECT_GE(starts.at(action(stage - 1, 'B', k)), starts.at(action(stage, 'B', k)) + 2 + 5);
    }
  }
  EXPECT_EQ(starts.at("1F0"), 6);
  EXPECT_EQ(starts.at("2F0"), 12);  // after 0F0, 0F1 it waits for 1F0, ready at 7, and the way back
  EXPECT_EQ(value["messages"], 2 * 4 * 3);
}

// Interleaved lists that are valid hung where sends and receives block each other
// (github.com/pytorch/pytorch/pull/127332): a deadlock under rendezvous, none under eager
// transfers.
TEST(SchedulePitfalls, CrossingTransfersMayHang) {
  const std::string line = "interleaved --pp 2 --micro-batches 4 --vpp 2";
  EXPECT_EQ(run(line).code, 0);
  const test::Outcome outcome = run(line + " --p2p-mode rendezvous --json -");
  EXPECT_EQ(outcome.code, 1);
  const json value = json::parse(outcome.out, nullptr, false);
  EXPECT_NE(value["deadlock"].get<std::string>().find("circle: rank 0 sends"), std::string::npos);
  EXPECT_TRUE(value["makespan"].is_null());
}

// Fewer micro-batches than ranks hang elsewhere (github.com/pytorch/torchtitan/issues/775). 1f1b
// runs: makespan (m + p - 1) T; interleaved needs m >= p and says which number to change.
TEST(SchedulePitfalls, FewerMicroBatchesThanRanks) {
  const json value = result("1f1b --pp 4 --micro-batches 2");
  EXPECT_EQ(value["makespan"], 5 * 3);
  EXPECT_EQ(value["peak_in_flight"], json({2, 2, 2, 1}));
  const std::string text = run("interleaved --pp 4 --micro-batches 2 --vpp 2", "2>&1").out;
  EXPECT_NE(text.find("raise micro-batches to 4"), std::string::npos) << text;
}

// The limits of a group, and the parameter to change
// (github.com/NVIDIA-NeMo/Speech/issues/14288).
TEST(SchedulePitfalls, GroupsOutsideTheirLimits) {
  for (const char* group : {"3", "9"}) {
    const std::string text =
        run("interleaved --pp 4 --micro-batches 8 --vpp 2 --group " + std::string(group), "2>&1")
            .out;
    EXPECT_NE(text.find("set group between 4 and 8"), std::string::npos) << text;
  }
}

// "Zero bubble" is the idle time between a rank's first and last action: ZB-H2 has none, yet its
// ranks end skewed, and with a barrier p - 1 are lost. Both figures are given, with their meaning.
TEST(SchedulePitfalls, BothBubbles) {
  const json value = result("zb-h2 --pp 4 --micro-batches 12");
  EXPECT_EQ(value["span_bubble"], json({0, 0, 0, 0}));
  EXPECT_EQ(value["bubble"], json({3, 3, 3, 3}));
  EXPECT_EQ(value["makespan"], 39);
  const std::string text = run("zb-h2 --pp 4 --micro-batches 12").out;
  EXPECT_NE(text.find("bubble       3 on every rank: makespan less busy"), std::string::npos);
  EXPECT_NE(text.find("span bubble  0 on every rank: idle between"), std::string::npos);
}

// A forward is counted before its unit's backward frees (github.com/deepseek-ai/DualPipe/issues/23:
// p + 1), and counts name their unit: chunks are less than a rank's layers.
TEST(SchedulePitfalls, UnitsOfWhatIsInFlight) {
  EXPECT_EQ(result("dualpipe --pp 4 --micro-batches 8")["peak_in_flight"], json({5, 5, 5, 5}));
  EXPECT_EQ(result("dualpipev --pp 4 --micro-batches 10")["peak_in_flight"], json({9, 9, 9, 9}));
  const auto text = [](const std::string& line) { return run(line).out; };
  EXPECT_NE(text("dualpipe --pp 4 --micro-batches 8").find("micro-batches of either copy"),
            std::string::npos);
  EXPECT_NE(text("dualpipev --pp 4 --micro-batches 10").find("1/2 of a rank's layers"),
            std::string::npos);
  EXPECT_NE(text("seq1f1b --pp 4 --micro-batches 8 --slices 2").find("slice activations"),
            std::string::npos);
}

// Stages of a V in the order of a loop fail elsewhere (github.com/pytorch/torchtitan/issues/774):
// lists say where their stages lie, and a stage on two ranks is refused.
TEST(SchedulePitfalls, PlacementIsPartOfTheSchedule) {
  const std::string path = test::temporary("placement.csv");
  std::ofstream(path) << "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n";
  EXPECT_EQ(result(path)["messages"], 4);  // the hop from stage 1 to 2 stays on its rank
  std::ofstream(path) << "0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n";
  EXPECT_EQ(result(path)["messages"], 6);
  std::ofstream(path) << "0F0,2F0,3B0,0B0\n1F0,3F0,2B0,1B0\n";
  EXPECT_EQ(refused(path).front(), "/schedule");
  std::filesystem::remove(path);
}

// 524,288 actions: a page, not megabytes.
TEST(SchedulePitfalls, LargeSchedulesFitAPage) {
  const std::string page = run("interleaved --pp 64 --micro-batches 1024 --vpp 4").out;
  EXPECT_LT(page.size(), 6'000U);
  EXPECT_NE(page.find("40 ranks not drawn"), std::string::npos);
  EXPECT_NE(page.find("messages     522,240"), std::string::npos);  // 2 m (p v - 1)
}

}  // namespace
}  // namespace foretrain
