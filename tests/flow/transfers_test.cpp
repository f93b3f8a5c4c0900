#include "tests/flow/progressive_filling.h"

#include "foretrain/flow.h"

#include <map>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

/// Rule: a transfer that never shares takes exactly its own time; others end when their share of
/// the links has carried them, never early, at most 1e-9 or 2 ps late.
namespace foretrain {
namespace {

Instant at(std::int64_t picoseconds) {
  return Instant{Duration{picoseconds}};
}

/// Runs them; ends by index.
std::vector<std::int64_t> run(Transfers& transfers, const std::vector<filling::Timed>& all) {
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&all](std::size_t a, std::size_t b) {
    return all[a].start < all[b].start;
  });
  std::vector<std::int64_t> ends(all.size(), -1);
  std::size_t next = 0;
  while (true) {
    const std::optional<Instant> end = transfers.next_end();
    const bool starts = next < order.size();
    if (!starts && !end) {
      return ends;
    }
    const Instant start = starts ? at(all[order[next]].start) : Instant::max();
    if (end && *end <= start) {
      for (const std::int64_t tag : transfers.take_ended(*end)) {
        ends[static_cast<std::size_t>(tag)] = end->time_since_epoch().count();
      }
    } else {
      const filling::Timed& one = all[order[next]];
      transfers.begin(start,
                      one.wanted.uses,
                      static_cast<double>(one.wanted.limit),
                      Duration{one.alone},
                      static_cast<std::int64_t>(order[next]));
      ++next;
    }
  }
}

TEST(Transfers, AloneTakesItsOwnTimeToThePicosecond) {
  Transfers transfers({7.0, 3.0});
  EXPECT_EQ(run(transfers,
                {{{{{0, 1}}, 3.1L}, 5, 1'000'000'000'001},
                 {{{{1, 1}}, 2.9L}, 7, 333'333'333'333},
                 {{{}, 1.0L}, 9, 12},
                 {{{{0, 1}}, 3.9L}, 11, 0}}),
            (std::vector<std::int64_t>{1'000'000'000'006, 333'333'333'340, 21, 11}));
}

/// 100 ps each at the full rate of one link, the second 40 ps later: the first has 60 ps left and
/// needs 120 at half the rate (ends at 160), the second then has 40 left: 200.
TEST(Transfers, TheLaterSharesUntilTheFirstEnds) {
  Transfers transfers({5.0});
  EXPECT_EQ(run(transfers, {{{{{0, 1}}, 5.0L}, 0, 100}, {{{{0, 1}}, 5.0L}, 40, 100}}),
            (std::vector<std::int64_t>{160, 200}));
}

/// A third of the rate for 10 ps of work: 30 ps; 10 at a third of 3 x as fast ... rounded up.
/// Two that could take 2 of 3 get 1.5 each: 100 ps take 133 1/3, and nothing ends early.
TEST(Transfers, EndsAreRoundedUp) {
  Transfers transfers({3.0});
  EXPECT_EQ(run(transfers, {{{{{0, 1}}, 2.0L}, 0, 100}, {{{{0, 1}}, 2.0L}, 0, 100}}),
            (std::vector<std::int64_t>{134, 134}));
}

TEST(Transfers, EqualOnesEndAtOnce) {
  Transfers transfers({1.0});
  std::vector<filling::Timed> all(7, {{{{0, 1}}, 1.0L}, 3, 1'000'003});
  for (const std::int64_t end : run(transfers, all)) {
    EXPECT_EQ(end, 3 + 7 * 1'000'003);
  }
}

std::vector<filling::Timed> random_transfers(std::mt19937& random, int links, int count) {
  const auto pick = [&random](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  std::vector<filling::Timed> all;
  for (int i = 0; i < count; ++i) {
    filling::Timed one;
    for (int link = 0; link < links; ++link) {
      if (pick(0, 3) == 0) {
        one.wanted.uses.push_back({link, pick(0, 3) == 0 ? 0.5 : 1.0});
      }
    }
    one.wanted.limit = pick(1, 30);
    one.start = pick(0, 20) * 1'000'000;
    one.alone = pick(1, 1'000'000) * 17;
    all.push_back(one);
  }
  return all;
}

TEST(Transfers, StaggeredOnesFollowTheDefinition) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const int links = 1 + static_cast<int>(random() % 10);
    std::vector<double> capacities;
    for (int link = 0; link < links; ++link) {
      capacities.push_back(static_cast<double>(1 + random() % 30));
    }
    const std::vector<filling::Timed> all = random_transfers(random, links, 40);
    Transfers transfers(capacities);
    const std::vector<std::int64_t> ends = run(transfers, all);
    const std::vector<long double> right = filling::ends(capacities, all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double exact = static_cast<double>(right[i]);
      EXPECT_NEAR(static_cast<double>(ends[i]), exact, std::max(1e-9 * exact, 2.0))
          << "seed " << seed << " transfer " << i;
    }
  }
}

TEST(Transfers, TheOrderInWhichTheyAreNamedDoesNotMatter) {
  std::mt19937 random(11);
  std::vector<filling::Timed> all = random_transfers(random, 6, 60);
  Transfers forwards({9, 5, 7, 3, 8, 4});
  const std::vector<std::int64_t> ends = run(forwards, all);
  std::reverse(all.begin(), all.end());
  Transfers backwards({9, 5, 7, 3, 8, 4});
  std::vector<std::int64_t> other = run(backwards, all);
  std::reverse(other.begin(), other.end());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(ends[i]), static_cast<double>(other[i]), 1.0) << i;
  }
}

}  // namespace
}  // namespace foretrain
