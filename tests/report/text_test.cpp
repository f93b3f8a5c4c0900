#include "tests/report/tiny_run.h"

#include "foretrain/report.h"
#include "sim/base/format.h"
#include "sim/report/text_tables.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

/// Compares with tests/report/golden/NAME; UPDATE_GOLDEN=1 rewrites it.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(FORETRAIN_SOURCE_DIR) + "/tests/report/golden/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
  }
  std::ifstream file(path);
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << "UPDATE_GOLDEN=1 rewrites " << path;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    result.push_back(line);
  }
  return result;
}

StepReport straggling_report() {
  StepReport report = sample_report();
  report.breakdown.straggler = Duration{520'000'000'000};
  report.step_time += report.breakdown.straggler;
  report.stragglers = {{"slow_gpu rank 785", Duration{520'000'000'000}, 0.0761},
                       {"jitter of kernels", Duration{-2'000'000}, 0.0}};
  report.steps = {100, 6.83, 0.021, 6.80, 6.829, 6.87, 6.91, 6.94};
  report.memory_peak = 84'000'000'000;
  report.fits = Fit::kNo;
  report.hfu = 0.52;
  return report;
}

StepReport deadlocked_report() {
  StepReport report = sample_report();
  report.deadlock = true;
  report.blocked = {{"rank 3", "3F5 pp receive", "send of message 12 by rank 7"},
                    {"rank 7", "7B0 tp all-gather", "rank 6"}};
  return report;
}

TEST(ReportText, PlainRun) {
  expect_golden("plain.txt", report_text(sample_report()));
}

TEST(ReportText, StragglersManyStepsNoFit) {
  expect_golden("stragglers.txt", report_text(straggling_report()));
}

TEST(ReportText, Deadlock) {
  expect_golden("deadlock.txt", report_text(deadlocked_report()));
}

// A page fits a terminal of 100 columns, at any width lists are broken between items.
TEST(ReportText, StaysWithinTheWidth) {
  for (const StepReport& report : {sample_report(), straggling_report(), deadlocked_report()}) {
    for (const std::string& line : lines(report_text(report))) {
      EXPECT_LE(display_width(line), 100) << line;
      EXPECT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
    }
  }
}

// Nothing is shown of what takes no time.
TEST(ReportText, LeavesOutZeroParts) {
  const std::string text = report_text(sample_report());
  EXPECT_EQ(text.find("recompute  "), std::string::npos);
  EXPECT_EQ(text.find("expert comm"), std::string::npos);
  EXPECT_NE(text.find("tensor comm"), std::string::npos);
}

// A bar is as long as its share, to an eighth of a column.
TEST(ReportText, DrawsBarsInEighths) {
  EXPECT_EQ(bar(0), "");
  EXPECT_EQ(bar(0.125), "▏");
  EXPECT_EQ(bar(2.5), "██▌");
  EXPECT_EQ(bar(2.99), "███");
  EXPECT_EQ(bar(-1), "");
}

// Colour only wraps the text, it does not change it.
TEST(ReportText, ColourIsOnlyAround) {
  TextStyle style;
  style.color = true;
  const std::string coloured = report_text(straggling_report(), style);
  std::string stripped;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') {
      i = coloured.find('m', i);
      continue;
    }
    stripped += coloured[i];
  }
  EXPECT_NE(coloured, stripped);
  EXPECT_EQ(stripped, report_text(straggling_report()));
}

}  // namespace
}  // namespace foretrain
