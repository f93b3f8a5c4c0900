#include "tests/report/tiny_run.h"

#include "foretrain/report.h"
#include "sim/base/format.h"
#include "sim/report/text_tables.h"

#include <array>
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

/// Sixty-four stages, each of its own: in flight and activations fall by one and 0.2 GB a stage.
StepReport deep_report() {
  StepReport report = sample_report();
  report.stages.resize(1);
  report.stages[0].in_flight_peak = 64;
  for (std::int32_t rank = 1; rank < 64; ++rank) {
    StageReport stage = report.stages[0];
    stage.pp_rank = rank;
    stage.embedding = false;
    stage.head = rank == 63;
    stage.busy += Duration{rank == 40 ? 90'000'000'000 : 0};
    stage.idle -= Duration{rank == 40 ? 90'000'000'000 : 0};
    stage.in_flight_peak = 64 - rank;
    stage.memory.activations -= rank * std::int64_t{200'000'000};
    stage.memory.peak -= rank * std::int64_t{200'000'000};
    report.stages.push_back(stage);
  }
  report.stages[20].memory.peak = 75'000'000'000;
  report.memory_peak_stage = 20;
  return report;
}

TEST(ReportText, PlainRun) {
  expect_golden("plain.txt", report_text(sample_report()));
}

TEST(ReportText, StragglersManyStepsNoFit) {
  expect_golden("stragglers.txt", report_text(straggling_report()));
}

TEST(ReportText, DeepPipeline) {
  expect_golden("deep.txt", report_text(deep_report()));
}

TEST(ReportText, Deadlock) {
  expect_golden("deadlock.txt", report_text(deadlocked_report()));
}

// A page fits a terminal of 100 columns, lists are broken between items and no separator dangles.
TEST(ReportText, StaysWithinTheWidth) {
  for (const StepReport& report :
       {sample_report(), straggling_report(), deadlocked_report(), deep_report()}) {
    for (const std::string& line : lines(report_text(report))) {
      EXPECT_LE(display_width(line), 100) << line;
      EXPECT_TRUE(line.empty() || line.back() != ' ') << "'" << line << "'";
      EXPECT_FALSE(line.ends_with("·")) << line;
    }
  }
}

/// Lines of the stages table, its title left out.
std::vector<std::string> stage_table(const StepReport& report, int width) {
  TextStyle style;
  style.width = width;
  std::vector<std::string> table = lines(stage_lines(report, style));
  table.erase(table.begin());
  return table;
}

// However many stages: the ends, the slowest and the fullest have a line, the rest share lines.
// 13 columns of title leave 47, which "12" would fill: no number leaves its unit.
TEST(ReportText, ANoteLongerThanALineIsBrokenBetweenWords) {
  TextStyle style;
  style.width = 60;
  EXPECT_EQ(item_lines("notes",
                       {"short", "a layer keeps one tensor of a micro-batch of 12 MB", "and on"},
                       style),
            "notes        short\n"
            "             a layer keeps one tensor of a micro-batch of\n"
            "             12 MB\n"
            "             and on\n");
}

TEST(ReportText, TableOfStagesStaysShort) {
  const StepReport report = deep_report();
  const std::vector<std::string> table = stage_table(report, 100);
  ASSERT_EQ(table.size(), 7U);
  for (const auto& [line, name, mark] :
       std::vector<std::array<std::string, 3>>{{table[0], " 0 (embed)", ""},
                                               {table[1], " 1 .. 19", ""},
                                               {table[2], "20", "◀ most"},
                                               {table[3], "21 .. 39", ""},
                                               {table[4], "40", "◀ slowest"},
                                               {table[5], "41 .. 62", ""},
                                               {table[6], "63 (head)", ""}}) {
    EXPECT_NE(line.find(name), std::string::npos) << line;
    EXPECT_TRUE(mark.empty() ? line.find("◀") == std::string::npos : line.ends_with(mark)) << line;
  }
  EXPECT_NE(table[1].find(" 45-63 "), std::string::npos) << "64 - 19 to 64 - 1 in flight";
  EXPECT_NE(table[1].find(" 67.2-70.8"), std::string::npos) << "71.0 - 0.2 x 19 to 71.0 - 0.2 GB";
}

// Where the width ends columns go, never the time, what is in flight and the peak.
TEST(ReportText, TableOfStagesFitsNarrowTerminals) {
  for (const int width : {60, 80, 100, 120}) {
    for (const StepReport& report : {sample_report(), deep_report()}) {
      for (const std::string& line : stage_table(report, width)) {
        EXPECT_LE(display_width(line), width) << line;
      }
      TextStyle style;
      style.width = width;
      const std::string title = lines(stage_lines(report, style))[0];
      for (const char* kept : {"busy", "idle", "in flight", "peak GB"}) {
        EXPECT_NE(title.find(kept), std::string::npos) << title;
      }
    }
  }
}

// A perturbation that costs nothing is still answered.
TEST(ReportText, TellsOfStragglersThatCostNothing) {
  StepReport report = sample_report();
  report.stragglers = {{"slow_gpu rank 785", Duration{0}, 0.0}};
  const std::string text = report_text(report);
  EXPECT_NE(text.find("  stragglers         0.000 s    0.0 %\n"), std::string::npos) << text;
  EXPECT_NE(text.find("stragglers cost 0 s of 6.31 s (0.0 %)\n"), std::string::npos) << text;
}

// Nothing is shown of what takes no time.
TEST(ReportText, LeavesOutZeroParts) {
  const std::string text = report_text(sample_report());
  EXPECT_EQ(text.find("recompute  "), std::string::npos);
  EXPECT_EQ(text.find("expert comm"), std::string::npos);
  EXPECT_NE(text.find("tensor comm"), std::string::npos);
}

// A group of one rank that prints as nothing has no line; of many ranks it keeps its line.
TEST(ReportText, LeavesOutPartsOfLoneRanksThatPrintAsZero) {
  StepReport report = sample_report();
  report.breakdown.cp = Duration{400'000'000};  // 0.0004 s of 6.31 s: 0.000 s, 0.0 %
  EXPECT_EQ(report_text(report).find("context comm"), std::string::npos);
  report.breakdown.cp = Duration{600'000'000};
  EXPECT_NE(report_text(report).find("context comm       0.001 s    0.0 %"), std::string::npos);
  report.breakdown.dp = Duration{400'000'000};
  EXPECT_NE(report_text(report).find("data comm          0.000 s    0.0 %"), std::string::npos);
  report.network.pop_back();
  EXPECT_EQ(report_text(report).find("data comm"), std::string::npos);
}

TEST(ReportText, CountsRanksInSingularAndPlural) {
  StepReport report = sample_report();
  const auto says = [&](std::int64_t simulated, std::int64_t total, const std::string& words) {
    report.simulation.ranks_simulated = simulated;
    report.simulation.ranks_total = total;
    return report_text(report).find("simulated    " + words + " ·") != std::string::npos;
  };
  EXPECT_TRUE(says(1, 1, "the only rank"));
  EXPECT_TRUE(says(2, 2, "all 2 ranks"));
  EXPECT_TRUE(says(1, 8, "1 of 8 ranks stands for all (identical by symmetry)"));
  EXPECT_TRUE(says(2, 8, "2 of 8 ranks stand for all (identical by symmetry)"));
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
