#include "tests/schedule/closed_form.h"

#include <algorithm>

#include <gtest/gtest.h>

/// Rule: on whole grids of sizes, time and memory of schedules with whole backwards follow the
/// published closed forms exactly. T = tF + tB of one chunk; every rank is busy m v T.
namespace foretrain::closed_form {
namespace {

struct WholeCosts {
  std::int64_t forward, backward;
  std::int64_t both() const { return forward + backward; }
};
constexpr WholeCosts kCosts[] = {{1, 2}, {3, 3}, {10, 17}, {5, 1}};

/// The bubble (p-1) T, whatever the costs; overlapped units take T.
void expect_fill_and_drain(const Schedule& schedule) {
  for (const WholeCosts& t : kCosts) {
    expect_bubble(schedule, costs_of(t.forward, t.backward), (schedule.size.pp - 1) * t.both());
  }
}

// GPipe (Huang et al., 2019): fill and drain cost (p-1) T, and each of the 2 (p-1) hops adds c
// once.
TEST(ClosedForm, Gpipe) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 20; ++m) {
      const Schedule schedule = built("gpipe", {.pp = p, .micro_batches = m});
      for (const WholeCosts& t : kCosts) {
        for (const std::int64_t c : {0, 1, 7}) {
          expect_bubble(schedule, costs_of(t.forward, t.backward, c), (p - 1) * (t.both() + 2 * c));
        }
      }
      EXPECT_EQ(peak_in_flight(schedule), each_peak(schedule.size, [&](int) { return m; }));
      EXPECT_EQ(message_count(schedule), 2LL * m * (p - 1));
    }
  }
}

// PipeDream-flush (Narayanan et al., 2021): the bubble of GPipe, also for m < p, with p - r in
// flight. Eager 1F1B holds 2 (p-1-r) + 1, overlapped units one more.
TEST(ClosedForm, OneForwardOneBackward) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 20; ++m) {
      const auto check = [&](const char* name, auto window) {
        SCOPED_TRACE(name + (" p " + std::to_string(p)) + " m " + std::to_string(m));
        const Schedule schedule = built(name, {.pp = p, .micro_batches = m});
        expect_fill_and_drain(schedule);
        EXPECT_EQ(peak_in_flight(schedule), each_peak(schedule.size, [&](int rank) {
                    return std::min(m, window(p - 1 - rank));
                  }));
        EXPECT_EQ(message_count(schedule), 2LL * m * (p - 1));
      };
      check("1f1b", [](int hops) { return hops + 1; });
      check("eager-1f1b", [](int hops) { return 2 * hops + 1; });
      check("1f1b-overlap", [](int hops) { return 2 * hops + 2; });
    }
  }
}

// 1F1B shows its latency: rank 0 may run p micro-batches ahead, and a round trip takes p-1 hops
// each way, so every further window of p micro-batches pays 2 c (p-1): in all 2c [(p-1)(1 + m/p) -
// 1] for m a multiple of p and c small against tF and tB (here c <= tF / 4). Eager 1F1B has a
// window twice as long and pays each hop once, as GPipe does.
TEST(ClosedForm, OneForwardOneBackwardWithLatency) {
  for (int p = 2; p <= 8; ++p) {
    for (int m = 1; m <= 4 * p; ++m) {
      const ScheduleSize size{.pp = p, .micro_batches = m};
      if (m % p == 0) {
        const std::int64_t latency = 2 * ((p - 1) * (1 + m / p) - 1);
        expect_bubble(built("1f1b", size), costs_of(4, 8, 1), (p - 1) * 12 + latency);
      }
      for (const std::int64_t c : {1, 2, 4}) {
        expect_bubble(built("eager-1f1b", size), costs_of(4, 8, c), (p - 1) * (12 + 2 * c));
      }
    }
  }
}

