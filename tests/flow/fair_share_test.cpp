#include "tests/flow/progressive_filling.h"

#include "foretrain/flow.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

/// Rule: no link carries more than it can, and every transfer is at its limit or has a full link on
/// which none is faster.
namespace foretrain {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

std::vector<double> share(const std::vector<double>& capacities,
                          const std::vector<filling::Wanted>& wanted) {
  FairShare fair(capacities);
  std::vector<std::int32_t> numbers;
  for (const filling::Wanted& one : wanted) {
    numbers.push_back(fair.start(one.uses, static_cast<double>(one.limit)));
  }
  fair.share();
  std::vector<double> rates;
  for (const std::int32_t number : numbers) {
    rates.push_back(fair.rate(number));
  }
  return rates;
}

TEST(FairShare, OneAloneGetsTheSlowestLinkOfItsRoute) {
  EXPECT_EQ(share({10, 4, 8}, {{{{0, 1}, {1, 1}, {2, 1}}, kNoLimit}}), (std::vector<double>{4}));
}

TEST(FairShare, TwoShareAlike) {
  EXPECT_EQ(share({10}, {{{{0, 1}}, kNoLimit}, {{{0, 1}}, kNoLimit}}), (std::vector<double>{5, 5}));
}

/// What one does not use because of its limit is the other's.
TEST(FairShare, ALimitLeavesTheRestToOthers) {
  EXPECT_EQ(share({10}, {{{{0, 1}}, 2}, {{{0, 1}}, kNoLimit}}), (std::vector<double>{2, 8}));
}

/// Three links in a row, one transfer over all, one over each: capacities 1, 2, 4. The long one and
/// the first share the first link (1/2 each), the others have what is left: 3/2 and 7/2.
TEST(FairShare, ParkingLot) {
  EXPECT_EQ(share({1, 2, 4},
                  {{{{0, 1}, {1, 1}, {2, 1}}, kNoLimit},
                   {{{0, 1}}, kNoLimit},
                   {{{1, 1}}, kNoLimit},
                   {{{2, 1}}, kNoLimit}}),
            (std::vector<double>{0.5, 0.5, 1.5, 3.5}));
}

/// Rates grow alike; a transfer of weight 3 fills the link three times as fast: r + 3 r = 8.
TEST(FairShare, WeightsCountOnTheLinkNotInTheRate) {
  EXPECT_EQ(share({8}, {{{{0, 1}}, kNoLimit}, {{{0, 3}}, kNoLimit}}), (std::vector<double>{2, 2}));
}

/// Two links of 10: A on both, B on the first, C and D on the second: the second fills at 10/3,
/// then B has the rest of the first.
TEST(FairShare, TheSlowerLinkDecidesFirst) {
  const std::vector<double> rates = share({10, 10},
                                          {{{{0, 1}, {1, 1}}, kNoLimit},
                                           {{{0, 1}}, kNoLimit},
                                           {{{1, 1}}, kNoLimit},
                                           {{{1, 1}}, kNoLimit}});
  EXPECT_DOUBLE_EQ(rates[0], 10.0 / 3);
  EXPECT_DOUBLE_EQ(rates[1], 20.0 / 3);
  EXPECT_DOUBLE_EQ(rates[2], 10.0 / 3);
  EXPECT_DOUBLE_EQ(rates[3], 10.0 / 3);
}

TEST(FairShare, WhoEndsGivesItsShareBack) {
  FairShare fair({10});
  const std::int32_t first = fair.start(std::vector<LinkUse>{{0, 1}}, kNoLimit);
  const std::int32_t second = fair.start(std::vector<LinkUse>{{0, 1}}, kNoLimit);
  EXPECT_EQ(fair.share().size(), 2U);
  fair.end(first);
  const auto changed = fair.share();
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed[0], second);
  EXPECT_EQ(fair.rate(second), 10);
}

