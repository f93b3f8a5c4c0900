// The program as a user meets it: exit codes, where text goes, refusals by name.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

namespace foretrain {
namespace {

struct Outcome {
  int code = -1;
  std::string text;  ///< standard output and standard error together
};

Outcome run(const std::string& arguments) {
  const std::string command = std::string(FORETRAIN_PROGRAM) + " " + arguments + " 2>&1";
  Outcome outcome;
  std::FILE* pipe = popen(command.c_str(), "r");
  char block[4096];
  std::size_t count = 0;
  while ((count = std::fread(block, 1, sizeof block, pipe)) > 0) {
    outcome.text.append(block, count);
  }
  outcome.code = WEXITSTATUS(pclose(pipe));
  return outcome;
}

std::string write_temporary(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(CheckCommand, AGoodScenarioIsExitZero) {
  const Outcome outcome = run("check llama3-405b-8k");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.text, "llama3-405b-8k: ok\n");
}

TEST(CheckCommand, JsonGoesAloneToStandardOutput) {
  const Outcome outcome = run("check llama3-405b-8k --json - 2>/dev/null");
  const nlohmann::json json = nlohmann::json::parse(outcome.text);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["faults"].size(), 0U);
  EXPECT_EQ(json["scenario"]["parallelism"]["micro_batches"], 16);
  EXPECT_EQ(json["scenario"]["parallelism"]["layers_per_stage"].size(), 128U);
}

TEST(CheckCommand, FaultsAreExitTwoInAColumn) {
  const Outcome outcome =
      run("check llama3-70b-64 --set parallelism.tp=16 --set training.global_batch_size=511 "
          "--set seeed=1");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text,
            "llama3-70b-64: 2 faults\n"
            "  /seeed           unknown key; did you mean \"seed\"?\n"
            "  /parallelism/tp  16 does not divide 8 key/value heads; largest tp here: 8, or set "
            "kv_replication\n");
}

TEST(CheckCommand, FaultsAsJson) {
  const Outcome outcome = run("check llama3-70b-64 --set parallelism.pp=3 --json -");
  const nlohmann::json json = nlohmann::json::parse(outcome.text);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["faults"][0]["pointer"], "/parallelism");
}

TEST(CheckCommand, WhatIsNotJsonSaysWhere) {
  const std::string path = write_temporary("broken.json", "{\"name\": \"x\",\n  model: 1}");
  const Outcome outcome = run("check " + path);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("line 2, column 3"), std::string::npos) << outcome.text;
}

TEST(CheckCommand, AFileThatIsNotThereIsExitThree) {
  EXPECT_EQ(run("check /nowhere/at/all.json").code, 3);
  EXPECT_EQ(run("check " + testing::TempDir()).code, 3);
  EXPECT_EQ(run("check llama3-405b-8k --json /nowhere/at/all.json").code, 3);
  EXPECT_EQ(run("check llama3-405b-8k --set model=/nowhere/config.json").code, 3);
}

TEST(CheckCommand, AnUnknownScenarioSuggestsTheNearest) {
  const Outcome outcome = run("check llama3-405b-8");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("did you mean \"llama3-405b-8k\"?"), std::string::npos);
}

TEST(Program, HelpAndVersion) {
  EXPECT_EQ(run("--help").code, 0);
  EXPECT_EQ(run("--version").code, 0);
  EXPECT_EQ(run("check --help").code, 0);
  EXPECT_EQ(run("").code, 2);
}

TEST(Program, UsageErrorsAreExitTwoWithTheNearestFlag) {
  const Outcome outcome = run("check llama3-405b-8k --jsn -");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.text.find("did you mean \"--json\"?"), std::string::npos) << outcome.text;
}

TEST(Program, UnknownCommandsSuggestTheNearest) {
  const Outcome outcome = run("chek");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.text, "foretrain: unknown command \"chek\"; did you mean \"check\"?\n");
}

}  // namespace
}  // namespace foretrain
