#include "tests/support/short_batch.h"

#include "foretrain/scenario.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

/// Rule: the same input gives the same bytes, whatever the compiler, the optimisation level, the
/// evaluator, and whether ranks that cannot differ are folded. Only "simulation" may differ.
namespace foretrain {
namespace {

namespace fs = std::filesystem;

/// A run of more GPUs takes minutes in a program that sanitizers slow down.
constexpr std::int64_t kMostSanitized = 256;

/// The programs under test: this build's first, then those of the other trees that are built.
std::vector<std::string> programs(std::int64_t gpus = 0) {
  std::vector<std::string> built;
  std::string rest = FORETRAIN_PROGRAMS;
  if (gpus <= kMostSanitized) {
    rest += std::string("|") + FORETRAIN_SANITIZED_PROGRAMS;
  }
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('|'), rest.size());
    if (fs::exists(rest.substr(0, end))) {
      built.push_back(rest.substr(0, end));
    }
    rest.erase(0, std::min(end + 1, rest.size()));
  }
  return built;
}

struct Answer {
  std::string output;
  int status = 0;  ///< as the shell reports it
};

Answer run(const std::string& program, const std::string& arguments) {
  Answer result;
  std::FILE* pipe = popen(("'" + program + "' " + arguments + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer{};
  std::size_t n = 0;
  while ((n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0) {
    result.output.append(buffer.data(), n);
  }
  result.status = pclose(pipe);
  return result;
}

/// Without the one object that tells of the run itself; it holds no object of its own.
std::string without_simulation(std::string text) {
  const std::size_t from = text.find("\"simulation\":");
  if (from != std::string::npos) {
    text.erase(from, text.find('}', from) + 1 - from);
  }
  return text;
}

std::string read_text(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct ScenarioFile {
  fs::path path;
  std::int64_t gpus = 0;
  std::string short_batch;  ///< an override for what is run many times, or slowly
  friend void PrintTo(const ScenarioFile& file, std::ostream* out) { *out << file.path.stem(); }
};

std::vector<ScenarioFile> scenarios() {
  std::vector<ScenarioFile> files;
  std::error_code none;
  const fs::path folder = fs::path(FORETRAIN_SOURCE_DIR) / "scenarios";
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".json") {
      const Expected<Scenario> scenario = read_scenario(entry.path().string());
      files.push_back(
          scenario
              ? ScenarioFile{entry.path(), scenario->cluster.gpus, test::short_batch(*scenario)}
              : ScenarioFile{entry.path(), 0, "name=unreadable"});
    }
  }
  std::ranges::sort(files, {}, &ScenarioFile::path);
  return files;
}

/// Ways of running one scenario that must not show in the result. Every rank is run by itself only
/// where that takes seconds; another build's program, slowed by sanitizers, runs the plain way.
std::vector<std::string> ways(const std::string& program, std::int64_t gpus) {
  if (program != programs().front()) {
    return {""};
  }
  std::vector<std::string> options = {"", "--evaluator dataflow", "--evaluator event"};
  if (gpus <= 1024) {
    options.emplace_back("--all-ranks");
  }
  return options;
}

class Determinism : public testing::TestWithParam<ScenarioFile> {};

TEST_P(Determinism, TheSameTwice) {
  const std::string command = "run '" + GetParam().path.string() + "' --json -";
  const Answer first = run(programs().front(), command);
  ASSERT_TRUE(first.output.starts_with("{")) << first.output;
  const Answer again = run(programs().front(), command);
  EXPECT_EQ(again.status, first.status);
  EXPECT_EQ(without_simulation(again.output), without_simulation(first.output));
}

TEST_P(Determinism, OneResult) {
  const std::string command =
      "run '" + GetParam().path.string() + "' --set " + GetParam().short_batch + " --json - ";
  const Answer first = run(programs().front(), command);
  ASSERT_TRUE(first.output.starts_with("{")) << first.output;
  for (const std::string& program : programs(GetParam().gpus)) {
    for (const std::string& way : ways(program, GetParam().gpus)) {
      const Answer again = run(program, command + way);
      EXPECT_EQ(again.status, first.status) << program << " " << way;
      EXPECT_EQ(without_simulation(again.output), without_simulation(first.output))
          << program << " " << way;
    }
  }
}

TEST_P(Determinism, OneTrace) {
  if (GetParam().gpus > 1024) {
    return;  // the same code writes a smaller trace
  }
  const fs::path file = fs::path(testing::TempDir()) / (GetParam().path.stem().string() + ".json");
  const std::string command = "run '" + GetParam().path.string() + "' --set " +
                              GetParam().short_batch + " --trace '" + file.string() + "'";
  std::string first;
  for (const std::string& program : programs(GetParam().gpus)) {
    const Answer traced = run(program, command);
    const std::string trace = read_text(file);
    ASSERT_FALSE(trace.empty()) << program << " " << traced.output;
    first = first.empty() ? trace : first;
    EXPECT_TRUE(trace == first) << program << " writes another trace";
    fs::remove(file);
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Determinism);
INSTANTIATE_TEST_SUITE_P(Scenarios, Determinism, testing::ValuesIn(scenarios()), [](const auto& i) {
  std::string name = i.param.path.stem().string();
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
});

/// Commands beside `run`.
constexpr std::array kCommands = {
    "schedule interleaved --pp 4 --micro-batches 8 --vpp 2 --json -",
    "mesh --tp 2 --cp 2 --dp 2 --pp 2 --json -",
    "estimate llama3-405b-128k --json -",
    "estimate llama3-405b-8k --assumptions workshop --json -",
    "search --model llama3-8b --topology dgx-h100-ndr400 --gpus 8 --seq 8192 --gbs 16 --json -",
    "search --model qwen3-30b-a3b --topology gb200-nvl72 --gpus 72 --seq 4096 --gbs 288 --json -",
    "plan --model llama3-8b --topology dgx-h100-ndr400 --gpus 8 --seq 8192 --gbs 16 --json -",
    "run llama3-70b-64 --set network.mode=flow --set training.global_batch_size=16 --json -",
    "collective all_reduce --topology dgx-h100-ndr400 --gpus 64 --sweep 1KiB:1GiB --json -",
};

TEST(DeterminismOfCommands, OneResult) {
  for (const std::string command : kCommands) {
    const Answer first = run(programs().front(), command);
    EXPECT_EQ(first.status, 0) << command << "\n" << first.output;
    for (const std::string& program : programs()) {
      EXPECT_EQ(without_simulation(run(program, command).output), without_simulation(first.output))
          << program << " " << command;
    }
  }
}

}  // namespace
}  // namespace foretrain
