#include "tests/schedule/longest_path.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

/// Rule: every size of p <= 6, m <= 12, v <= 4, slices <= 3 and every group is either refused by
/// the stated constraint or a valid list without deadlock; both evaluators give every action the
/// same start and end.
namespace foretrain {
namespace {

bool megatron_group(const ScheduleSize& size) {
  const int g = size.group == 0 ? size.pp : size.group;
  const int rest = size.micro_batches % g;
  return size.pp <= g && g <= size.micro_batches && (rest == 0 || rest >= size.pp);
}

/// What each schedule's own definition asks of p, m, v and g.
bool legal(const std::string& name, const ScheduleSize& size) {
  const int p = size.pp;
  const int m = size.micro_batches;
  if (name == "interleaved") {
    return megatron_group(size);
  }
  if (name == "interleaved-overlap") {
    return megatron_group(size) && (p == 1 || size.vpp > 1);
  }
  if (name == "interleaved-pytorch" || name == "zb-interleaved") {
    return m < p || m % (m / p) == 0;
  }
  if (name == "dualpipe") {
    return p % 2 == 0 && m % 2 == 0 && m >= 2 * p;
  }
  return name != "dualpipev" || m >= 2 * p;
}

bool takes(const ScheduleEntry& entry, const ScheduleSize& size) {
  static const std::set<std::string> in_a_v = {"zb-v", "v-half", "v-min", "dualpipev"};
  static const std::set<std::string> loops = {
      "interleaved", "interleaved-pytorch", "interleaved-overlap", "looped-bfs", "zb-interleaved"};
  const std::string name(entry.name);
  const bool grouped = name == "interleaved" || name == "interleaved-overlap";
  const bool chunks = in_a_v.contains(name) ? size.vpp == 2 : size.vpp == 1 || loops.contains(name);
  return chunks && (size.group == 0 || grouped) && (size.slices == 1 || name == "seq1f1b");
}

/// Where a stage lies, written out again.
int owner(const ScheduleEntry& entry, int p, const Action& action) {
  switch (entry.placement) {
    case Placement::kLinear:
      return action.stage;
    case Placement::kLoop:
      return action.stage % p;
    case Placement::kV:
      return action.stage < p ? action.stage : 2 * p - 1 - action.stage;
    case Placement::kBidirectional:
      break;
  }
  return action.copy == 0 ? action.stage : p - 1 - action.stage;
}

/// Each pass once, on its owner: F and B, or F, I and W; no cell but those of the size.
void expect_every_pass_once(const ScheduleEntry& entry, const Schedule& schedule) {
  const ScheduleSize& size = schedule.size;
  std::map<std::tuple<int, int, int>, std::string> passes;
  for (int rank = 0; rank < size.pp; ++rank) {
    const auto& list = schedule.ranks[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Action& action = list[i];
      ASSERT_EQ(owner(entry, size.pp, action), rank) << to_string(action);
      passes[{action.stage, action.micro_batch, action.slice}] +=
          "FBIW"[static_cast<std::size_t>(action.kind)];
      if (action.overlapped) {
        EXPECT_TRUE(entry.overlaps);
        ASSERT_LT(i + 1, list.size());
        EXPECT_EQ(action.kind, ActionKind::kForward);
        EXPECT_EQ(list[i + 1].kind, ActionKind::kBackward);
      }
      const bool second = entry.name == "dualpipe" && action.micro_batch >= size.micro_batches / 2;
      EXPECT_EQ(action.copy, entry.name == "dualpipe" ? int{second} : -1);
    }
  }
  EXPECT_EQ(passes.size(),
            static_cast<std::size_t>(size.pp) * static_cast<std::size_t>(size.vpp) *
                static_cast<std::size_t>(size.micro_batches) *
                static_cast<std::size_t>(size.slices));
  for (const auto& [cell, kinds] : passes) {
    EXPECT_TRUE(kinds == "FB" || (entry.splits_backward && kinds == "FIW")) << kinds;
  }
}

/// Times of every kind and of every stage are different numbers, so that no mix-up cancels out.
std::vector<ScheduleCosts> cost_sets(const Schedule& schedule) {
  std::vector<ScheduleCosts> sets(4);
  sets[0].stages = {{Duration{1}, Duration{2}, Duration{1}, Duration{1}}};
  sets[1].stages = {{Duration{7}, Duration{11}, Duration{5}, Duration{3}, Duration{13}}};
  sets[1].p2p = Duration{3};
  sets[2].stages.clear();
  for (int stage = 0; stage < schedule.stages(); ++stage) {
    sets[2].stages.push_back({Duration{3 + stage % 3},
                              Duration{7 + stage},
                              Duration{2 + stage % 4},
                              Duration{6 - stage % 5},
                              Duration{9 + 2 * stage}});
  }
  sets[2].p2p = Duration{9};
  sets[3] = sets[2];
  sets[3].sequential = true;
  return sets;
}

void expect_same_times(const Schedule& schedule, const ScheduleCosts& costs) {
  const Expected<ScheduleTiming> timing = time_schedule(schedule, costs);
  ASSERT_TRUE(timing.has_value());
  const reference::Times expected = reference::longest_path(schedule, costs);
  ASSERT_TRUE(expected.acyclic);
  EXPECT_EQ(timing->makespan.count(), expected.makespan);
  for (std::size_t rank = 0; rank < expected.end.size(); ++rank) {
    ASSERT_EQ(timing->end[rank].size(), expected.end[rank].size());
    for (std::size_t i = 0; i < expected.end[rank].size(); ++i) {
      ASSERT_EQ(timing->start[rank][i].time_since_epoch().count(), expected.start[rank][i]);
      ASSERT_EQ(timing->end[rank][i].time_since_epoch().count(), expected.end[rank][i]);
    }
  }
}

void check(const ScheduleEntry& entry, const ScheduleSize& size) {
  SCOPED_TRACE(std::string(entry.name) + " p " + std::to_string(size.pp) + " m " +
               std::to_string(size.micro_batches) + " v " + std::to_string(size.vpp) + " g " +
               std::to_string(size.group) + " k " + std::to_string(size.slices));
  const Expected<Schedule> schedule = make_schedule(entry.name, size);
  ASSERT_EQ(schedule.has_value(), takes(entry, size) && legal(std::string(entry.name), size));
  if (!schedule) {
    EXPECT_EQ(schedule.error().list[0].pointer, "/schedule");
    return;
  }
  EXPECT_EQ(schedule_faults(*schedule), std::vector<std::string>{});
  expect_every_pass_once(entry, *schedule);
  for (const ScheduleCosts& costs : cost_sets(*schedule)) {
    expect_same_times(*schedule, costs);
  }
}

class EverySmallSize : public testing::TestWithParam<std::string_view> {};

TEST_P(EverySmallSize, IsRefusedOrRuns) {
  const ScheduleEntry& entry = *find_schedule(GetParam());
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 12; ++m) {
      for (int v = 1; v <= 4; ++v) {
        for (int g = 0; g <= (entry.uses_group ? m + 1 : 1); ++g) {
          check(entry, {.pp = p, .micro_batches = m, .vpp = v, .group = g});
        }
      }
      for (int k = 2; k <= 3; ++k) {
        check(entry, {.pp = p, .micro_batches = m, .slices = k});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Exhaustive,
                         EverySmallSize,
                         testing::ValuesIn(schedule_names().begin(), schedule_names().end()),
                         [](const testing::TestParamInfo<std::string_view>& name) {
                           std::string text(name.param);
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

}  // namespace
}  // namespace foretrain
