// foretrain plan as people and scripts meet it: what stands on the page, in JSON, in the file it
// writes, and how it refuses.
#include "tests/support/command.h"
#include "tests/support/windowed_model.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace foretrain::test {
namespace {

using nlohmann::json;

constexpr const char* kGpt3 =
    "plan --model gpt3-175b --topology dgx-a100-hdr200 --gpus 1024 --seq 2048 --gbs 1536";
constexpr const char* kLlama70B =
    "plan --model llama3-70b --topology dgx-h100-ndr400 --gpus 64 --seq 8192 --gbs 512";

/// Its sequences are cut over cp, which is not simulated within a window.
std::string windowed_plan() {
  return "plan --model " + windowed_model_file() +
         " --topology dgx-h100-ndr400 --gpus 16 --seq 32768 --gbs 32";
}

std::string page_of(const std::string& line) {
  return run_program(line + " 2>&1").out;
}

json json_of(const std::string& line) {
  const Outcome outcome = run_program(line + " --json - 2>/dev/null");
  EXPECT_TRUE(json::accept(outcome.out)) << line;
  return json::accept(outcome.out) ? json::parse(outcome.out) : json();
}

int columns(const std::string& line) {
  int count = 0;
  for (const char c : line) {
    count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  }
  return count;
}

// The worked example of 175B on 1,024 A100s, figure by figure.
TEST(PlanCommand, ThePageHasTheNumbersOfTheWorkedExample) {
  const Outcome outcome = run_program(kGpt3);
  EXPECT_EQ(outcome.code, 0);
  for (const char* text : {"16 x 175e9 = 2.8e12 bytes",
                           "2.8 TB",
                           "35 GPUs of 80 GB",
                           "tp 8",
                           "= 87.5 GB, too much",
                           "= 43.75 GB",
                           "= 10.3 GB",
                           "= 54 GB, fits",
                           "dp 16",
                           "m 96",
                           "7/96 = 7.3 %",
                           "43.75 -> 13 GB",
                           "pp could fall to 2-4",
                           "tp 8 · cp 1 · pp 8 · dp 16",
                           "estimated",
                           "simulated",
                           "foretrain run plan.json"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
  }
}

TEST(PlanCommand, JsonHasTheSame) {
  const json plan = json_of(kGpt3);
  ASSERT_EQ(plan["steps"].size(), 10U);
  for (const json& step : plan["steps"]) {
    for (const char* key : {"title", "question", "decision", "what_would_change"}) {
      EXPECT_FALSE(step[key].get<std::string>().empty()) << step;
    }
    EXPECT_FALSE(step["arithmetic"].empty()) << step;
  }
  EXPECT_EQ(plan["feasible"], true);
  EXPECT_EQ(plan["layout"]["tp"], 8);
  EXPECT_EQ(plan["layout"]["pp"], 8);
  EXPECT_EQ(plan["layout"]["dp"], 16);
  EXPECT_EQ(plan["estimate"]["micro_batches"], 96);
  EXPECT_EQ(plan["estimate"]["fits"], true);
  EXPECT_EQ(plan["simulated"]["fits"], "yes");
  EXPECT_EQ(plan["scenario"]["parallelism"]["pp"], 8);
  EXPECT_EQ(plan["assumptions"]["memory_fraction"], 0.9);
  EXPECT_EQ(plan["best"].size(), 3U);
}

TEST(PlanCommand, ThePageFitsAHundredColumns) {
  for (const char* line :
       {kGpt3,
        kLlama70B,
        "plan --model deepseek-v3 --topology h800-ndr400 --gpus 2048 --seq 4096 --gbs 15360",
        "plan --model llama3-405b --topology dgx-h100-ndr400 --gpus 16384 --seq 131072 --gbs 128 "
        "--tokens 15T --days 90",
        "plan --model gpt-1t --topology dgx-a100-hdr200 --gpus 3072 --seq 2048 --gbs 3072",
        "plan --model llama3.2-1b --topology dgx-b200-ndr400 --gpus 32 --seq 131072 --gbs 512",
        "plan --model llama2-7b --topology dgx-h100-ndr400 --gpus 2 --seq 32768 --gbs 2",
        "plan --model llama3-405b --topology dgx-h100-ndr400 --gpus 4096 --seq 8192 --gbs 2048",
        "plan --model llama3-70b --topology dgx-h100-ndr400 --gpus 1000 --seq 8192 --gbs 512"}) {
    std::istringstream page(page_of(line));
    for (std::string row; std::getline(page, row);) {
      EXPECT_LE(columns(row), 100) << row;
      EXPECT_FALSE(row.ends_with(' ')) << row;
    }
  }
}

// What is simulated is the file that is printed: run gives the same step and memory.
TEST(PlanCommand, TheFileItWritesRunsToTheStepItPrints) {
  const std::string file = testing::TempDir() + "plan_written.json";
  const json plan = json_of(std::string(kLlama70B) + " --write " + file);
  const json run = json_of("run " + file);
  EXPECT_EQ(run["step_time_s"], plan["simulated"]["step_time_s"]);
  EXPECT_EQ(run["mfu"], plan["simulated"]["mfu"]);
  EXPECT_EQ(run["memory"]["peak_bytes"], plan["simulated"]["memory_bytes"]);
  std::ifstream written(file);
  EXPECT_EQ(json::parse(written), plan["scenario"]);
  EXPECT_NE(page_of(std::string(kLlama70B) + " --write " + file).find("written to " + file),
            std::string::npos);
}

// What estimate makes of the file is what the plan says of it, uneven stages and experts included.
TEST(PlanCommand, TheFileItWritesIsEstimatedAsInThePlan) {
  for (const char* job :
       {"llama3-70b --topology dgx-h100-ndr400 --gpus 64 --seq 131072 --gbs 32",
        "llama3-405b --topology dgx-h100-ndr400 --gpus 16384 --seq 8192 --gbs 2048",
        "deepseek-v3 --topology h800-ndr400 --gpus 2048 --seq 4096 --gbs 15360",
        "mixtral-8x7b --topology dgx-h100-ndr400 --gpus 16 --seq 4096 --gbs 512"}) {
    const std::string file = testing::TempDir() + "plan_estimated.json";
    const json plan =
        json_of(std::string("plan --no-simulate --write ") + file + " --model " + job);
    const json estimate = json_of("estimate " + file);
    EXPECT_EQ(estimate["mfu"], plan["estimate"]["mfu"]) << job;
    EXPECT_EQ(estimate["memory_bytes"], plan["estimate"]["memory_bytes"]) << job;
    EXPECT_EQ(estimate["recompute_layers"], plan["estimate"]["recompute_layers"]) << job;
  }
}

TEST(PlanCommand, TheScenarioAloneGoesToStandardOutput) {
  const Outcome outcome = run_program(std::string(kLlama70B) + " --write - 2>/dev/null");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(json::parse(outcome.out)["parallelism"]["tp"], 8);
  EXPECT_EQ(run_program(std::string(kLlama70B) + " --write - --json - 2>&1").code, 2);
}

TEST(PlanCommand, WhatIsNotSimulatedSaysWhy) {
  const std::string line = windowed_plan();
  const json plan = json_of(line);
  EXPECT_TRUE(plan["simulated"].is_null());
  EXPECT_GT(plan["layout"]["cp"], 1);
  EXPECT_EQ(plan["not_simulated"], kWindowCut);
  EXPECT_EQ(run_program(line + " 2>&1").code, 0);
  EXPECT_NE(page_of(line).find("simulated   no: "), std::string::npos);
  const json closed = json_of(std::string(kLlama70B) + " --no-simulate");
  EXPECT_TRUE(closed["simulated"].is_null());
  EXPECT_EQ(closed["not_simulated"], "");
}

TEST(PlanCommand, NothingThatFitsIsExitOneWithTheReason) {
  const std::string file = testing::TempDir() + "plan_never.json";
  std::remove(file.c_str());
  const std::string line =
      "plan --model llama3-70b --topology dgx-a100-hdr200 --gpus 8 --seq 8192 --gbs 512 --write " +
      file;
  const Outcome outcome = run_program(line + " 2>&1");
  EXPECT_EQ(outcome.code, 1);
  for (const char* text : {"1.13 TB", "1.27 TB", "at least 16 GPUs", "is not written"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
  }
  EXPECT_FALSE(std::ifstream(file).good());
  const json plan = json_of(line);
  EXPECT_EQ(plan["feasible"], false);
  EXPECT_TRUE(plan["layout"].is_null());
  EXPECT_TRUE(plan["scenario"].is_null());
  EXPECT_EQ(plan["smallest"]["gpus"], 16);
}

// Logits of 131,072 tokens alone are 4 x 131072 x 128256 = 67 GB, which the closed form leaves out,
// and one GPU has nothing to share them with.
TEST(PlanCommand, WhatTheSimulationSaysDoesNotFitIsExitOneAndSaysSoEverywhere) {
  const std::string line =
      "plan --model llama3.2-1b --topology dgx-h100-ndr400 --gpus 1 --seq 131072 --gbs 16";
  const Outcome outcome = run_program(line + " 2>&1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("\nno layout: simulated, tp 1"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("GB of logits"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("too much"), std::string::npos);
  EXPECT_EQ(outcome.out.find("foretrain run"), std::string::npos);
  const json plan = json_of(line);
  EXPECT_EQ(plan["feasible"], false);
  EXPECT_NE(plan["reason"], "");
  EXPECT_TRUE(plan["simulated"].is_null());
  EXPECT_TRUE(plan["layout"].is_null());
  EXPECT_TRUE(plan["scenario"].is_null());
  EXPECT_EQ(run_program(line + " --no-simulate 2>&1").code, 0);
}

// 89.3 GB of 85.5 when 26 of 32 layers are recomputed, as the closed form would.
TEST(PlanCommand, TheExitCodeIsThatOfTheAnswer) {
  for (const char* job :
       {"--model llama2-7b --topology dgx-h100-ndr400 --gpus 2 --seq 32768 --gbs 2",
        "--model llama3.2-1b --topology dgx-b200-ndr400 --gpus 32 --seq 131072 --gbs 512"}) {
    const std::string line = std::string("plan ") + job;
    const Outcome outcome = run_program(line + " 2>&1");
    const json plan = json_of(line);
    EXPECT_EQ(outcome.code, plan["feasible"] == true ? 0 : 1) << job;
    EXPECT_EQ(outcome.out.find("no layout: ") != std::string::npos, plan["feasible"] == false);
    if (plan["feasible"] == true) {
      EXPECT_NE(plan["simulated"]["fits"], "no");
      EXPECT_NE(outcome.out.find(" with 1.5 GB of context"), std::string::npos) << outcome.out;
    }
  }
}

/// The commands under "next", lines joined, without the program's name.
std::vector<std::string> suggested(const std::string& page) {
  std::vector<std::string> commands;
  std::istringstream lines(page.substr(page.find("\nnext\n") + 6));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  foretrain ")) {
      commands.push_back(line.substr(12));
    } else if (!commands.empty() && commands.back().ends_with("\\")) {
      commands.back().pop_back();
      commands.back() += line;
    }
  }
  return commands;
}

// Typed as they stand, in a folder whose name needs quotes, the commands do what they promise.
TEST(PlanCommand, WhatItSuggestsWorksWhenTyped) {
  const std::string folder = testing::TempDir() + "it's a plan";
  std::filesystem::create_directories(folder);
  const std::string quoted = testing::TempDir() + "'it'\\''s a plan/p.json'";
  for (const std::string& job : std::vector<std::string>{
           "--model llama3-70b --topology dgx-h100-ndr400 --gpus 64 --seq 8192 --gbs 512 --assume "
           "memory='141 GB' --no-simulate",
           windowed_plan().substr(std::string("plan ").size()),
           "--model mixtral-8x7b --topology dgx-h100-ndr400 --gpus 16 --seq 4096 --gbs 512",
           "--model llama3-405b --topology dgx-a100-hdr200 --gpus 256 --seq 2048 --gbs 128",
           "--model llama3-8b --topology dgx-h100-ndr400 --gpus 8 --seq 8192 --gbs 64"}) {
    const Outcome outcome = run_program("plan " + job + " --write " + quoted);
    ASSERT_EQ(outcome.code, 0) << job;
    const std::vector<std::string> commands = suggested(outcome.out);
    const bool runs = outcome.out.find("\n  foretrain run ") != std::string::npos;
    EXPECT_EQ(runs, job.find("windowed_") == std::string::npos) << job;
    EXPECT_EQ(commands.size(), runs ? 3U : 2U) << outcome.out;
    for (const std::string& command : commands) {
      // A scenario that the assumption alone lets in does not run on the GPU as it is.
      const bool assumed = job.find("--assume") != std::string::npos;
      const int code = run_program(command + " 2>&1").code;
      EXPECT_TRUE(code == 0 || (assumed && command.starts_with("run "))) << command << ": " << code;
    }
  }
  const std::string again = page_of(std::string(kLlama70B) + " --assume memory='100 GB'");
  for (const std::string& command : suggested(again)) {
    EXPECT_EQ(command.find("--assume 'memory=100 GB'") != std::string::npos,
              !command.starts_with("run "))
        << command;
  }
}

// Where the simulation had more layers recomputed than the closed form asks for, the estimate that
// is suggested counts them: it comes to the plan's own.
TEST(PlanCommand, TheEstimateItSuggestsIsThePlansOwn) {
  const std::string file = testing::TempDir() + "recomputed_plan.json";
  const std::string job =
      "plan --model llama3-8b --topology hgx-h200-ndr400 --gpus 3 --seq 16384 --gbs 1536";
  const json plan = json_of(job);
  ASSERT_EQ(plan["estimate"]["recompute_layers"], 32) << "the closed form alone asks for 5";
  const Outcome outcome = run_program(job + " --write " + file);
  for (const std::string& command : suggested(outcome.out)) {
    if (command.starts_with("estimate ")) {
      EXPECT_EQ(json_of(command)["mfu"], plan["estimate"]["mfu"]) << command;
      return;
    }
  }
  ADD_FAILURE() << "no estimate is suggested:\n" << outcome.out;
}

// 522.5 days by the JSON; the line's printed operands come to 523, and so does the decision.
TEST(PlanCommand, TheDaysDecidedAreThoseOfTheLine) {
  const std::string page = page_of(
      "plan --model llama2-13b --topology dgx-a100-hdr200 --gpus 16 --seq 32768 --gbs 64 "
      "--tokens 1T");
  const std::size_t days = page.find(" days on 16 GPUs");
  ASSERT_NE(days, std::string::npos) << page;
  const std::size_t start = page.rfind("= ", days) + 2;
  const std::string line = page.substr(start, days - start);
  EXPECT_NE(page.find("=> " + line + " days on 16 GPUs"), std::string::npos) << page;
}

TEST(PlanCommand, WhatCannotBeSimulatedIsNotSuggestedToRun) {
  for (const char* option : {"", " --no-simulate"}) {
    const std::string page = page_of(windowed_plan() + option);
    EXPECT_EQ(page.find("foretrain run"), std::string::npos) << page;
    EXPECT_EQ(page.find("foretrain check"), std::string::npos) << "which says why not: " << page;
    EXPECT_NE(page.find("foretrain estimate plan.json"), std::string::npos) << page;
  }
}

TEST(PlanCommand, AFolderIsNoFileToWrite) {
  for (const char* option : {" --write .", " --json ."}) {
    const Outcome outcome = run_program(std::string(kLlama70B) + option + " 2>&1");
    EXPECT_EQ(outcome.code, 3);
    EXPECT_NE(outcome.out.find("is a folder"), std::string::npos) << outcome.out;
  }
}

TEST(PlanCommand, HugeNumbersEnd) {
  const std::string line = std::string(kLlama70B) + " --no-simulate";
  EXPECT_EQ(run_program(line + " --flops 1e36 --days 0.001 --mfu 1e-6 --assume peak=1e9 2>&1").code,
            0);
  for (const char* job : {"--gpus 9007199254740992 --seq 8192 --gbs 9007199254740992",
                          "--gpus 64 --seq 9007199254740992 --gbs 512",
                          "--gpus 64 --seq 8192 --gbs 9007199254740991",
                          "--gpus 999983 --seq 8192 --gbs 999979"}) {
    const std::string plan = "plan --model llama3-8b --topology dgx-h100-ndr400 ";
    const int code = run_program(plan + job + " 2>&1").code;
    EXPECT_TRUE(code >= 0 && code <= 2) << job << ": " << code;
  }
}

TEST(PlanCommand, CountsAndSharesAsPeopleWriteThem) {
  const std::string line = std::string(kLlama70B) + " --no-simulate";
  const json suffix = json_of(line + " --tokens 15T --mfu 0.51");
  for (const char* same : {"1.5e13 --mfu '51 %'", "15000B --mfu 51%", "'15 T' --mfu .51"}) {
    EXPECT_EQ(json_of(line + " --tokens " + same)["days"], suffix["days"]) << same;
  }
  const json deadline = json_of(line + " --flops 3e24 --days 90 --mfu 0.4");
  EXPECT_NEAR(deadline["training"]["gpus_needed"].get<double>(), 975.2, 0.05);
  EXPECT_EQ(deadline["training"]["gpus_needed_whole"], 976);
  // On the page, the deadline stands with its nodes.
  EXPECT_NE(page_of(line + " --flops 3e24 --days 90 --mfu 0.4").find("976 GPUs, 122 nodes of 8"),
            std::string::npos);
}

TEST(PlanCommand, EveryFaultAtOnce) {
  const Outcome outcome = run_program(
      "plan --model llama3-7b --topology dgx-h10-ndr400 --gpus 64 --seq 8192 --gbs 512 "
      "--tokens 15X --flops 3e24 --assume eficiency=0.5 --json - 2>/dev/null");
  EXPECT_EQ(outcome.code, 2);
  std::string pointers;
  const json answer = json::parse(outcome.out);
  for (const json& fault : answer["faults"]) {
    pointers += fault["pointer"].get<std::string>() + " ";
  }
  for (const char* pointer :
       {"/model ", "/cluster/topology ", "/assume/eficiency ", "/tokens ", "/flops "}) {
    EXPECT_NE(pointers.find(pointer), std::string::npos) << pointer << "not in " << pointers;
  }
}

TEST(PlanCommand, ContradictoryOptionsAreRefused) {
  const std::string line = std::string(kLlama70B) + " --no-simulate ";
  for (const char* options : {"--tokens 1T --flops 1e24",
                              "--mfu 0.4",
                              "--days 90",
                              "--tokens-per-s-per-gpu 1000",
                              "--tokens 1T --mfu 0.4 --tokens-per-s-per-gpu 1000",
                              "--flops 1e24 --tokens-per-s-per-gpu 1000",
                              "--tokens 1T --mfu 40",
                              "--tokens 0",
                              "--tokens -1T",
                              "--tokens nan",
                              "--days 0 --tokens 1T",
                              "--tokens 1e300",
                              "--tokens 1T --days 1e-300",
                              "--mfu ''"}) {
    EXPECT_EQ(run_program(line + options + " 2>&1").code, 2) << options;
  }
}

}  // namespace
}  // namespace foretrain::test
