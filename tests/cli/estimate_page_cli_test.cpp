// The page of `foretrain estimate`, where its output goes, and its exit codes.
#include "tests/cli/estimate_command.h"

#include <algorithm>
#include <fstream>

namespace foretrain::test {
namespace {

// 122.6 GB are 42.6 more than 80. Sharding the rest as zero2 does leaves 78.6 GB; recomputing all
// eight layers leaves 122.6 - 71.9 x 32/34 = 55.0 GB.
TEST(EstimateCommand, WhatDoesNotFitSaysByHowMuchAndWhatWould) {
  const std::string job = kWorkshop + "--set parallelism.sharding=none";
  const Json json = estimate(job, 1);
  EXPECT_NEAR(json["excess_bytes"].get<double>() / 1e9, 42.6, 0.05);
  ASSERT_EQ(json["would_fit"].size(), 2U);
  EXPECT_EQ(json["would_fit"][0]["assume"], "sharding=zero2");
  EXPECT_NEAR(json["would_fit"][0]["memory_bytes"].get<double>() / 1e9, 78.6, 0.05);
  EXPECT_EQ(json["would_fit"][1]["assume"], "recompute_layers=8");
  EXPECT_NEAR(json["would_fit"][1]["memory_bytes"].get<double>() / 1e9, 55.0, 0.06);
  // What it offers holds.
  const Json taken = estimate(job + " --assume sharding=zero2");
  EXPECT_EQ(taken["memory_bytes"], json["would_fit"][0]["memory_bytes"]);
  EXPECT_EQ(taken["mfu"], json["would_fit"][0]["mfu"]);
  EXPECT_EQ(taken["excess_bytes"], 0);
  const std::string text = page(job, 1);
  for (const char* part : {"does not fit, 42.6 GB too much",
                           "weights        6.3 GB",
                           "gradients      6.3 GB",
                           "optimizer     38.1 GB",
                           "activations   71.9 GB",
                           "total        122.6 GB",
                           "fits with --assume sharding=zero2 (78.6 GB, MFU 43.2 %)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

// 70.6e9 parameters on 64 ranks under zero3 are 2 x 2.2 GB of weights and gradients, 13.2 GB of
// optimizer: 17.6 GB, whatever is recomputed.
TEST(EstimateCommand, WhatNothingCanMakeFitSaysSo) {
  const std::string job =
      "llama3-70b-64 --set parallelism.tp=1 --set parallelism.pp=1 --set "
      "training.global_batch_size=512 --assume 'memory=17 GB'";
  const Json json = estimate(job, 1);
  EXPECT_EQ(json["would_fit"], Json::array());
  EXPECT_EQ(json["recompute_layers"], 80);
  EXPECT_NE(page(job, 1).find("no sharding or recomputation makes it fit"), std::string::npos);
}

TEST(EstimateCommand, JsonAloneGoesToStandardOutput) {
  const Outcome outcome = run_program("estimate llama3-8b-8 --json - 2>/dev/null");
  EXPECT_TRUE(Json::accept(outcome.out)) << outcome.out;
  const std::string path = testing::TempDir() + "estimate.json";
  EXPECT_NE(page("llama3-8b-8 --json " + path).find("MFU"), std::string::npos);
  std::ifstream file(path);
  EXPECT_EQ(Json::parse(file), Json::parse(outcome.out));
}

TEST(EstimateCommand, ExitCodes) {
  const auto code = [](const std::string& arguments) {
    return run_program("estimate " + arguments + " >/dev/null 2>&1").code;
  };
  EXPECT_EQ(code("llama3-8b-8"), 0);
  EXPECT_EQ(code("llama3-8b-8 --assume 'memory=20 GB'"), 1);
  EXPECT_EQ(code("llama3-8b-9"), 2);
  EXPECT_EQ(code(""), 2);
  EXPECT_EQ(code("''"), 2);
  EXPECT_EQ(code("llama3-8b-8 --assumptions chapters"), 2);
  EXPECT_EQ(code("./nowhere.json"), 3);
  EXPECT_EQ(code("./nowhere.json --assume nothing=1"), 3);
  EXPECT_EQ(code("llama3-8b-8 --json /nowhere/at/all.json"), 3);
  EXPECT_EQ(run_program("estimate llama3-8b-8 2>/dev/null >/dev/full").code, 3);
}

int widest(const std::string& text) {
  int most = 0;
  int width = 0;
  for (const char c : text) {
    width = c == '\n' ? 0 : width + ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0);
    most = std::max(most, width);
  }
  return most;
}

TEST(EstimateCommand, ThePageFitsAHundredColumnsAndNamesEveryAssumption) {
  for (const char* job : {"llama3-405b-128k",
                          "llama3-8b-8 --set training.dtype=fp8",
                          "tutorial-2x4",
                          "gpt-1t-3072-a100 --assumptions workshop",
                          "llama3-70b-64 --set model=mixtral-8x7b --set parallelism.tp=2 --set "
                          "parallelism.ep=8 --set parallelism.cp=4 --set parallelism.pp=1"}) {
    SCOPED_TRACE(job);
    const std::string text = page(job);
    EXPECT_LE(widest(text), 100) << text;
    for (const auto& [key, value] : estimate(job)["assumptions"].items()) {
      if (key != "name") {
        EXPECT_NE(text.find("\n  " + key + " "), std::string::npos) << key;
      }
    }
    for (const char* part : {"\n  step ",
                             "\n  MFU ",
                             " GB usable (80 GB as sold",
                             "\n  kernels ",
                             "\n  recompute ",
                             "\n  activations ",
                             "\nthe step ",
                             "\nnever counted "}) {
      EXPECT_NE(text.find(part), std::string::npos) << part;
    }
  }
}

TEST(EstimateCommand, NothingIsNotALossAndNoStageRecomputesMoreThanItHolds) {
  // Sixteen ranks hide all but .02 points of the gradients' traffic.
  const std::string hidden = page("llama3-70b-64");
  EXPECT_NE(hidden.find("  data       47.1 %         █"), std::string::npos) << hidden;
  EXPECT_EQ(hidden.find("-0.0"), std::string::npos) << hidden;
  const std::string all = page(kWorkshop + "--set recompute.mode=full");
  EXPECT_NE(all.find("recompute all 7.9 layers"), std::string::npos) << all;
}

TEST(EstimateCommand, ChangedAssumptionsAreMarked) {
  const std::string text = page("llama3-70b-64 --assume 'memory=141 GB' --assume vpp=5");
  EXPECT_NE(text.find("memory                   141 GB  of a GPU, as sold  ◀ set, was 80 GB\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("◀ set, was 1\n"), std::string::npos);
  EXPECT_NE(text.find("of 126.9 GB usable (141 GB as sold x 0.9)"), std::string::npos);
  EXPECT_EQ(page("llama3-70b-64").find("◀"), std::string::npos);
}

TEST(EstimateCommand, HelpNamesTheRulesAndEveryAssumption) {
  const std::string help = page("--help");
  for (const char* word : {"chapter",
                           "workshop",
                           "efficiency",
                           "expert_imbalance",
                           "sharding",
                           "recompute_layers",
                           "Exit codes"}) {
    EXPECT_NE(help.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace foretrain::test
