#include "tests/support/command.h"
#include "tests/support/short_batch.h"
#include "tests/support/windowed_model.h"

#include "sim/base/data_directory.h"
#include "sim/base/format.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

/// Rule: `foretrain run` answers with its exit code, keeps its channels apart, refuses by name.
namespace foretrain {
namespace {

using nlohmann::json;

using test::Outcome;

std::string scratch(const std::string& name) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return testing::TempDir() + "foretrain_" + test->name() + "_" + name;
}

/// Reads a file, zipped or not.
std::string contents(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  std::string text;
  std::array<char, 65536> buffer{};
  for (int got = 1; file != nullptr && got > 0;) {
    got = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()));
    text.append(buffer.data(), static_cast<std::size_t>(got > 0 ? got : 0));
  }
  gzclose(file);
  return text;
}

Outcome run(const std::string& arguments) {
  const std::string errors = scratch("stderr");
  Outcome outcome = test::run_program("run " + arguments + " 2>" + errors);
  outcome.err = contents(errors);
  return outcome;
}

json result(const std::string& arguments, int code = 0) {
  const Outcome outcome = run(arguments + " --json -");
  EXPECT_EQ(outcome.code, code) << arguments << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

TEST(RunCommand, AStepThatFitsIsExitZeroAndOnePage) {
  const Outcome outcome = run("tutorial-2x4");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* part : {"where the step goes", "stages", "ideal bubble of", "simulated"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
}

// 8 billion parameters at 16 bytes each on 2 GPUs are 64 GB a GPU before the first activation.
TEST(RunCommand, WhatDoesNotFitIsExitOneAndStillAnswered) {
  const std::string line = "llama3-8b-8 --set parallelism.sharding=none";
  const Outcome outcome = run(line);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("does not fit"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("where the step goes"), std::string::npos);
  const json answer = result(line, 1);
  EXPECT_EQ(answer["memory"]["fits"], "no");
  EXPECT_GT(answer["step_time_s"], 0);
  EXPECT_GT(answer["memory"]["peak_bytes"], answer["memory"]["capacity_bytes"]);
}

TEST(RunCommand, WhatIsNotBuiltIsRefusedByName) {
  struct Refusal {
    std::string set;
    const char* pointer;
    const char* name;
  };
  const std::string windowed = "model=" + test::windowed_model_file();
  for (const Refusal& refusal : std::vector<Refusal>{
           {windowed + " --set parallelism.cp=2", "/parallelism/cp", "sliding-window attention"},
           {windowed + " --set training.document_length=1024",
            "/training/document_length",
            "sliding-window attention"},
           {"schedule=1f1b-overlap --set parallelism.sharding=zero3",
            "/parallelism/sharding",
            "zero3 in overlapped"},
           {R"('schedule={"name":"seq1f1b","slices":2}' --set parallelism.cp=2)",
            "/schedule/slices",
            "slices with context parallelism"},
           {"network.mode=flow --evaluator dataflow", "/network/mode", "dataflow"},
           {"overlap.tp=true --set parallelism.sequence_parallel=false",
            "/overlap/tp",
            "without sequence_parallel"}}) {
    const std::string line = "llama3-8b-8 --set " + refusal.set;
    const json answer = result(line, 2);
    ASSERT_FALSE(answer.value("ok", true)) << line;
    ASSERT_EQ(answer["faults"].size(), 1U) << answer;
    EXPECT_EQ(answer["faults"][0]["pointer"], refusal.pointer);
    const std::string message = answer["faults"][0]["message"];
    EXPECT_NE(message.find(refusal.name), std::string::npos) << message;
    EXPECT_NE(answer["faults"][0]["hint"], "") << "what can be had instead";
    const Outcome outcome = run(line);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "") << "faults are not a result";
    EXPECT_NE(outcome.err.find(refusal.pointer), std::string::npos) << outcome.err;
  }
}

TEST(RunCommand, SchedulesThatAreNotBuiltAreRefused) {
  for (const char* schedule : {"no-such-schedule", "zb-9"}) {
    const json answer = result(std::string("tutorial-2x4 --set schedule=") + schedule, 2);
    ASSERT_FALSE(answer.value("ok", true));
    EXPECT_NE(answer["faults"].dump().find(schedule), std::string::npos) << answer;
  }
}

// Whatever else is asked for, standard output holds the JSON and nothing more.
TEST(RunCommand, JsonGoesAloneToStandardOutput) {
  const Outcome outcome = run("tutorial-2x4 --steps 2 --trace " + scratch("t.json") + " --json -");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(json::accept(outcome.out)) << outcome.out;
  EXPECT_NE(outcome.err.find("trace: 4 of 4 ranks"), std::string::npos) << outcome.err;
}

TEST(RunCommand, JsonFileHoldsWhatStandardOutputWould) {
  const std::string path = scratch("r.json");
  const Outcome outcome = run("tutorial-2x4 --json " + path);
  EXPECT_NE(outcome.out.find("where the step goes"), std::string::npos) << "the page as well";
  json file = json::parse(contents(path));
  json out = result("tutorial-2x4");
  file.erase("simulation");
  out.erase("simulation");
  EXPECT_EQ(file, out);
}

TEST(RunCommand, FilesThatCannotBeWrittenAreExitThree) {
  EXPECT_EQ(run("tutorial-2x4 --trace /no/such/folder/t.json").code, 3);
  EXPECT_EQ(run("tutorial-2x4 --trace /no/such/folder/t.speedscope.json.gz").code, 3);
  EXPECT_EQ(run("tutorial-2x4 --json /no/such/folder/r.json").code, 3);
  EXPECT_EQ(run("/no/such/scenario.json").code, 3);
}

TEST(RunCommand, RanksThatAreNotThereAreExitTwo) {
  for (const char* ranks : {"4", "0-4", "x", "3-1", "0,0", "0-2,1"}) {
    const Outcome outcome =
        run("tutorial-2x4 --trace " + scratch("t.json") + " --trace-ranks " + ranks);
    EXPECT_EQ(outcome.code, 2) << ranks;
    EXPECT_NE(outcome.err.find("--trace-ranks"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(run("tutorial-2x4 --steps 0").code, 2);
  EXPECT_EQ(run("tutorial-2x4 --evaluator fast").code, 2);
}

TEST(RunCommand, OptionsWithoutEffectAreRefused) {
  const Outcome outcome = run("tutorial-2x4 --trace-ranks 0");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--trace-ranks has no effect without --trace"), std::string::npos)
      << outcome.err;
}

// As short as the batch of the shipped scenarios' other tests: what a line holds does not grow.
TEST(RunCommand, NoLineOfAShippedScenariosPagePassesAHundredColumns) {
  for (const std::string& name : preset_names("scenarios")) {
    const Expected<Scenario> scenario = read_scenario(name);
    ASSERT_TRUE(scenario.has_value()) << name;
    std::istringstream page(run(name + " --set " + test::short_batch(*scenario)).out);
    int lines = 0;
    for (std::string line; std::getline(page, line); ++lines) {
      EXPECT_LE(display_width(line), 100) << name << "\n" << line;
    }
    EXPECT_GT(lines, 20) << name;
  }
}

// Advice for a run that does not fit is long, and tells of whole layouts.
TEST(RunCommand, NoLineOfThePageOfARunThatDoesNotFitPassesAHundredColumns) {
  for (const std::string line :
       {"llama3-70b-64 --set cluster.gpus=8 --set parallelism.pp=1 --set parallelism.tp=8",
        "llama3-70b-64 --set parallelism.tp=1 --set parallelism.pp=1"}) {
    const Outcome outcome = run(line);
    EXPECT_EQ(outcome.code, 1) << line;
    std::istringstream page(outcome.out);
    for (std::string text; std::getline(page, text);) {
      EXPECT_LE(display_width(text), 100) << text;
    }
  }
}

TEST(RunCommand, TwoOutputsInOnePlaceAreRefused) {
  const std::string path = scratch("same.json");
  const std::string folder = testing::TempDir();
  for (const std::string& line :
       {"--trace " + path + " --json " + path,
        "--trace " + path + " --json " + folder + "./" + path.substr(folder.size())}) {
    EXPECT_EQ(run("tutorial-2x4 " + line).code, 2) << line;
    EXPECT_EQ(json::parse(contents(path), nullptr, false)["ok"], false) << line;
  }
  const Outcome both = run("tutorial-2x4 --trace - --json -");
  EXPECT_EQ(both.code, 2);
  EXPECT_EQ(json::parse(both.out, nullptr, false)["faults"][0]["pointer"], "/trace");
  EXPECT_EQ(run("tutorial-2x4 --trace /dev/null --json /dev/null").code, 0) << "it keeps nothing";
  const std::string link = scratch("link.json");
  std::filesystem::remove(link);
  std::filesystem::create_symlink(path, link);
  EXPECT_EQ(run("tutorial-2x4 --trace " + path + " --json " + link).code, 2);
}

// "-" is standard output: the trace that a file would hold, and no page.
TEST(RunCommand, TraceGoesAloneToStandardOutput) {
  const std::string path = scratch("t.json");
  const Outcome outcome = run("tutorial-2x4 --trace -");
  EXPECT_EQ(outcome.code, 0);
  ASSERT_EQ(run("tutorial-2x4 --trace " + path).code, 0);
  EXPECT_EQ(outcome.out, contents(path));
  EXPECT_TRUE(json::accept(outcome.out));
}

TEST(RunCommand, ThePageOpensWithTheScenario) {
  const Outcome outcome = run("tutorial-2x4 --set name='my run'");
  EXPECT_EQ(outcome.out.substr(0, 7), "my run ") << outcome.out;
}

// Equal steps have no spread, and every one of them is the step.
TEST(RunCommand, StepsAreCounted) {
  const json answer = result("tutorial-2x4 --steps 3");
  EXPECT_EQ(answer["steps"]["n"], 3);
  EXPECT_EQ(answer["steps"]["stddev_s"], 0.0);
  EXPECT_EQ(answer["steps"]["mean_s"], answer["step_time_s"]);
  EXPECT_EQ(answer["steps"]["max_s"], answer["step_time_s"]);
  EXPECT_EQ(answer["step_time_s"], result("tutorial-2x4")["step_time_s"]);
}

// Megatron-LM counts attention as 12 L h s FLOPs a token, causal counting as half of it.
TEST(RunCommand, FullConventionCountsAttentionTwice) {
  const json causal = result("tutorial-2x4");
  const json full = result("tutorial-2x4 --flops-convention full");
  const double attention = 6.0 * 8 * 1024 * 1024;
  EXPECT_EQ(full["flops_convention"], "full");
  EXPECT_DOUBLE_EQ(full["flops_per_token"].get<double>(),
                   causal["flops_per_token"].get<double>() + attention);
  EXPECT_EQ(full["mfu"], full["mfu_by_convention"]["full"]);
  EXPECT_EQ(full["mfu_by_convention"], causal["mfu_by_convention"]);
  EXPECT_EQ(full["step_time_s"], causal["step_time_s"]);
}

std::vector<std::string> slice_names(const json& trace) {
  std::vector<std::string> names;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["pid"] == 0) {
      names.push_back(event["name"]);
    }
  }
  return names;
}

TEST(RunCommand, TraceShowsExactlyTheStepsMeasured) {
  const std::string path = scratch("t.json.gz");
  ASSERT_EQ(run("tutorial-2x4 --steps 3 --trace " + path + " --trace-ranks 0").code, 0);
  std::vector<std::string> steps;
  for (const std::string& name : slice_names(json::parse(contents(path)))) {
    if (name.starts_with("ProfilerStep#")) {
      steps.push_back(name);
    }
  }
  EXPECT_EQ(steps,
            (std::vector<std::string>{"ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"}));
}

// The ending of the name decides the format: speedscope's own has profiles, Chrome's has events.
TEST(RunCommand, TraceFormatFollowsTheName) {
  const std::string native = scratch("t.speedscope.json.gz");
  ASSERT_EQ(run("tutorial-2x4 --trace " + native).code, 0);
  const json profiles = json::parse(contents(native));
  EXPECT_EQ(profiles["$schema"], "https://www.speedscope.app/file-format-schema.json");
  EXPECT_TRUE(profiles.contains("profiles"));
  const std::string chrome = scratch("t.json.gz");
  ASSERT_EQ(run("tutorial-2x4 --trace " + chrome).code, 0);
  EXPECT_TRUE(json::parse(contents(chrome)).contains("traceEvents"));
}

// A trace of few ranks of a folded run still names whole groups: 2 GPUs share a tensor, 4 replicas
// reduce gradients (llama3-8b-8: tp 2, dp 4).
TEST(RunCommand, TraceNamesWholeGroups) {
  const std::string path = scratch("t.json");
  ASSERT_EQ(run("llama3-8b-8 --set training.global_batch_size=4 --trace " + path).code, 0);
  std::size_t tensor = 0;
  std::size_t data = 0;
  const json trace = json::parse(contents(path));
  for (const json& event : trace["traceEvents"]) {
    const json arguments = event.value("args", json::object());
    const std::string group = arguments.value("Process Group Name", "");
    if (group == "tp") {
      ++tensor;
      EXPECT_EQ(arguments["Group size"], 2);
    } else if (group == "dp") {
      ++data;
      EXPECT_EQ(arguments["Group size"], 4);
    }
  }
  EXPECT_GT(tensor, 0U);
  EXPECT_GT(data, 0U);
}

// One slow GPU of a pipeline slows all: the page and the breakdown both say so.
TEST(RunCommand, ASlowGpuIsNamedWithItsCost) {
  const std::string line =
      "tutorial-2x4 --set 'perturbations=[{\"kind\":\"slow_gpu\",\"ranks\":[2],\"factor\":1.5}]'";
  const json answer = result(line);
  ASSERT_EQ(answer["stragglers"].size(), 1U);
  const double alone = result("tutorial-2x4")["step_time_s"];
  EXPECT_NEAR(answer["stragglers"][0]["cost_s"].get<double>(),
              answer["step_time_s"].get<double>() - alone,
              1e-12);
  EXPECT_GT(answer["breakdown_s"]["straggler"], 0);
  const Outcome outcome = run(line);
  for (const char* part :
       {"\n  stragglers ", "\nstragglers cost ", "slow_gpu rank 2", "who waits"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
}

// What tensor parallelism sends in a node without NVLink goes over PCIe, of which NCCL gets 70 %.
TEST(RunCommand, ANodeWithoutNvlink) {
  const Outcome outcome =
      run("llama3-8b-8 --json - --set cluster.topology=a100-pcie-1x200 --set parallelism.tp=4 "
          "--set training.global_batch_size=4 --set recompute.mode=full");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  bool found = false;
  const json report = json::parse(outcome.out);
  for (const json& group : report["network"]) {
    if (group["group"] == "tp") {
      found = true;
      EXPECT_EQ(group["limiting_link"], "gpu0>n0.pcie0");
      EXPECT_LT(group["bus_bandwidth"].get<double>(), 0.7 * 32e9);
      EXPECT_GT(group["bus_bandwidth"].get<double>(), 0.6 * 32e9);
    }
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace foretrain
