#pragma once

#include <fstream>
#include <string>

#include <gtest/gtest.h>

/// A model of which some layouts cannot be simulated.
namespace foretrain::test {

/// Writes a model of Llama 2 7B's sizes whose attention sees a window of 4,096 tokens: longer
/// sequences are estimated with any layout, and simulated with cp 1 only.
inline std::string windowed_model_file() {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = testing::TempDir() + "windowed_" + test->name() + ".json";
  std::ofstream(path) << R"({"model_type":"mistral","hidden_size":4096,"intermediate_size":11008,)"
                      << R"("num_attention_heads":32,"num_hidden_layers":32,)"
                      << R"("num_key_value_heads":32,"vocab_size":32000,)"
                      << R"("max_position_embeddings":524288,"sliding_window":4096})";
  return path;
}

/// Why not.
inline constexpr const char* kWindowCut =
    "context parallelism over sliding-window attention is not simulated yet";

}  // namespace foretrain::test
