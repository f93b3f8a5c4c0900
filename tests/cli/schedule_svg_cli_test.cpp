#include "tests/cli/schedule_command.h"

#include <cstdio>
#include <map>

/// Rule: `--svg` draws every unit where it runs, with a legend of what occurs and nothing else;
/// what is too large for a slide is drawn as shares, not as megabytes.
namespace foretrain {
namespace {

using test::run;

std::string svg_of(const std::string& line) {
  const test::Outcome outcome = run(line + " --svg -");
  EXPECT_EQ(outcome.code, 0) << line;
  EXPECT_EQ(outcome.out.substr(0, 5), "<svg ");
  EXPECT_EQ(outcome.out.substr(outcome.out.size() - 7), "</svg>\n");
  return outcome.out;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

// One rectangle per action besides ground, rows and legend; each ends where it begins plus a width.
TEST(ScheduleSvg, DrawsEveryAction) {
  const std::string path = test::temporary("picture.svg");
  EXPECT_EQ(run("1f1b --pp 4 --micro-batches 8 --svg " + path).code, 0);
  const std::string svg = test::read_file(path);
  std::filesystem::remove(path);
  EXPECT_EQ(count(svg, "<rect"), 64U + 1 + 4 + 2);
  // The last rank never idles: it ends at (p-1) tF + m T = 27.
  EXPECT_NE(svg.find("<title>3B7: 25 to 27</title>"), std::string::npos);
  EXPECT_NE(svg.find(">makespan 33, bubble 9 a rank (27.3 % of the time)"), std::string::npos);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  EXPECT_EQ(run("1f1b --pp 4 --micro-batches 8 --svg /nowhere/a.svg").code, 3);
}

// DualPipe p = 2, m = 4: one overlapped unit a rank, drawn as two halves in a frame; 4 actions of
// the second copy on rank 0 and 5 on rank 1 (one backward there is split).
TEST(ScheduleSvg, OverlappedUnitsAndCopies) {
  const std::string svg = svg_of("dualpipe --pp 2 --micro-batches 4");
  EXPECT_EQ(count(svg, "<rect class=\"pair\""), 2U + 1);
  EXPECT_EQ(count(svg, "class=\"copy\""), 9U + 1);
  EXPECT_EQ(count(svg, "<title>(1F3@1;0B0@0)OVERLAP_F_B: 5 to 8</title>"), 2U);  // both halves
  for (const char* words : {"forward",
                            "backward",
                            "input gradient",
                            "weight gradient",
                            "one overlapped unit",
                            "second copy",
                            "2 copies of the model"}) {
    EXPECT_EQ(count(svg, words), 1U) << words;
  }
}

TEST(ScheduleSvg, LegendOfWhatOccurs) {
  const std::string whole = svg_of("1f1b --pp 2 --micro-batches 2");
  for (const char* words : {"gradient", "overlapped", "copy of", "darker"}) {
    EXPECT_EQ(count(whole, words), 0U) << words;
  }
  const std::string split = svg_of("zb-v --pp 2 --micro-batches 4");
  EXPECT_EQ(count(split, ">backward<"), 0U);
  EXPECT_EQ(count(split, "darker"), 1U);
  EXPECT_EQ(count(svg_of("seq1f1b --pp 2 --micro-batches 2 --slices 2"), "micro-batch.slice"), 1U);
  // In sequence there is no unit in one piece.
  EXPECT_EQ(count(svg_of("1f1b-overlap --pp 2 --micro-batches 4 --overlap-semantics sequential"),
                  "overlapped"),
            0U);
}

TEST(ScheduleSvg, NamesOfFilesAreEscaped) {
  const std::string path = test::temporary("a&b<c.csv");
  std::ofstream(path) << "0F0,0B0\n";
  const std::string svg = svg_of("'" + path + "'");
  std::filesystem::remove(path);
  EXPECT_NE(svg.find("a&amp;b&lt;c.csv"), std::string::npos);
}

/// Heights of the columns of shares by their place from the left, over all rows.
std::map<int, double> column_heights(const std::string& svg) {
  std::map<int, double> heights;
  for (std::size_t at = svg.find("<path class=\"share\""); at != std::string::npos;
       at = svg.find("<path class=\"share\"", at + 1)) {
    int left = 0;
    double tall = 0;
    const std::string path = svg.substr(svg.find(" d=\"M", at), 80);
    EXPECT_EQ(std::sscanf(path.c_str(), " d=\"M%d %*fh4v%lf", &left, &tall), 2) << path;
    heights[left] += tall;
  }
  return heights;
}

// 262,144 actions on 64 ranks: both ends of them, as shares of 370 columns. In the middle of the
// run all 24 rows of 20 pixels are busy all the time.
TEST(ScheduleSvg, LargeOnesAreSummarised) {
  const std::string svg = svg_of("1f1b --pp 64 --micro-batches 2048");
  EXPECT_LT(svg.size(), 4'000'000U);
  EXPECT_NE(svg.find("40 ranks not drawn"), std::string::npos);
  EXPECT_NE(svg.find("columns show shares"), std::string::npos);
  EXPECT_EQ(count(svg, ">rank "), 24U);
  const std::map<int, double> heights = column_heights(svg);
  EXPECT_EQ(heights.size(), 370U);
  EXPECT_NEAR(heights.at(80 + 4 * 185), 24 * 20, 24 * 0.11);
}

// Units of two actions fill their time once: 4 rows of 26 pixels.
TEST(ScheduleSvg, SharesOfOverlappedUnits) {
  const std::string svg = svg_of("dualpipe --pp 4 --micro-batches 1000");
  EXPECT_NEAR(column_heights(svg).at(80 + 4 * 185), 4 * 26, 4 * 0.21);
}

}  // namespace
}  // namespace foretrain
