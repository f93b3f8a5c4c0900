#include "foretrain/schedule.h"
#include "sim/base/format.h"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

/// Rule: the picture shows each action at its time, never wider than asked.
namespace foretrain {
namespace {

std::string picture(std::string_view name,
                    const ScheduleSize& size,
                    const ScheduleCosts& costs,
                    const PictureScale& scale) {
  const Expected<Schedule> schedule = make_schedule(name, size);
  const Expected<ScheduleTiming> timing = time_schedule(*schedule, costs);
  return schedule_picture(*schedule, *timing, scale);
}

// By hand: p = 2, m = 2, tF = tB = 1, two columns per unit.
TEST(Picture, SmallOneIsExact) {
  EXPECT_EQ(picture("1f1b",
                    {.pp = 2, .micro_batches = 2},
                    {{{Duration{1}, Duration{1}}}, Duration{0}},
                    {.width = 80}),
            "time  0   2   4\n"
            "   0  F0F1··B0··B1\n"
            "   1  ··F0B0F1B1··\n"
            "      F0: forward of micro-batch 0; B backward, dots idle\n");
}

// A backward of twice the length keeps its name and is drawn on; chunks show their stage.
TEST(Picture, LongActionsAndChunks) {
  EXPECT_EQ(picture("gpipe",
                    {.pp = 1, .micro_batches = 1},
                    {{{Duration{1}, Duration{2}}}, Duration{0}},
                    {.width = 80}),
            "time  0   2\n"
            "   0  F0B0──\n"
            "      F0: forward of micro-batch 0; B backward, dots idle\n");
  const std::string chunks =
      picture("interleaved", {.pp = 2, .micro_batches = 2, .vpp = 2}, {}, {.width = 120});
  EXPECT_NE(chunks.find("0F00F12F02F1"), std::string::npos) << chunks;
}

// 2.5 prints as 2.5 when ten ticks are one unit.
TEST(Picture, AxisIsInTheUsersUnit) {
  const std::string text = picture("gpipe",
                                   {.pp = 1, .micro_batches = 4},
                                   {{{Duration{5}, Duration{10}}}, Duration{0}},
                                   {.width = 80, .unit = Duration{10}});
  EXPECT_EQ(text.substr(0, text.find('\n')), "time  0   1   2   3   4   5");
}

TEST(Picture, NeverWiderThanAsked) {
  for (const int width : {40, 80, 120, 240}) {
    for (const int m : {4, 8, 64, 512}) {
      const std::string text =
          picture("interleaved", {.pp = 4, .micro_batches = m, .vpp = 4}, {}, {.width = width});
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(display_width(line), width) << line;
      }
      // (m v + p - 1) T units of time; "12F0" takes 4 columns a unit, "F0" 2, beside a margin of 6.
      const int units = (m * 4 + 3) * 3;
      EXPECT_EQ(text.find("too wide") == std::string::npos, m < 10 && 2 * units + 6 <= width);
      EXPECT_EQ(text.find("12F0") != std::string::npos, width >= 240 && m == 4) << text;
    }
  }
}

// Costs without a common measure: names stay, ends are drawn in the column they fall in.
TEST(Picture, NamesSurviveCostsThatDoNotAlign) {
  const std::string text = picture("gpipe",
                                   {.pp = 2, .micro_batches = 3},
                                   {{{Duration{10}, Duration{25}}}, Duration{1}},
                                   {.width = 100, .unit = Duration{10}});
  EXPECT_EQ(text.find("too wide"), std::string::npos) << text;
  EXPECT_NE(text.find("F0────"), std::string::npos) << text;
}

std::string row_of(const std::string& text, std::size_t number) {
  std::istringstream lines(text);
  std::string line;
  for (std::size_t i = 0; i <= number; ++i) {
    std::getline(lines, line);
  }
  return line;
}

// A letter of the coarse picture stands for its share of the time: a rank that runs forwards for
// half of it has half the columns, one that runs both in turn has columns of both.
TEST(Picture, CoarseLettersKeepTheShares) {
  const ScheduleCosts costs{.stages = {{Duration{1}, Duration{1}}}};
  const ScheduleSize size{.pp = 1, .micro_batches = 1000};
  const std::string halves = row_of(picture("gpipe", size, costs, {.width = 106}), 1);
  EXPECT_EQ(std::count(halves.begin(), halves.end(), 'F'), 50);
  EXPECT_EQ(std::count(halves.begin(), halves.end(), 'B'), 50);
  const std::string mixed = row_of(picture("1f1b", size, costs, {.width = 106}), 1);
  EXPECT_EQ(std::count(mixed.begin(), mixed.end(), 'x'), 100);
}

TEST(Picture, ManyRanksAreCut) {
  const std::string text = picture("gpipe", {.pp = 200, .micro_batches = 1}, {}, {.width = 80});
  EXPECT_NE(text.find("176 ranks not drawn"), std::string::npos);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 30);
}

