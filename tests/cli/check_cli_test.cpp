// The program as a user meets it: exit codes, where text goes, refusals by name.
#include "tests/support/command.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

using test::Outcome;

/// Standard output and standard error together, unless `arguments` redirects them.
Outcome run(const std::string& arguments) {
  const bool redirected = arguments.find("2>&1") != std::string::npos;
  return test::run_program(arguments + (redirected ? "" : " 2>&1"));
}

std::string write_temporary(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(CheckCommand, AGoodScenarioIsExitZero) {
  const Outcome outcome = run("check llama3-405b-8k");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "llama3-405b-8k: ok\n");
}

TEST(CheckCommand, JsonGoesAloneToStandardOutput) {
  const Outcome outcome = run("check llama3-405b-8k --json - 2>/dev/null");
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
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
  EXPECT_EQ(outcome.out,
            "llama3-70b-64: 2 faults\n"
            "  /seeed           unknown key; did you mean \"seed\"?\n"
            "  /parallelism/tp  16 does not divide 8 key/value heads; largest tp here: 8, or set "
            "kv_replication\n");
}

TEST(CheckCommand, FaultsAsJson) {
  const Outcome outcome = run("check llama3-70b-64 --set parallelism.pp=3 --json -");
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["faults"][0]["pointer"], "/parallelism");
}

TEST(CheckCommand, LinksMustBeTheClustersOwn) {
  const Outcome outcome =
      run("check llama3-70b-64 --set "
          "'perturbations=[{\"kind\":\"slow_link\",\"link\":\"n0.nic0>leaf9.0\",\"factor\":2}]'");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out,
            "llama3-70b-64: 1 fault\n"
            "  /perturbations/0/link  no link is called \"n0.nic0>leaf9.0\"; did you mean "
            "\"n0.nic0>leaf0.0\"?\n");
}

// What check says is what run refuses, and where a cluster is at fault so does estimate: faults of
// reading, parts that are not there, what is not simulated, ranks that failed links part.
TEST(CheckCommand, SaysWhatRunRefuses) {
  struct Case {
    std::string line;
    std::size_t faults;
    bool of_cluster_alone;
  };
  const std::string parted =
      "llama3-8b-8 --set cluster.gpus=16 --set parallelism.tp=1 "
      "--set 'cluster.fabric.failed_links=[\"n0.nic1>leaf0.1\"]'";
  const std::string named =
      "mixtral-8x22b --set 'perturbations=[{\"kind\":\"slow_link\",\"link\":\"zz\",\"factor\":2},"
      "{\"kind\":\"slow_link\",\"link\":\"yy\",\"factor\":2}]' "
      "--set 'cluster.fabric.failed_links=[\"zzz\"]' --set 'cluster.fabric.failed_nodes=[77]'";
  const std::string later =
      " --set overlap.tp=true --set parallelism.tp=2 --set parallelism.sequence_parallel=false";
  for (const Case& one :
       {Case{named, 4, true},
        Case{named + " --set training.global_batch_size=31", 5, true},
        Case{parted, 1, true},
        Case{parted + later, 2, false},
        Case{"llama3-8b-8 --set cluster.fabric.failed_nodes=[55] --set parallelism.tp=3", 4, true},
        Case{"llama3-8b-8" + later, 1, false}}) {
    const nlohmann::json check = nlohmann::json::parse(run("check " + one.line + " --json -").out);
    const nlohmann::json run_faults =
        nlohmann::json::parse(run("run " + one.line + " --json -").out);
    EXPECT_EQ(check["ok"], false) << one.line;
    EXPECT_EQ(check["faults"].size(), one.faults) << check;
    EXPECT_EQ(check["faults"], run_faults["faults"]) << one.line;
    if (one.of_cluster_alone) {
      const Outcome estimate = run("estimate " + one.line + " --json -");
      EXPECT_EQ(nlohmann::json::parse(estimate.out)["faults"], check["faults"]) << one.line;
    }
  }
  const Outcome whole = run("check " + named);
  EXPECT_EQ(whole.out.substr(0, whole.out.find(" is not one")),
            "mixtral-8x22b: 4 faults\n  /cluster/fabric/failed_nodes/0  node 77");
}

TEST(CheckCommand, WhatIsNotJsonSaysWhere) {
  const std::string path = write_temporary("broken.json", "{\"name\": \"x\",\n  model: 1}");
  const Outcome outcome = run("check " + path);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.out.find("line 2, column 3"), std::string::npos) << outcome.out;
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
  EXPECT_NE(outcome.out.find("did you mean \"llama3-405b-8k\"?"), std::string::npos);
}

TEST(Program, HelpAndVersion) {
  EXPECT_EQ(run("--help").code, 0);
  EXPECT_EQ(run("--version").code, 0);
  EXPECT_EQ(run("check --help").code, 0);
  EXPECT_EQ(run("").code, 2);
}

