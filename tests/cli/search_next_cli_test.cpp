#include "tests/support/command.h"
#include "tests/support/windowed_model.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// Rule: what `foretrain search` says to type next works when typed.
namespace foretrain {
namespace {

using nlohmann::json;
using test::Outcome;
using test::run_program;

constexpr const char* kSeventy =
    "--model llama3-70b --topology dgx-h100-ndr400 --gpus 64 --seq 8192 --gbs 512 ";
constexpr const char* kEight =
    "--model llama3-8b --topology dgx-h100-ndr400 --gpus 8 --seq 8192 --gbs 64 ";
constexpr const char* kBeyond =
    "--model llama2-7b --topology dgx-h100-ndr400 --gpus 2 --seq 32768 --gbs 2 ";

/// The command behind "next", without the program's name.
std::string next_of(const std::string& page) {
  const std::string start = "\nnext       foretrain ";
  const std::size_t at = page.find(start);
  EXPECT_NE(at, std::string::npos) << page;
  return at == std::string::npos ? "" : page.substr(at + start.size());
}

std::filesystem::path awkward_folder() {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "search next's $HOME & (one)";
  std::filesystem::create_directories(folder);
  return folder;
}

/// In double quotes, for a shell.
std::string quoted(const std::string& text) {
  std::string word = "\"";
  for (const char c : text) {
    word += c == '$' ? "\\$" : std::string(1, c);
  }
  return word + "\"";
}

TEST(SearchNext, TheSavedBestRunsOrIsEstimatedWithTheSameNumbers) {
  const std::string file = (awkward_folder() / "the best").string();
  const std::string save = "--save " + quoted(file) + " ";
  const std::string windowed =
      "--model " + test::windowed_model_file() + " --topology dgx-h100-ndr400 ";
  struct Case {
    std::string line;
    const char* command;
  };
  const std::string cut = windowed + "--gpus 16 --seq 32768 --gbs 32 ";
  for (const Case& one :
       {Case{std::string(kEight) + "--top 3 --assume minimum_cp_tokens=1e9", "run "},
        Case{std::string(kSeventy) + "--top 2 --assume 'memory=141 GB' --assume efficiency=0.5",
             "run "},
        Case{std::string(kSeventy) + "--closed-form --sharding zero3", "run "},
        Case{"--model mixtral-8x7b --topology dgx-h100-ndr400 --gpus 16 --seq 2048 --gbs 128",
             "run "},
        Case{cut + "--closed-form", "estimate "},
        Case{cut + "--top 2 --assume 'memory=141 GB' --assume efficiency=0.5", "estimate "},
        Case{cut + "--closed-form --sharding zero3", "estimate "},
        Case{cut + "--closed-form --schedules interleaved --vpp 2", "estimate "},
        Case{windowed + "--gpus 64 --seq 32768 --gbs 8 --closed-form --recompute full --uneven",
             "estimate "}}) {
    SCOPED_TRACE(one.line);
    const Outcome page = run_program("search " + one.line + " " + save);
    ASSERT_EQ(page.code, 0);
    std::string next = next_of(page.out);
    EXPECT_TRUE(next.starts_with(one.command)) << next;
    next.erase(next.find_last_not_of('\n') + 1);
    const Outcome typed = run_program(next + " --json - 2>&1");
    EXPECT_EQ(typed.code, 0) << next << "\n" << typed.out;
    const Outcome searched = run_program("search " + one.line + " --json - 2>/dev/null");
    const json best = json::parse(searched.out).at("layouts").at(0);
    const json answer = json::parse(typed.out, nullptr, false);
    if (next.starts_with("estimate ")) {
      EXPECT_EQ(answer.at("mfu"), best.at("mfu")) << next;
      EXPECT_EQ(answer.at("memory_bytes"), best.at("memory_bytes")) << next;
    } else if (const json simulated = best.value("simulated", json()); simulated.is_object()) {
      EXPECT_EQ(answer.at("mfu"), simulated.at("mfu")) << next;
      EXPECT_EQ(answer.at("memory").at("peak_bytes"), simulated.at("memory_bytes")) << next;
    }
  }
}

TEST(SearchNext, TheSearchThatIsOfferedFindsSomething) {
  for (const std::string& line :
       {std::string(kSeventy) + "--closed-form --vpp 2",
        std::string(kSeventy) + "--closed-form --recompute 200",
        std::string("--model llama3-70b --topology dgx-h100-ndr400 --gpus 64 --seq 8192 "
                    "--gbs 9007199254740992 --closed-form"),
        std::string("--model llama3-70b --topology dgx-h100-ndr400 --gpus 24 --seq 8192 "
                    "--gbs 7 --closed-form"),
        std::string("--model llama3-70b --topology dgx-a100-hdr200 --gpus 8 --seq 4096 --gbs 8 "
                    "--closed-form --sharding zero2 --assume 'memory=70 GB'"),
        std::string("--model deepseek-v3 --topology dgx-h100-ndr400 --gpus 2 --seq 4096 --gbs 64 "
                    "--closed-form"),
        std::string(kBeyond) + "--assume minimum_cp_tokens=1e9"}) {
    const Outcome page = run_program("search " + line);
    EXPECT_EQ(page.code, 1) << line;
    std::string next = next_of(page.out);
    next.erase(next.find_last_not_of('\n') + 1);
    ASSERT_TRUE(next.starts_with("search --model ")) << next;
    const bool closed = line.find("--closed-form") != std::string::npos;
    EXPECT_EQ(run_program(next + (closed ? " --closed-form" : "")).code, 0) << line << "\n" << next;
  }
}

// Logits of 152,064 words: no room beside the activations, enough beside recomputed ones.
TEST(SearchNext, RecomputationIsOfferedWhereItAloneIsEnough) {
  const Outcome page = run_program(
      "search --model qwen2.5-7b --topology dgx-b200-ndr400 --gpus 1 --seq 8192 --gbs 2");
  EXPECT_EQ(page.code, 1);
  EXPECT_NE(page.out.find("with every layer recomputed it fits, simulated"), std::string::npos);
  EXPECT_NE(page.out.find(" of 192 GB when simulated"), std::string::npos)
      << "what the driver reports, not the 180 GB as sold:\n"
      << page.out;
  std::string next = next_of(page.out);
  next.erase(next.find_last_not_of('\n') + 1);
  EXPECT_TRUE(next.ends_with("--recompute full")) << next;
  EXPECT_EQ(run_program(next).code, 0);
}

TEST(SearchNext, WhatDoesNotFitWhenSimulatedIsNotSaved) {
  const std::string file = testing::TempDir() + "foretrain_search_refuted.json";
  std::filesystem::remove(file);
  const Outcome outcome = run_program("search " + std::string(kBeyond) +
                                      "--assume minimum_cp_tokens=1e9 --save " + file + " 2>&1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_NE(outcome.out.find("nothing fits, " + file + " is not written"), std::string::npos);
  EXPECT_NE(outcome.out.find("2 layouts do not fit when simulated, and stand last: "),
            std::string::npos)
      << outcome.out;
}

TEST(SearchNext, AModelsFileIsFoundFromWhereTheBestIsSaved) {
  const std::filesystem::path folder = awkward_folder();
  std::ofstream(folder / "my model.json")
      << R"({"model_type":"llama","hidden_size":2048,"intermediate_size":8192,)"
      << R"("num_attention_heads":32,"num_hidden_layers":16,"num_key_value_heads":8,)"
      << R"("vocab_size":128256,"max_position_embeddings":131072,"tie_word_embeddings":true})";
  const std::string model =
      std::filesystem::relative(folder / "my model.json", std::filesystem::current_path()).string();
  const std::string file = (std::filesystem::path(testing::TempDir()) / "moved.json").string();
  const Outcome page = run_program(
      "search --model " + quoted(model) +
      " --topology dgx-h100-ndr400 --gpus 8 --seq 4096 --gbs 64 --closed-form --save " + file);
  ASSERT_EQ(page.code, 0);
  std::string next = next_of(page.out);
  next.erase(next.find_last_not_of('\n') + 1);
  EXPECT_EQ(run_program(next + " 2>&1").code, 0) << next;
  std::ifstream saved(file);
  EXPECT_TRUE(json::parse(saved).at("model").get<std::string>().starts_with("/"))
      << "holds from this directory only";
}

TEST(SearchNext, WhatCannotBeSimulatedSaysSoBesideTheSmallestCluster) {
  const std::string line = "search --model " + test::windowed_model_file() +
                           " --topology dgx-h100-ndr400 --gpus 16 --seq 4194304 --gbs 8";
  const Outcome page = run_program(line);
  EXPECT_NE(page.out.find("sliding-window attention is"), std::string::npos) << page.out;
  const json found = json::parse(run_program(line + " --json -").out);
  for (const char* const offered : {"nearest", "smallest_cluster"}) {
    ASSERT_TRUE(found.at(offered).is_object()) << offered;
    EXPECT_EQ(found.at(offered).value("not_simulated", ""), test::kWindowCut) << offered;
  }
  const Outcome dense = run_program("search " + std::string(kSeventy) + "--closed-form --json -");
  EXPECT_FALSE(json::parse(dense.out).at("smallest_cluster").contains("not_simulated"));
}

}  // namespace
}  // namespace foretrain