// By hand from the published steps for p = 2, m = 4 (no rank waits): a unit of two actions is one
// box, the second copy of the model has small letters.
TEST(Picture, OverlappedUnitsAndCopies) {
  EXPECT_EQ(picture("dualpipe", {.pp = 2, .micro_batches = 4}, {}, {.width = 80}),
            "time  0   2   4   6   8   10\n"
            "   0  F0f2F1b2──f3&B0─b3──I1W1\n"
            "   1  f2F0f3B0──F1&b2─B1──i3w3\n"
            "      F0: forward of micro-batch 0; B backward, I input half of a backward, W\n"
            "      weight half, F3&B1 one overlapped unit, small letters: the second copy of\n"
            "      the model, dots idle\n");
}

// As two actions, the unit's forward and backward stand side by side.
TEST(Picture, SequentialUnitsAreTwoBoxes) {
  const std::string text =
      picture("1f1b-overlap", {.pp = 1, .micro_batches = 2}, {.sequential = true}, {.width = 80});
  EXPECT_EQ(row_of(text, 1), "   0  F0F1B0──B1──");
  EXPECT_EQ(row_of(picture("1f1b-overlap", {.pp = 1, .micro_batches = 2}, {}, {.width = 80}), 1),
            "   0  F0F1&B0─B1──");
}

TEST(Picture, SplitBackwards) {
  const std::string text = picture("zb-h1", {.pp = 2, .micro_batches = 2}, {}, {.width = 80});
  EXPECT_EQ(row_of(text, 1), "   0  F0F1··I0W0I1W1");
  EXPECT_EQ(row_of(text, 2), "   1  ··F0I0F1I1W0W1");
  EXPECT_NE(text.find("I input half of a backward, W weight half"), std::string::npos) << text;
  EXPECT_EQ(text.find("B backward"), std::string::npos) << text;
}

// Slices are named while there is room, then left out, and the last line says so.
TEST(Picture, Slices) {
  const ScheduleSize size{.pp = 1, .micro_batches = 2, .slices = 2};
  const std::string wide = picture("seq1f1b", size, {}, {.width = 80});
  EXPECT_NE(row_of(wide, 1).find("F0.0"), std::string::npos) << wide;
  EXPECT_NE(wide.find("micro-batch 0, slice 1"), std::string::npos) << wide;
  const std::string narrow = picture("seq1f1b", size, {}, {.width = 40});
  EXPECT_NE(row_of(narrow, 1).find("F0F0"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("slices left"), std::string::npos) << narrow;
}

// Where names have no room but moments do, a column never straddles two of them: no mixtures.
TEST(Picture, LettersKeepToMoments) {
  const std::string text = picture("1f1b", {.pp = 4, .micro_batches = 30}, {}, {.width = 110});
  EXPECT_NE(text.find("too wide"), std::string::npos) << text;
  for (std::size_t row = 1; row <= 4; ++row) {
    EXPECT_EQ(row_of(text, row).find_first_of("x:"), std::string::npos) << text;
  }
}

// A mixed column is told apart when a fifth of it is idle: on two ranks 1f1b waits 2c in two
// micro-batches, 10 of every 40 here.
TEST(Picture, MixedColumnsTellIdleTime) {
  const ScheduleCosts costs{.stages = {{Duration{10}, Duration{20}}}, .p2p = Duration{10}};
  const ScheduleSize size{.pp = 2, .micro_batches = 4000};
  const std::string idle = row_of(picture("1f1b", size, costs, {.width = 106}), 1);
  EXPECT_GT(std::count(idle.begin(), idle.end(), ':'), 90);
  const std::string busy = row_of(picture("1f1b", size, {}, {.width = 106}), 1);
  EXPECT_GT(std::count(busy.begin(), busy.end(), 'x'), 90);
}

TEST(Picture, NothingTakesTime) {
  EXPECT_EQ(picture("gpipe",
                    {.pp = 2, .micro_batches = 1},
                    {{{Duration{0}, Duration{0}}}, Duration{0}},
                    {.width = 80}),
            "nothing takes time\n");
}

TEST(ExactDecimal, PrintsEveryDigit) {
  EXPECT_EQ(exact_decimal(Duration{33}, Duration{1}), "33");
  EXPECT_EQ(exact_decimal(Duration{33}, Duration{10}), "3.3");
  EXPECT_EQ(exact_decimal(Duration{30}, Duration{10}), "3");
  EXPECT_EQ(exact_decimal(Duration{-5}, Duration{100}), "-0.05");
  EXPECT_EQ(exact_decimal(Duration{1'000'001}, Duration{1'000'000}), "1.000001");
  EXPECT_EQ(exact_decimal(Duration{0}, Duration{1000}), "0");
}

}  // namespace
}  // namespace foretrain