// Every command prints, and none may report success for what was not printed: /dev/full takes no
// byte, a closed stream takes none either.
TEST(Program, OutputThatCannotBeWrittenIsExitThree) {
  for (const char* line : {"--help",
                           "--version",
                           "",
                           "check --help",
                           "collective --help",
                           "check tutorial-2x4",
                           "check tutorial-2x4 --json -",
                           "estimate --help",
                           "estimate tutorial-2x4",
                           "estimate tutorial-2x4 --json -",
                           "run tutorial-2x4",
                           "run tutorial-2x4 --json -",
                           "run tutorial-2x4 --trace -",
                           "mesh --tp 2",
                           "plan --model llama3-8b --topology dgx-h100-ndr400 --gpus 8 --seq 8192 "
                           "--gbs 64 --no-simulate",
                           "topology dgx-h100-ndr400",
                           "topology dgx-h100-ndr400 --dot",
                           "schedule 1f1b --pp 2 --micro-batches 2",
                           "schedule 1f1b --pp 2 --micro-batches 2 --csv",
                           "schedule 1f1b --pp 2 --micro-batches 2 --svg -"}) {
    for (const char* sink : {"2>&1 >/dev/full", "2>&1 >&-"}) {
      const Outcome outcome = run(line + std::string(" ") + sink);
      EXPECT_EQ(outcome.code, 3) << line << " " << sink;
      EXPECT_NE(outcome.out.find("standard output: "), std::string::npos) << outcome.out;
    }
  }
}

// A file opened while standard output is closed is not standard output.
TEST(Program, AClosedStreamDoesNotBecomeTheFile) {
  const std::string path = testing::TempDir() + "closed.json";
  EXPECT_EQ(run("run tutorial-2x4 --json " + path + " 2>&1 >&-").code, 3);
  std::ifstream file(path);
  EXPECT_TRUE(nlohmann::json::accept(file));
}

TEST(Program, CommandsThatAreNotBuiltStillHelp) {
  for (const char* command : {"whatif"}) {
    const Outcome outcome = run(std::string(command) + " --help");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.out.find("not built yet"), std::string::npos) << outcome.out;
    EXPECT_EQ(run(command).code, 2);
  }
}

TEST(Program, NumbersOutOfRangeSayTheRange) {
  const Outcome none = run("topology dgx-h100-ndr400 --gpus 0");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.out.find("--gpus: must be a whole number, at least 1, not 0;"), std::string::npos)
      << none.out;
  for (const char* line : {"topology dgx-h100-ndr400 --gpus 1.5",
                           "topology dgx-h100-ndr400 --path 0 x",
                           "run tutorial-2x4 --steps 1e3",
                           "mesh --tp 2x",
                           "schedule 1f1b --pp two --micro-batches 2"}) {
    const Outcome outcome = run(line);
    EXPECT_EQ(outcome.code, 2) << line;
    EXPECT_NE(outcome.out.find("must be a whole number"), std::string::npos) << outcome.out;
  }
  const Outcome huge = run("mesh --tp 99999999999999999999");
  EXPECT_EQ(huge.code, 2);
  EXPECT_NE(huge.out.find("--tp: 99999999999999999999 is too large"), std::string::npos);
}

TEST(Program, EmptyTextsAreRefused) {
  for (const char* line : {"check ''",
                           "check tutorial-2x4 --json ''",
                           "estimate ''",
                           "estimate tutorial-2x4 --json ''",
                           "run ''",
                           "run tutorial-2x4 --json ''",
                           "run tutorial-2x4 --trace ''",
                           "run tutorial-2x4 --trace /dev/null --trace-ranks ''",
                           "topology ''",
                           "schedule ''",
                           "schedule 1f1b --pp 2 --micro-batches 2 --svg ''",
                           "mesh --order ''"}) {
    const Outcome outcome = run(line);
    EXPECT_EQ(outcome.code, 2) << line;
    EXPECT_NE(outcome.out.find("must not be empty"), std::string::npos) << outcome.out;
  }
}

TEST(Program, OneOfAThingIsNoPlural) {
  EXPECT_NE(run("mesh --gpus-per-node 1").out.find("1 node of 1 GPU,"), std::string::npos);
  EXPECT_NE(run("topology dgx-h100-ndr400 --gpus 1").out.find("  1 GPU ("), std::string::npos);
  EXPECT_NE(run("schedule 1f1b --pp 1 --micro-batches 1").out.find(" 1 micro-batch "),
            std::string::npos);
  const std::string page = run("run tutorial-2x4 --set cluster.gpus=1 --set parallelism.pp=1 --set "
                               "training.global_batch_size=1")
                               .out;
  for (const char* part : {"x 1 sequence\n", " 1 micro-batch of 1 ", "the only rank"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << page;
  }
}

TEST(Program, UsageErrorsAreExitTwoWithTheNearestFlag) {
  const Outcome outcome = run("check llama3-405b-8k --jsn -");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.out.find("did you mean \"--json\"?"), std::string::npos) << outcome.out;
}

TEST(Program, UnknownCommandsSuggestTheNearest) {
  const Outcome outcome = run("chek");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "foretrain: unknown command \"chek\"; did you mean \"check\"?\n");
}

}  // namespace
}  // namespace foretrain