/// Every legal size of p <= 6, v <= 4, m <= 14 and every group.
template <typename Check>
void each_group(const char* name, Check check) {
  int sizes = 0;
  for (int p = 1; p <= 6; ++p) {
    for (int v = p == 1 ? 1 : 2; v <= 4; ++v) {
      for (int m = p; m <= 14; ++m) {
        for (int g = p; g <= m; ++g) {
          if (m % g == 0 || m % g >= p) {
            ++sizes;
            const ScheduleSize size{.pp = p, .micro_batches = m, .vpp = v, .group = g};
            check(built(name, size));
          }
        }
      }
    }
  }
  EXPECT_GT(sizes, 600);
}

// Interleaved (Narayanan et al., 2021): the bubble is (p-1) T of one chunk whatever v and the
// group; in flight (v-1) g + 2 (p-1-r) + 1 chunks, one more with overlapped units.
TEST(ClosedForm, Interleaved) {
  for (const bool overlapped : {false, true}) {
    each_group(overlapped ? "interleaved-overlap" : "interleaved", [&](const Schedule& schedule) {
      const int p = schedule.size.pp;
      const int m = schedule.size.micro_batches;
      const int v = schedule.size.vpp;
      const int g = schedule.size.group;
      expect_fill_and_drain(schedule);
      EXPECT_EQ(peak_in_flight(schedule), each_peak(schedule.size, [&](int rank) {
                  return std::min(m * v, (v - 1) * g + 2 * (p - 1 - rank) + (overlapped ? 2 : 1));
                }));
      EXPECT_EQ(message_count(schedule), p > 1 ? 2LL * m * (p * v - 1) : 0);
    });
  }
}

// PyTorch's rounds make the same lists as a group of m / rounds.
TEST(ClosedForm, InterleavedPyTorch) {
  for (int p = 1; p <= 6; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = 1; m <= 30; ++m) {
        const int rounds = std::max(1, m / p);
        if (m % rounds != 0) {
          continue;
        }
        const Schedule schedule =
            built("interleaved-pytorch", {.pp = p, .micro_batches = m, .vpp = v});
        const int g = m / rounds;
        EXPECT_EQ(peak_in_flight(schedule), each_peak(schedule.size, [&](int rank) {
                    return std::min(m * v, (v - 1) * g + 2 * (p - 1 - rank) + 1);
                  }));
        if (m >= p) {
          expect_fill_and_drain(schedule);
          const ScheduleSize same{.pp = p, .micro_batches = m, .vpp = v, .group = g};
          EXPECT_EQ(schedule.ranks, built("interleaved", same).ranks);
        }
      }
    }
  }
}

// Breadth first (Lamy-Poirier, 2023): fewer micro-batches than ranks leave p - m gaps at every turn
// to the next chunk.
TEST(ClosedForm, LoopedBfs) {
  for (int p = 1; p <= 8; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = 1; m <= 12; ++m) {
        const Schedule schedule = built("looped-bfs", {.pp = p, .micro_batches = m, .vpp = v});
        const int gaps = p - 1 + (v - 1) * std::max(0, p - m);
        for (const WholeCosts& t : kCosts) {
          expect_bubble(schedule, costs_of(t.forward, t.backward), gaps * t.both());
        }
        EXPECT_EQ(peak_in_flight(schedule), each_peak(schedule.size, [&](int) { return m * v; }));
      }
    }
  }
}

// Seq1F1B (Sun et al., 2024): costs are per slice, and so is the bubble.
TEST(ClosedForm, Seq1F1B) {
  for (int p = 1; p <= 7; ++p) {
    for (int k = 1; k <= 5; ++k) {
      for (int m = 1; m <= 12; ++m) {
        SCOPED_TRACE(std::to_string(p) + " " + std::to_string(m) + " " + std::to_string(k));
        const Schedule schedule = built("seq1f1b", {.pp = p, .micro_batches = m, .slices = k});
        expect_fill_and_drain(schedule);
        EXPECT_EQ(peak_in_flight(schedule), each_peak(schedule.size, [&](int rank) {
                    return std::min(m * k, p - 1 - rank + k);
                  }));
        EXPECT_EQ(message_count(schedule), 2LL * m * k * (p - 1));
      }
    }
  }
}

}  // namespace
}  // namespace foretrain::closed_form
