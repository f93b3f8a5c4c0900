#pragma once

#include "tests/support/command.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// `foretrain estimate` as a script and as a person run it.
namespace foretrain::test {

using Json = nlohmann::json;

/// The answer as JSON; `code` is the exit code it must come with.
inline Json estimate(const std::string& arguments, int code = 0) {
  const Outcome outcome = run_program("estimate " + arguments + " --json - 2>/dev/null");
  EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.out.substr(0, 800);
  return Json::parse(outcome.out, nullptr, false);
}

/// The page, or the refusal.
inline std::string page(const std::string& arguments, int code = 0) {
  const Outcome outcome = run_program("estimate " + arguments + " 2>&1");
  EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.out.substr(0, 800);
  return outcome.out;
}

/// "pointer: message" of every fault.
inline std::vector<std::string> faults(const std::string& arguments) {
  const Json json = estimate(arguments, 2);
  std::vector<std::string> lines;
  for (const Json& fault : json["faults"]) {
    lines.push_back(fault["pointer"].get<std::string>() + ": " +
                    fault["message"].get<std::string>());
  }
  return lines;
}

// Llama 3 405B on 16,384 H100, 2,048 sequences of 8,192: tp 8, pp 16, 4 chunks, zero2; the shipped
// scenario but for its 8 chunks.
inline const std::string kWorkshop =
    "llama3-405b-8k --assumptions workshop --set parallelism.vpp=4 --set "
    "parallelism.sharding=zero2 ";
inline const std::string kOneChunk = "--set parallelism.vpp=1 --set schedule=1f1b ";

}  // namespace foretrain::test
