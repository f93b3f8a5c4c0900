#pragma once

#include "tests/support/command.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

/// `foretrain schedule` as tests run it.
namespace foretrain::test {

/// Runs the program with standard error dropped, or joined to the output with "2>&1".
inline Outcome run(const std::string& line, const std::string& errors = "2>/dev/null") {
  return test::run_program("schedule " + line + " " + errors);
}

inline nlohmann::json result(const std::string& line) {
  const Outcome outcome = run(line + " --json -");
  EXPECT_EQ(outcome.code, 0) << line;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

/// The pointers of a refusal, in order.
inline std::vector<std::string> refused(const std::string& line) {
  const Outcome outcome = run(line + " --json -");
  EXPECT_EQ(outcome.code, 2) << line;
  const nlohmann::json faults = nlohmann::json::parse(outcome.out, nullptr, false);
  EXPECT_EQ(faults.value("ok", true), false) << outcome.out;
  std::vector<std::string> pointers;
  for (const nlohmann::json& fault : faults.value("faults", nlohmann::json::array())) {
    pointers.push_back(fault.value("pointer", "none"));
    EXPECT_FALSE(fault.value("message", "").empty());
  }
  return pointers;
}

inline std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          ("foretrain_schedule_" + std::to_string(getpid()) + "_" + name))
      .string();
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace foretrain::test