/// A change reaches those that share nothing with it through others: freeing link 0 lets A grow,
/// which takes from B on link 1.
TEST(FairShare, AChangeIsFollowedOutwards) {
  FairShare fair({2, 10});
  const std::int32_t a = fair.start(std::vector<LinkUse>{{0, 1}, {1, 1}}, kNoLimit);
  const std::int32_t rival = fair.start(std::vector<LinkUse>{{0, 1}}, kNoLimit);
  const std::int32_t b = fair.start(std::vector<LinkUse>{{1, 1}}, kNoLimit);
  fair.share();
  EXPECT_EQ(fair.rate(b), 9);
  fair.end(rival);
  fair.share();
  EXPECT_EQ(fair.rate(a), 2);
  EXPECT_EQ(fair.rate(b), 8);
}

/// What comes and goes leaves link 0 held at 4 but for rounding, with one on it, held by link 2,
/// that is to grow again: 4 must not hold it there. The last rates are 13/3 and 13/3
/// on link 0, 10/3 on link 3 and 4/3 for the three on link 1.
TEST(FairShare, ALevelReachedButForRoundingHoldsNobody) {
  FairShare fair({12, 4, 6, 6});
  const auto start = [&fair](const std::vector<std::int32_t>& links, double limit) {
    std::vector<LinkUse> uses;
    for (const std::int32_t link : links) {
      uses.push_back({link, 1});
    }
    const std::int32_t number = fair.start(uses, limit);
    fair.share();
    return number;
  };
  const auto end = [&fair](std::int32_t number) {
    fair.end(number);
    fair.share();
  };
  const std::int32_t everywhere = start({0, 1, 2, 3}, kNoLimit);
  const std::int32_t a = start({0, 2}, kNoLimit);
  const std::int32_t b = start({0, 3}, 9);
  end(start({0, 2, 3}, 1));
  const std::int32_t c = start({1, 2, 3}, kNoLimit);
  const std::int32_t d = start({0}, 5);
  const std::int32_t e = start({1}, 8);
  end(everywhere);
  const std::int32_t f = start({1, 3}, 2);
  EXPECT_DOUBLE_EQ(fair.rate(a), 13.0 / 3);
  EXPECT_DOUBLE_EQ(fair.rate(b), 10.0 / 3);
  EXPECT_DOUBLE_EQ(fair.rate(c), 4.0 / 3);
  EXPECT_DOUBLE_EQ(fair.rate(d), 13.0 / 3);
  EXPECT_DOUBLE_EQ(fair.rate(e), 4.0 / 3);
  EXPECT_DOUBLE_EQ(fair.rate(f), 4.0 / 3);
}

/// Random transfers come and go; after each change the rates are those of filling from nothing.
TEST(FairShare, RandomNetworksFollowTheDefinition) {
  for (std::uint32_t seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&random](int low, int high) {
      return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
    };
    const int links = pick(1, 12);
    std::vector<double> capacities;
    for (int link = 0; link < links; ++link) {
      capacities.push_back(pick(1, 40) * (seed % 2 == 0 ? 1.0 : 0.37));
    }
    FairShare fair(capacities);
    std::vector<filling::Wanted> wanted;
    std::vector<std::int32_t> numbers;
    for (int change = 0; change < 60; ++change) {
      if (!wanted.empty() && pick(0, 2) == 0) {
        const std::size_t gone = random() % wanted.size();
        fair.end(numbers[gone]);
        wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(gone));
        numbers.erase(numbers.begin() + static_cast<std::ptrdiff_t>(gone));
      } else {
        filling::Wanted one;
        for (int link = 0; link < links; ++link) {
          if (pick(0, 2) == 0) {
            one.uses.push_back({link, pick(0, 3) == 0 ? pick(1, 5) * 0.5 : 1.0});
          }
        }
        one.limit = one.uses.empty() || pick(0, 1) == 0 ? pick(1, 20) : 1e30L;
        numbers.push_back(fair.start(one.uses, static_cast<double>(one.limit)));
        wanted.push_back(one);
      }
      if (pick(0, 1) == 0) {
        continue;  // several changes at once
      }
      fair.share();
      const std::vector<long double> right = filling::rates(capacities, wanted);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_NEAR(fair.rate(numbers[i]),
                    static_cast<double>(right[i]),
                    1e-9 * static_cast<double>(right[i]))
            << "seed " << seed << " change " << change << " transfer " << i;
      }
    }
  }
}

}  // namespace
}  // namespace foretrain
