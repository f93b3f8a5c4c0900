#include "tests/schedule/longest_path.h"

#include <gtest/gtest.h>

/// Rule: every size of p <= 6, m <= 12, v <= 4 and every group is either refused by the stated
/// constraint or a valid list without deadlock; both evaluators give every action the same end.
namespace foretrain {
namespace {

struct ChunkTimes {
  std::int64_t forward, backward, p2p;
};
constexpr ChunkTimes kTimes[] = {{1, 2, 0}, {7, 11, 3}, {2, 1, 9}};

void expect_same_ends(const Schedule& schedule, const ChunkTimes& t) {
  const Expected<ScheduleTiming> timing =
      time_schedule(schedule, {{{Duration{t.forward}, Duration{t.backward}}}, Duration{t.p2p}});
  ASSERT_TRUE(timing.has_value());
  const reference::Times expected = reference::longest_path(schedule, t.forward, t.backward, t.p2p);
  ASSERT_TRUE(expected.acyclic);
  EXPECT_EQ(timing->makespan.count(), expected.makespan);
  for (std::size_t rank = 0; rank < expected.end.size(); ++rank) {
    ASSERT_EQ(timing->end[rank].size(), expected.end[rank].size());
    for (std::size_t i = 0; i < expected.end[rank].size(); ++i) {
      ASSERT_EQ(timing->end[rank][i].time_since_epoch().count(), expected.end[rank][i]);
    }
  }
}

bool legal(const ScheduleEntry& entry, const ScheduleSize& size) {
  if ((size.vpp > 1 && entry.chunks == 1) || (size.group > 0 && !entry.uses_group)) {
    return false;
  }
  if (entry.name != "interleaved") {
    return true;
  }
  const int g = size.group == 0 ? size.pp : size.group;
  const int rest = size.micro_batches % g;
  return size.pp <= g && g <= size.micro_batches && (rest == 0 || rest >= size.pp);
}

void check(const ScheduleEntry& entry, const ScheduleSize& size) {
  SCOPED_TRACE(std::string(entry.name) + " p " + std::to_string(size.pp) + " m " +
               std::to_string(size.micro_batches) + " v " + std::to_string(size.vpp) + " g " +
               std::to_string(size.group));
  const Expected<Schedule> schedule = make_schedule(entry.name, size);
  ASSERT_EQ(schedule.has_value(), legal(entry, size));
  if (!schedule) {
    EXPECT_EQ(schedule.error().list[0].pointer, "/schedule");
    return;
  }
  EXPECT_TRUE(schedule_faults(*schedule).empty());
  for (const ChunkTimes& times : kTimes) {
    expect_same_ends(*schedule, times);
  }
}

TEST(Exhaustive, EverySmallSize) {
  for (const ScheduleEntry& entry : schedule_table()) {
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 12; ++m) {
        for (int v = 1; v <= 4; ++v) {
          for (int g = 0; g <= (entry.uses_group ? m + 1 : 1); ++g) {
            check(entry, {.pp = p, .micro_batches = m, .vpp = v, .group = g});
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace foretrain
