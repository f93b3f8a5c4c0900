#include "tests/support/command.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

/// Rule: what README.md shows below "$ foretrain ..." is what the command prints. `run` has a test
/// of its own: its last lines tell of the machine.
namespace foretrain::test {
namespace {

std::string read_me() {
  const std::ifstream file(std::string(FORETRAIN_SOURCE_DIR) + "/README.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ReadMe, EveryCommandPrintsWhatIsShown) {
  const std::string prompt = "```\n$ foretrain ";
  const std::string text = read_me();
  int shown = 0;
  for (std::size_t at = text.find(prompt); at != std::string::npos; at = text.find(prompt, at)) {
    at += prompt.size();
    const std::size_t line_end = text.find('\n', at);
    const std::string line = text.substr(at, line_end - at);
    if (line.starts_with("run ")) {
      continue;
    }
    const std::string page = text.substr(line_end + 1, text.find("```", line_end) - line_end - 1);
    const std::string out = run_program(line).out;
    // "..." at the end: the page goes on.
    const std::size_t cut = page.ends_with("...\n") ? page.size() - 4 : std::string::npos;
    EXPECT_EQ(out.substr(0, cut), page.substr(0, cut)) << line;
    ++shown;
  }
  EXPECT_GT(shown, 0);
}

}  // namespace
}  // namespace foretrain::test
