#include "foretrain/schedule.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

/// Rule: what cannot be built or run is refused with text that says what to change; nothing hangs.
namespace foretrain {
namespace {

Diagnostic refusal(std::string_view name, const ScheduleSize& size) {
  const Expected<Schedule> schedule = make_schedule(name, size);
  return schedule ? Diagnostic{"", "accepted", ""} : schedule.error().list.at(0);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Refusal, UnknownNamesGetASuggestion) {
  const Diagnostic fault = refusal("interleave", {.pp = 2, .micro_batches = 2});
  EXPECT_EQ(fault.pointer, "/schedule");
  EXPECT_TRUE(has(fault.message, "unknown schedule \"interleave\"")) << fault.message;
  EXPECT_TRUE(has(fault.hint, "\"interleaved\"")) << fault.hint;
  EXPECT_TRUE(has(refusal("1F1B", {}).hint, "\"1f1b\""));
  EXPECT_TRUE(has(refusal("qqqqqqqq", {}).hint, "gpipe"));
  EXPECT_TRUE(has(refusal("", {}).message, "unknown"));
}

// The names that users, files and other programs hold on to.
TEST(Refusal, NamesThatAreFixed) {
  const std::vector<std::string_view> fixed = {"gpipe",
                                               "1f1b",
                                               "eager-1f1b",
                                               "1f1b-overlap",
                                               "interleaved",
                                               "looped-bfs",
                                               "interleaved-pytorch",
                                               "interleaved-overlap",
                                               "zb-h1",
                                               "zb-h2",
                                               "zb-interleaved",
                                               "zb-v",
                                               "v-half",
                                               "v-min",
                                               "dualpipe",
                                               "dualpipev",
                                               "seq1f1b"};
  EXPECT_EQ(schedule_names().size(), fixed.size());
  for (const std::string_view name : fixed) {
    const ScheduleEntry* const entry = find_schedule(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(
        refusal(name, {.pp = 2, .micro_batches = 4, .vpp = entry->chunks == 2 ? 2 : 1}).message,
        name == "interleaved-overlap" ? "interleaved-overlap needs vpp 2 or more, has 1"
                                      : "accepted");
  }
}

TEST(Refusal, ChunksWhereThereIsOne) {
  for (const char* name : {"gpipe", "1f1b"}) {
    const Diagnostic fault = refusal(name, {.pp = 4, .micro_batches = 8, .vpp = 2});
    EXPECT_EQ(fault.pointer, "/schedule");
    EXPECT_TRUE(has(fault.message, "vpp is 2")) << fault.message;
    EXPECT_TRUE(has(fault.hint, "interleaved")) << fault.hint;
    EXPECT_TRUE(has(refusal(name, {.pp = 4, .micro_batches = 8, .group = 4}).message, "group"));
  }
}

TEST(Refusal, InterleavedSaysWhichParameterToChange) {
  const Diagnostic few = refusal("interleaved", {.pp = 4, .micro_batches = 3, .vpp = 2});
  EXPECT_TRUE(has(few.message, "3 micro-batches")) << few.message;
  EXPECT_TRUE(has(few.hint, "raise micro-batches to 4")) << few.hint;
  const Diagnostic group =
      refusal("interleaved", {.pp = 4, .micro_batches = 8, .vpp = 2, .group = 9});
  EXPECT_TRUE(has(group.hint, "between 4 and 8")) << group.hint;
  const Diagnostic rest = refusal("interleaved", {.pp = 4, .micro_batches = 9, .vpp = 2});
  EXPECT_TRUE(has(rest.message, "would hold 1 micro-batch,")) << rest.message;
  EXPECT_TRUE(has(rest.hint, "8 or 12 micro-batches")) << rest.hint;
}

// Both numbers an interleaved refusal suggests are legal.
TEST(Refusal, SuggestedSizesAreLegal) {
  for (int p = 2; p <= 5; ++p) {
    for (int m = p; m <= 20; ++m) {
      if (m % p == 0) {
        continue;
      }
      ASSERT_FALSE(make_schedule("interleaved", {.pp = p, .micro_batches = m, .vpp = 2}));
      for (const int better : {m - m % p, m - m % p + p}) {
        EXPECT_TRUE(make_schedule("interleaved", {.pp = p, .micro_batches = better, .vpp = 2}));
      }
      EXPECT_TRUE(
          make_schedule("interleaved", {.pp = p, .micro_batches = m, .vpp = 2, .group = m}));
    }
  }
}

std::string refusal_text(std::string_view name, const ScheduleSize& size) {
  const Diagnostic fault = refusal(name, size);
  return fault.message + " | " + fault.hint;
}

TEST(Refusal, DualPipeSaysWhatItNeeds) {
  EXPECT_EQ(
      refusal_text("dualpipe", {.pp = 16, .micro_batches = 16}),
      "dualpipe needs 32 micro-batches or more, has 16 | raise global_batch_size, or lower pp");
  EXPECT_EQ(
      refusal_text("dualpipe", {.pp = 5, .micro_batches = 40}),
      "dualpipe needs an even pp, has 5 | take pp 4 or 6, or dualpipev, which runs on any pp");
  EXPECT_EQ(refusal_text("dualpipe", {.pp = 1, .micro_batches = 40}),
            "dualpipe needs an even pp, has 1 | take pp 2, or dualpipev, which runs on any pp");
  EXPECT_EQ(
      refusal_text("dualpipe", {.pp = 4, .micro_batches = 9}),
      "dualpipe sends half of the micro-batches each way, has 9 | take 8 or 10 micro-batches");
  EXPECT_EQ(
      refusal_text("dualpipev", {.pp = 4, .micro_batches = 7, .vpp = 2}),
      "dualpipev needs 8 micro-batches or more, has 7 | raise global_batch_size, or lower pp");
}

TEST(Refusal, FoldedSchedulesRunTwoChunks) {
  for (const char* name : {"zb-v", "v-half", "v-min", "dualpipev"}) {
    for (const int vpp : {1, 3}) {
      EXPECT_EQ(refusal_text(name, {.pp = 4, .micro_batches = 8, .vpp = vpp}),
                name + (" folds 2 chunks onto each rank, vpp is " + std::to_string(vpp)) +
                    " | leave vpp out, or set it to 2");
    }
  }
}

TEST(Refusal, RoundsThatAreNotEqual) {
  EXPECT_EQ(
      refusal_text("interleaved-pytorch", {.pp = 4, .micro_batches = 9, .vpp = 2}),
      "interleaved-pytorch cuts micro-batches into 2 equal rounds, one for every pp of them: "
      "pp 4, 9 micro-batches, 1 left over | take 8 or 10 micro-batches, or interleaved with a "
      "group");
  EXPECT_EQ(refusal("zb-interleaved", {.pp = 4, .micro_batches = 19, .vpp = 2}).hint,
            "take 16 or 20 micro-batches, or zb-h1, which runs any number on one chunk a rank");
}

// What the hint of every refused round offers is legal, and nearest.
TEST(Refusal, SuggestedRoundsAreLegal) {
  int refused = 0;
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 60; ++m) {
      const auto legal = [&](int count) {
        return make_schedule("zb-interleaved", {.pp = p, .micro_batches = count, .vpp = 2})
            .has_value();
      };
      if (legal(m)) {
        continue;
      }
      ++refused;
      int below = m;
      int above = m;
      while (!legal(below)) {
        --below;
      }
      while (!legal(above)) {
        ++above;
      }
      const std::string hint =
          refusal("zb-interleaved", {.pp = p, .micro_batches = m, .vpp = 2}).hint;
      EXPECT_TRUE(has(hint, "take " + std::to_string(below) + " or " + std::to_string(above) + " "))
          << p << " " << m << ": " << hint;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(Refusal, SlicesBeyondWhatAnActionHolds) {
  EXPECT_TRUE(has(refusal_text("seq1f1b", {.pp = 1, .micro_batches = 1, .slices = 40000}),
                  "at most 32767 slices, slices is 40000"));
  EXPECT_EQ(refusal_text("1f1b", {.pp = 2, .micro_batches = 4, .slices = 2}),
            "1f1b does not cut micro-batches into slices, slices is 2 | leave slices out, or take "
            "seq1f1b");
}

TEST(Refusal, EveryFaultAtOnce) {
  const Expected<Schedule> schedule =
      make_schedule("1f1b", {.pp = 0, .micro_batches = -1, .vpp = 3, .group = -2});
  ASSERT_FALSE(schedule.has_value());
  EXPECT_EQ(schedule.error().list.size(), 4U);
}

TEST(Refusal, SizesThatWouldNotFitInMemory) {
  constexpr std::int32_t kHuge = std::numeric_limits<std::int32_t>::max();
  EXPECT_TRUE(has(refusal("gpipe", {.pp = kHuge, .micro_batches = kHuge}).message, "too large"));
  EXPECT_TRUE(
      has(refusal("interleaved", {.pp = 2, .micro_batches = kHuge - 1, .vpp = kHuge}).message,
          "too large"));
}

TEST(Refusal, CostsThatAreNegativeOrOverflow) {
  const Expected<Schedule> schedule = make_schedule("1f1b", {.pp = 2, .micro_batches = 2});
  ASSERT_TRUE(schedule.has_value());
  EXPECT_FALSE(time_schedule(*schedule, {{{Duration{-1}, Duration{2}}}, Duration{0}}));
  EXPECT_FALSE(time_schedule(*schedule, {{{Duration::max(), Duration{2}}}, Duration{0}}));
  EXPECT_FALSE(time_schedule(*schedule, {{{Duration{1}, Duration{2}}}, Duration::max()}));
  EXPECT_TRUE(time_schedule(*schedule, {{{Duration{0}, Duration{0}}}, Duration{0}}));
}

// Rank 0 waits for the backward of micro-batch 0 before its second forward; rank 1 wants both
// first.
TEST(Deadlock, ShowsTheBlockedGrid) {
  const Expected<Schedule> schedule = parse_schedule_csv("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  ASSERT_TRUE(schedule.has_value());
  const Expected<ScheduleTiming> timing = time_schedule(*schedule, {});
  ASSERT_FALSE(timing.has_value());
  const std::string message = timing.error().list[0].message;
  EXPECT_TRUE(has(message, "deadlock after 2 of 8 actions")) << message;
  EXPECT_TRUE(has(message, "rank 0: 0F0 [0B0] 0F1 0B1   waits for 1B0 of rank 1")) << message;
  EXPECT_TRUE(has(message, "rank 1: 1F0 [1F1] 1B0 1B1   waits for 0F1 of rank 0")) << message;
  EXPECT_EQ(find_deadlock(*schedule), message);
  EXPECT_EQ(schedule_faults(*schedule), std::vector<std::string>{message});
}

// Each way to spoil a good list is found; an untouched one passes.
TEST(Faults, SpoiltLists) {
  const Expected<Schedule> good = make_schedule("1f1b", {.pp = 2, .micro_batches = 2});
  ASSERT_TRUE(good.has_value());
  EXPECT_TRUE(schedule_faults(*good).empty());
  const auto spoilt = [&](auto&& change) {
    Schedule schedule = *good;
    change(schedule.ranks);
    const std::vector<std::string> faults = schedule_faults(schedule);
    return faults.empty() ? std::string("valid") : faults[0];
  };
  EXPECT_TRUE(has(spoilt([](auto& ranks) { ranks[0].pop_back(); }), "0B1 is missing"));
  EXPECT_TRUE(has(spoilt([](auto& ranks) { ranks[0].push_back(ranks[0][0]); }), "stands twice"));
  EXPECT_TRUE(has(spoilt([](auto& ranks) { ranks[0][0].stage = 1; }), "belongs to rank 1"));
  EXPECT_TRUE(has(spoilt([](auto& ranks) { ranks[0][0].micro_batch = 2; }), "is outside"));
  EXPECT_TRUE(
      has(spoilt([](auto& ranks) { std::swap(ranks[1][0], ranks[1][1]); }), "before its forward"));
  EXPECT_TRUE(has(spoilt([](auto& ranks) { ranks.pop_back(); }), "1 lists for pp 2"));
}

}  // namespace
}  // namespace foretrain
