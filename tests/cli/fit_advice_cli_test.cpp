#include "tests/support/command.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: a run that does not fit says how it would, and that is true.
namespace foretrain {
namespace {

using nlohmann::json;
using test::Outcome;
using test::run_program;

std::string note_with(const json& report, const std::string& start) {
  for (const json& note : report.at("notes")) {
    if (note.get<std::string>().starts_with(start)) {
      return note.get<std::string>().substr(start.size());
    }
  }
  return "";
}

json report_of(const std::string& line, int code) {
  const Outcome outcome = run_program("run " + line + " --json - 2>&1");
  EXPECT_EQ(outcome.code, code) << line;
  return json::parse(outcome.out, nullptr, false);
}

TEST(FitAdvice, TheChangeThatIsNamedFits) {
  for (const std::string line :
       {"llama3-8b-8 --set parallelism.tp=1",
        "llama3-8b-8 --set parallelism.tp=1 --set training.micro_batch_size=4",
        "llama3-70b-64 --set parallelism.tp=1 --set parallelism.pp=1 --set parallelism.cp=1",
        "gpt3-175b-1024-a100 --set parallelism.tp=2",
        "llama3-405b-8k --set parallelism.pp=8",
        "llama3-70b-64 --set parallelism.pp=1 --set parallelism.dp=8",
        "llama3-70b-64 --set parallelism.pp=1 --set cluster.gpus=16 --set "
        "training.global_batch_size=64",
        "llama3-70b-64 --set schedule=gpipe",
        "gpt3-175b-1024-a100 --set parallelism.pp=1 --set parallelism.dp=128",
        R"(llama3-8b-8 --set parallelism.tp=1 --set 'perturbations=[)"
        R"({"kind":"slow_gpu","ranks":[3],"factor":1.1}]')"}) {
    const json report = report_of(line, 1);
    ASSERT_TRUE(report.is_object()) << line;
    const std::string words = note_with(report, "smallest change that fits: ");
    ASSERT_NE(words, "") << line << report.at("notes");
    const json changed = report_of(line + " " + words, 0);
    ASSERT_TRUE(changed.is_object()) << words;
    EXPECT_NE(changed.at("memory").at("fits"), "no") << line << " " << words;
    EXPECT_EQ(note_with(changed, "smallest change"), "");
  }
}

TEST(FitAdvice, OneSettingIsEnoughWhereOneIs) {
  const json report = report_of("llama3-8b-8 --set parallelism.tp=1", 1);
  EXPECT_EQ(note_with(report, "smallest change that fits: "), "--set parallelism.tp=2");
}

// GPipe holds all 256 micro-batches: 1F1B with the same degrees holds four.
TEST(FitAdvice, AScheduleThatHoldsEverythingIsWhatIsWrong) {
  const json report = report_of("llama3-70b-64 --set schedule=gpipe", 1);
  EXPECT_EQ(note_with(report, "smallest change that fits: "), "--set schedule=1f1b");
}

TEST(FitAdvice, WithoutAWayOutItNamesTheSmallestCluster) {
  const std::string line =
      "llama3-70b-64 --set cluster.gpus=8 --set parallelism.pp=1 --set parallelism.tp=8";
  const json report = report_of(line, 1);
  EXPECT_EQ(note_with(report, "no change was found that fits on "), "8 GPUs");
  const std::string cluster = note_with(report, "smallest cluster, by the closed form: ");
  // 70.6e9 parameters of 2 + 4 + 12 bytes over 72 GB at most.
  EXPECT_GE(std::stoi(cluster), 18) << cluster;
  EXPECT_LE(std::stoi(cluster), 64) << cluster;
  const bool ring = cluster.find("cp 1 ") == std::string::npos;
  EXPECT_EQ(note_with(report, "that layout cannot be run: "),
            ring ? "context parallelism is not simulated yet" : "");
  const Outcome page = run_program("run " + line);
  EXPECT_EQ(page.code, 1);
  EXPECT_NE(page.out.find("smallest cluster, by the closed form: "), std::string::npos);
}

TEST(FitAdvice, ARunThatFitsGetsNone) {
  const json report = report_of("llama3-8b-8", 0);
  EXPECT_EQ(report.at("notes").dump().find("smallest"), std::string::npos);
}

}  // namespace
}  // namespace foretrain
