#include "sim/base/random.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace foretrain {
namespace {

TEST(Random, DrawsDependOnTheirKeyAlone) {
  EXPECT_EQ(random_bits(1, 2, 3), random_bits(1, 2, 3));
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    seen.insert(random_bits(0, 0, i));
    seen.insert(random_bits(0, 1, i));
    seen.insert(random_bits(1, 0, i));
  }
  EXPECT_EQ(seen.size(), 3000U);
}

TEST(Random, NormalHasTheMomentsOfANormal) {
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random_normal(7, 0, static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  // Standard errors: 1 / sqrt(n) = 0.0022 and sqrt(2 / n) = 0.0032; five of each.
  EXPECT_NEAR(sum / kDraws, 0.0, 0.011);
  EXPECT_NEAR(squares / kDraws, 1.0, 0.016);
}

}  // namespace
}  // namespace foretrain
