#include "sim/report/exact_parts.h"

#include "sim/base/random.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

/// Twelve random parts, some zero, of up to 2^(4 .. 48) picoseconds each.
std::vector<Duration> random_parts(std::uint64_t draw) {
  std::vector<Duration> parts;
  const auto bits = 4 + static_cast<int>(random_bits(1, draw, 100) % 45);
  for (std::uint64_t i = 0; i < 12; ++i) {
    const std::uint64_t value = random_bits(1, draw, i);
    const bool zero = value % 4 == 0;
    parts.push_back(Duration{zero ? 0 : static_cast<std::int64_t>(value >> (64 - bits))});
  }
  return parts;
}

// The parts of a breakdown add up to the step exactly: as doubles, from the left, from the right,
// and each still says its integer picoseconds.
TEST(ExactParts, AddUpInAnyOrderAndReadBack) {
  for (std::uint64_t draw = 0; draw < 20'000; ++draw) {
    const std::vector<Duration> parts = random_parts(draw);
    const Duration total = std::accumulate(parts.begin(), parts.end(), Duration{0});
    const std::vector<double> values = exact_seconds(parts, total);
    ASSERT_EQ(std::accumulate(values.begin(), values.end(), 0.0), seconds(total)) << draw;
    ASSERT_EQ(std::accumulate(values.rbegin(), values.rend(), 0.0), seconds(total)) << draw;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      ASSERT_EQ(std::llround(values[i] * 1e12), parts[i].count()) << draw;
      ASSERT_TRUE(parts[i].count() != 0 || values[i] == 0.0) << draw;
    }
  }
}

// A part can be negative when an assumption that frees something makes the step longer.
TEST(ExactParts, TakesNegativeParts) {
  const std::vector<Duration> parts = {
      Duration{700'000'000'007}, Duration{-33'333'333'333}, Duration{1'234'567}};
  const std::vector<double> values = exact_seconds(parts, parts[0] + parts[1] + parts[2]);
  EXPECT_EQ(values[0] + values[1] + values[2], seconds(parts[0] + parts[1] + parts[2]));
  EXPECT_EQ(std::llround(values[1] * 1e12), parts[1].count());
}

TEST(ExactParts, NothingIsNothing) {
  const std::vector<Duration> parts(12, Duration{0});
  EXPECT_EQ(exact_seconds(parts, Duration{0}), std::vector<double>(12, 0.0));
}

}  // namespace
}  // namespace foretrain
