#include "tests/support/command.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: `foretrain search` answers with its exit code, keeps its channels apart, refuses by name.
namespace foretrain {
namespace {

using nlohmann::json;
using test::Outcome;

constexpr const char* kSeventy =
    "--model llama3-70b --topology dgx-h100-ndr400 --gpus 64 --seq 8192 --gbs 512 ";
constexpr const char* kEight =
    "--model llama3-8b --topology dgx-h100-ndr400 --gpus 8 --seq 8192 --gbs 64 ";
constexpr const char* kTooSmall =
    "--model llama3-70b --topology dgx-a100-hdr200 --gpus 8 --seq 4096 --gbs 8 ";
constexpr const char* kExperts =
    "--model mixtral-8x7b --topology dgx-h100-ndr400 --gpus 64 --seq 8192 --gbs 512 ";
constexpr const char* kEveryAxis =
    "--micro-batch-sizes 2,4 --vpp 2,5 --schedules interleaved,gpipe --sharding zero2,zero3 "
    "--orders tp-cp-pp-ep-dp,pp-tp-cp-ep-dp --uneven ";

Outcome search(const std::string& arguments) {
  return test::run_program("search " + arguments);
}

json result(const std::string& arguments, int code = 0) {
  const Outcome outcome = search(arguments + " --json - 2>&1");
  EXPECT_EQ(outcome.code, code) << arguments;
  return json::parse(outcome.out, nullptr, false);
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(SearchCommand, JsonHasTheFieldsAndEveryLayout) {
  const json found = result(std::string(kSeventy) + "--closed-form --show 8,1,1 --show 8,4,1");
  EXPECT_EQ(found.at("feasible"), 24);
  EXPECT_EQ(found.at("examined"), 120);
  ASSERT_EQ(found.at("layouts").size(), 24U);
  const json& best = found.at("layouts").at(0);
  EXPECT_EQ(best.at("rank"), 1);
  EXPECT_EQ(best.at("tp"), 4);
  EXPECT_EQ(best.at("cp"), 2);
  EXPECT_EQ(best.at("pp"), 2);
  EXPECT_EQ(best.at("dp"), 4);
  EXPECT_NEAR(best.at("mfu").get<double>(), 0.537, 0.0005);  // printed as 53.7 %
  EXPECT_EQ(best.at("recompute_layers"), 0);
  EXPECT_TRUE(best.at("simulated").is_null());
  double shares = 0;
  for (const json& share : best.at("shares")) {
    shares += share.get<double>();
  }
  EXPECT_NEAR(shares, 1, 1e-12);
  EXPECT_EQ(found.at("shown").at(0).at("rank"), 5);
  EXPECT_TRUE(found.at("shown").at(1).at("rank").is_null());
  EXPECT_NE(found.at("shown").at(1).at("reason"), "");
  EXPECT_EQ(found.at("reason"), "");
  EXPECT_EQ(found.at("smallest_cluster").at("gpus"), 16);
  EXPECT_EQ(found.at("assumptions").at("efficiency"), 0.6);
}

TEST(SearchCommand, SimulatesTheBestAndRanksThemAgain) {
  const json found = result(std::string(kEight) + "--top 4");
  const json& best = found.at("layouts").at(0);
  ASSERT_TRUE(best.at("simulated").is_object()) << best;
  EXPECT_GT(best.at("simulated").at("mfu").get<double>(), 0.1);
  EXPECT_GE(best.at("closed_form_rank"), best.at("rank"));
  for (const json& layout : found.at("layouts")) {
    EXPECT_TRUE(layout.at("simulated").is_object() || layout.at("closed_form_rank") > 4 ||
                says(layout.at("not_simulated"), "not simulated yet"))
        << layout;
  }
}

TEST(SearchCommand, ThePageFitsAHundredColumnsAndSaysWhatToDoNext) {
  for (const std::string& line : {std::string(kSeventy) + "--closed-form",
                                  std::string(kSeventy) + "--show 8,2,1 --show 1,1,16",
                                  std::string(kEight),
                                  std::string(kTooSmall),
                                  std::string(kSeventy) + kEveryAxis + "--closed-form",
                                  std::string(kSeventy) + kEveryAxis + "--top 12 --show 8,1,8",
                                  std::string(kExperts) + kEveryAxis + "--top 2"}) {
    const Outcome outcome = search(line + " 2>&1");
    std::istringstream lines(outcome.out);
    for (std::string text; std::getline(lines, text);) {
      std::size_t columns = 0;
      for (const char c : text) {
        columns += (static_cast<unsigned char>(c) & 0xC0U) == 0x80U ? 0 : 1;  // UTF-8 continuation
      }
      EXPECT_TRUE(columns <= 100 || text.starts_with("next ")) << text;
    }
    EXPECT_GT(outcome.out.size(), 500U) << outcome.out;
    for (const char* part : {" combinations fit", "left out ", "smallest", "assumed ", "next "}) {
      EXPECT_TRUE(says(outcome.out, part)) << part << " in\n" << outcome.out;
    }
  }
}

TEST(SearchCommand, AxesWithoutRoomInTheTableStandBelowIt) {
  const Outcome outcome = search(std::string(kSeventy) + kEveryAxis + "--top 3 --show 8,1,8");
  EXPECT_TRUE(says(outcome.out, "schedule ")) << outcome.out;
  EXPECT_TRUE(says(outcome.out, "order ")) << outcome.out;
  EXPECT_TRUE(says(outcome.out, "sharding ")) << outcome.out;
}

TEST(SearchCommand, OneOfAKindIsSingular) {
  const std::string one = "--topology dgx-h100-ndr400 --gpus 1 --seq 8192 ";
  const Outcome fits =
      search("--model llama3.2-1b " + one + "--gbs 8 --closed-form --assume minimum_cp_tokens=1");
  EXPECT_TRUE(says(fits.out, "1 GPU as ") || says(fits.out, "1 GPU holds ")) << fits.out;
  EXPECT_TRUE(says(fits.out, "at least 1 token a cp")) << fits.out;
  const Outcome large = search("--model llama3-8b " + one + "--gbs 8");
  EXPECT_TRUE(says(large.out, "here is 1 x 80.0 GB")) << large.out;
  EXPECT_TRUE(says(large.out, " does not divide 1 GPU")) << large.out;
}

TEST(SearchCommand, NoThreadsAreAllCores) {
  const std::string line = std::string(kEight) + "--top 2 --json - --threads ";
  const Outcome all = search(line + "0");
  EXPECT_EQ(all.code, 0);
  EXPECT_EQ(all.out, search(line + "1").out);
  EXPECT_EQ(search(line + "-1 2>&1").code, 2);
}

TEST(SearchCommand, TheTitleAndTheRowsAreTheChapters) {
  const Outcome outcome = search(std::string(kSeventy) + "--closed-form --top 3 --show 8,1,4");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(says(outcome.out, "24 of 120 combinations fit")) << outcome.out;
  EXPECT_TRUE(says(outcome.out, "   1   4   2   2   4    53.7 %")) << outcome.out;
  EXPECT_TRUE(says(outcome.out, "   9   8   1   4   2    47.1 %")) << outcome.out;
  EXPECT_TRUE(says(outcome.out, "   1  compute 89 % · imbalance 1 % · tensor comm 8 %"));
}

TEST(SearchCommand, NothingThatFitsIsExitOneWithTheReason) {
  const Outcome outcome = search(kTooSmall);
  EXPECT_EQ(outcome.code, 1);
  for (const char* part : {"0 of 120 combinations fit",
                           "70.6e9 parameters x 16 bytes = 1.13 TB",
                           "smallest cluster: 16 GPUs",
                           "--gpus 16"}) {
    EXPECT_TRUE(says(outcome.out, part)) << part << " in\n" << outcome.out;
  }
  const json found = result(kTooSmall, 1);
  EXPECT_EQ(found.at("feasible"), 0);
  EXPECT_TRUE(found.at("layouts").empty());
  EXPECT_GT(found.at("nearest").at("shortfall_bytes"), 0);
}

TEST(SearchCommand, RefusesEverythingWrongAtOnce) {
  const Outcome outcome = search(
      "--model llama3-70c --topology dgx-h10-ndr400 --gpus 64 --seq 8192 --gbs 512 --vpp a "
      "--schedules zb-w --orders tp-cp --recompute ful --sharding zero --micro-batch-sizes 1,1 "
      "--assume eficiency=1 --assume vpp=2 --show 1,2 2>&1");
  EXPECT_EQ(outcome.code, 2);
  for (const char* part : {"unknown model \"llama3-70c\"; did you mean \"llama3-70b\"?",
                           "unknown topology \"dgx-h10-ndr400\"",
                           "/assume/eficiency",
                           "ask for them as axes of the search",
                           "/axes/vpp",
                           "unknown schedule \"zb-w\"; did you mean",
                           "dp is missing from order \"tp-cp\"",
                           "/axes/recompute",
                           "did you mean \"full\"?",
                           "/axes/sharding",
                           "/axes/micro_batch_sizes",
                           "/show"}) {
    EXPECT_TRUE(says(outcome.out, part)) << part << " in\n" << outcome.out;
  }
  EXPECT_EQ(search("--model llama3-8b 2>&1").code, 2);
  EXPECT_EQ(search(std::string(kEight) + "--top 0 2>&1").code, 2);
  EXPECT_EQ(search(std::string(kEight) + "--thread 2 2>&1").code, 2);
}

TEST(SearchCommand, RefusesSizesThatNoLayoutCouldSave) {
  const Outcome positions =
      search("--model gpt3-175b --topology dgx-h100-ndr400 --gpus 8 --seq 4096 --gbs 64 2>&1");
  EXPECT_EQ(positions.code, 2);
  EXPECT_TRUE(says(positions.out, "4096 tokens are more than the model's 2048 learned positions"))
      << positions.out;
  const Outcome ranks = search(
      "--model llama3-8b --topology dgx-h100-ndr400 --gpus 1048584 --seq 4096 --gbs 64 2>&1");
  EXPECT_EQ(ranks.code, 2);
  EXPECT_TRUE(says(ranks.out, "1048584 GPUs are more than the 1048576 ranks")) << ranks.out;
}

// One operator's FLOPs, 4 s^2 a d, must fit 64 bits: 14 x 2^20 tokens do, 16e6 do not.
TEST(SearchCommand, SizesBeyondSixtyFourBitsAreRefusedAndThoseBelowOverflowNothing) {
  const std::string cluster = "--model llama3-8b --topology dgx-h100-ndr400 --gpus 8 ";
  const std::string line = cluster + "--seq 14680064 --gbs 8 --closed-form ";
  const Outcome page = search(line);
  EXPECT_EQ(page.code, 1);
  EXPECT_FALSE(says(page.out, "-9")) << page.out;
  EXPECT_GT(result(line, 1).at("nearest").at("memory_bytes").get<double>(), 1e11);
  for (const char* tokens : {"16000000", "9007199254740992"}) {
    EXPECT_EQ(search(cluster + "--closed-form --gbs 8 --seq " + tokens).code, 2) << tokens;
  }
}

TEST(SearchCommand, AnyNumberOfThreadsPrintsTheSameBytes) {
  const std::string line = std::string(kSeventy) +
                           "--uneven --micro-batch-sizes 1,2,4 --vpp 1,2,5 --schedules "
                           "gpipe,1f1b,interleaved --sharding none,zero1,zero2 --recompute "
                           "as_needed,none,full,3 --json - --threads ";
  const Outcome one = search(line + "1");
  EXPECT_EQ(one.code, 0);
  EXPECT_GT(json::parse(one.out).at("examined"), 8192);
  EXPECT_EQ(search(line + "2").out, one.out);
  EXPECT_EQ(search(line + "8").out, one.out);
}

TEST(SearchCommand, TheBestIsSavedAsAScenarioThatRuns) {
  const std::string path = testing::TempDir() + "foretrain_search_best.json";
  const json found = result(std::string(kEight) + "--save " + path);
  const Outcome ran = test::run_program("run " + path + " --json -");
  EXPECT_EQ(ran.code, 0);
  const json report = json::parse(ran.out);
  const json& best = found.at("layouts").at(0);
  EXPECT_EQ(report.at("mfu"), best.at("simulated").at("mfu"));
  EXPECT_EQ(report.at("scenario").at("parallelism").at("tp"), best.at("tp"));
  EXPECT_EQ(search(std::string(kEight) + "--save - --json - 2>&1").code, 2);
}

}  // namespace
}  // namespace foretrain
