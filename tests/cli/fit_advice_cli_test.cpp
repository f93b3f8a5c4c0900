#include "tests/support/command.h"
#include "tests/support/windowed_model.h"

#include <cstdint>
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
  const Outcome outcome = run_program("run " + line + " --json - 2>/dev/null");
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
  EXPECT_EQ(note_with(report, "that layout cannot be run: "), "");
  const Outcome page = run_program("run " + line);
  EXPECT_EQ(page.code, 1);
  EXPECT_NE(page.out.find("smallest cluster, by the closed form: "), std::string::npos);
}

/// llama3-8b-8 with another model, one sequence of `tokens` at a time.
std::string windowed(std::int64_t tokens, std::int64_t gpus, std::int64_t tp) {
  return "llama3-8b-8 --set model=" + test::windowed_model_file() +
         " --set cluster.gpus=" + std::to_string(gpus) +
         " --set parallelism.tp=" + std::to_string(tp) +
         " --set training.sequence_length=" + std::to_string(tokens) +
         " --set training.global_batch_size=8";
}

// 6.74e9 parameters of 18 bytes on two GPUs leave 11 GB of 72 for 131,072 tokens: 8.6 GB of them
// for the inputs of 32 layers even where tp 2 halves them, and 8.4 GB for logits in fp32.
TEST(FitAdvice, AClusterThatCannotBeRunIsNamedWithTheReason) {
  const json report = report_of(windowed(131072, 2, 2), 1);
  EXPECT_EQ(note_with(report, "no change was found that fits on "), "2 GPUs");
  const std::string cluster = note_with(report, "smallest cluster, by the closed form: ");
  EXPECT_TRUE(cluster.starts_with("4 GPUs as ")) << cluster;
  EXPECT_EQ(cluster.find("cp 1 "), std::string::npos) << cluster;
  EXPECT_EQ(note_with(report, "that layout cannot be run: "), test::kWindowCut);
}

TEST(FitAdvice, AChangeThatCannotBeRunSaysWhyAndIsNotCalledOneThatFits) {
  const std::string line = windowed(524288, 4, 4);
  const json report = report_of(line, 1);
  EXPECT_EQ(note_with(report, "smallest change that fits: "), "");
  const std::string words = note_with(report, "by the closed form this fits: ");
  EXPECT_NE(words.find("--set parallelism.cp="), std::string::npos) << report.at("notes");
  EXPECT_TRUE(note_with(report, "with it: ").ends_with(test::kWindowCut)) << report.at("notes");
  const json refused = report_of(line + " " + words, 2);
  EXPECT_EQ(refused.at("faults").at(0).at("message"), test::kWindowCut);
}

TEST(FitAdvice, ARunThatFitsGetsNone) {
  const json report = report_of("llama3-8b-8", 0);
  EXPECT_EQ(report.at("notes").dump().find("smallest"), std::string::npos);
}

}  // namespace
}  // namespace foretrain
