#include "foretrain/simulate.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

/// Rule: the sample output in README.md is what the program prints.
namespace foretrain {
namespace {

TEST(ReadMe, SampleOutputIsTheReport) {
  const Expected<Scenario> scenario = read_scenario("llama3-405b-8k");
  ASSERT_TRUE(scenario.has_value());
  const Expected<Simulation> simulation = simulate(*scenario);
  ASSERT_TRUE(simulation.has_value());
  // How long the run itself took and where differs from machine to machine.
  std::string text = report_text(simulation->report);
  text = text.substr(0, text.find("\nsimulated "));
  const std::ifstream file(std::string(FORETRAIN_SOURCE_DIR) + "/README.md");
  std::ostringstream read;
  read << file.rdbuf();
  EXPECT_NE(read.str().find(text), std::string::npos) << "README.md should show:\n" << text;
}

}  // namespace
}  // namespace foretrain
