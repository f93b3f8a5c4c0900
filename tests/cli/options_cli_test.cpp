#include "tests/support/command.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: of a command line, too, every fault is told at once.
namespace foretrain::test {
namespace {

/// What a refused line prints on standard error.
std::string refusal(const std::string& line) {
  const Outcome outcome = run_program(line + " 2>&1 >/dev/null");
  EXPECT_EQ(outcome.code, 2) << line;
  return outcome.out;
}

TEST(CommandLine, EveryFaultAtOnce) {
  EXPECT_EQ(refusal("search --gpus 0 --seq 0 --gbs -1"),
            "foretrain search: 5 faults\n"
            "  --gpus: must be a whole number, at least 1, not 0\n"
            "  --seq: must be a whole number, at least 1, not 0\n"
            "  --gbs: must be a whole number, at least 1, not -1\n"
            "  --model is required\n"
            "  --topology is required; foretrain search --help shows its options\n");
}

TEST(CommandLine, AnUnknownFlagIsNamedWithTheNearest) {
  EXPECT_EQ(refusal("run llama3-8b-8 --setps 3"),
            "foretrain run: 1 fault\n  unexpected: --setps; did you mean \"--steps\"?\n");
  const std::string all = refusal("plan --modl llama3-8b --gpus 8");
  EXPECT_NE(all.find("unexpected: --modl; did you mean \"--model\"?"), std::string::npos) << all;
  EXPECT_NE(all.find("--model is required\n"), std::string::npos) << all;
  EXPECT_EQ(all.find("llama3-8b"), std::string::npos)
      << "its value is no fault of its own: " << all;
}

TEST(CommandLine, WordsLeftOverAreNamed) {
  EXPECT_EQ(refusal("check llama3-8b-8 more"),
            "foretrain check: 1 fault\n"
            "  unexpected: more; foretrain check --help shows its options\n");
}

TEST(CommandLine, AnOptionGivenTwiceIsTold) {
  EXPECT_EQ(refusal("run llama3-8b-8 --steps 1 --steps 2"),
            "foretrain run: 1 fault\n  --steps: once is enough, it is given 2 times; foretrain run "
            "--help shows its options\n");
}

TEST(CommandLine, FaultsGoToAFileAndToTheReader) {
  const std::string file = testing::TempDir() + "faults.json";
  const std::string told = refusal("estimate llama3-8b-8 --assume foo=1 --json " + file);
  EXPECT_NE(told.find("/assume/foo"), std::string::npos) << told;
  const std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  EXPECT_EQ(nlohmann::json::parse(text.str(), nullptr, false).at("ok"), false);
  EXPECT_EQ(refusal("estimate llama3-8b-8 --assume foo=1 --json -"), "");
}

// Not even the faults may be written over what was to be read.
TEST(CommandLine, NoOutputOverwritesAnInput) {
  const std::string file = testing::TempDir() + "mine.json";
  const std::string text = "{\"name\": \"mine\"}\n";
  for (const std::string& line :
       {"run " + file + " --json " + file,
        "run " + file + " --trace " + file,
        "estimate " + file + " --json " + file,
        "check " + file + " --json " + file,
        // Nor over a file that the scenario names, or an option does.
        "run llama3-8b-8 --set schedule.csv=" + file + " --json " + file,
        "run llama3-8b-8 --set model=" + file + " --trace " + file,
        "check llama3-8b-8 --set cluster.topology=" + file + " --json " + file,
        "estimate llama3-8b-8 --set model=" + file + " --json " + file,
        "compare llama3-8b-8 --schedules " + file + " --json " + file,
        "compare llama3-8b-8 --set model=" + file + " --trace " + file,
        "topology " + file + " --json " + file,
        "schedule " + file + " --json " + file,
        "schedule " + file + " --svg " + file,
        "search --model " + file + " --topology dgx-h100-ndr400 --gpus 8 --seq 64 --gbs 8 --save " +
            file,
        "plan --model llama3-8b --topology " + file + " --gpus 8 --seq 64 --gbs 8 --write " +
            file}) {
    std::ofstream(file) << text;
    EXPECT_NE(refusal(line).find("would overwrite " + file), std::string::npos) << line;
    std::ostringstream left;
    left << std::ifstream(file).rdbuf();
    EXPECT_EQ(left.str(), text) << line;
  }
}

}  // namespace
}  // namespace foretrain::test
