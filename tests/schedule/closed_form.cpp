#include "tests/schedule/closed_form.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace foretrain::closed_form {
namespace {

std::vector<std::int64_t> counts(const std::vector<Duration>& durations) {
  std::vector<std::int64_t> values;
  for (const Duration duration : durations) {
    values.push_back(duration.count());
  }
  return values;
}

}  // namespace

Schedule built(const char* name, const ScheduleSize& size) {
  Expected<Schedule> schedule = make_schedule(name, size);
  EXPECT_TRUE(schedule.has_value()) << name << " " << size.pp << " " << size.micro_batches;
  return schedule ? *schedule : Schedule{};
}

ScheduleCosts costs_of(std::int64_t forward, std::int64_t backward, std::int64_t p2p) {
  ScheduleCosts costs;
  costs.stages = {{Duration{forward}, Duration{backward}}};
  costs.p2p = Duration{p2p};
  return costs;
}

ScheduleCosts costs_of(const SplitCosts& costs) {
  ScheduleCosts all = costs_of(costs.forward, costs.backward());
  all.stages[0].input_gradient = Duration{costs.input};
  all.stages[0].weight_gradient = Duration{costs.weight};
  all.stages[0].overlapped = Duration{costs.unit()};
  return all;
}

Figures figures(const Schedule& schedule, const ScheduleCosts& costs) {
  const Expected<ScheduleTiming> timing = time_schedule(schedule, costs);
  EXPECT_TRUE(timing.has_value());
  if (!timing) {
    return {};
  }
  const auto spans = counts(timing->span_bubble);
  return {timing->makespan.count(),
          counts(timing->busy),
          counts(timing->bubble),
          spans,
          *std::max_element(spans.begin(), spans.end())};
}

void expect_bubble(const Schedule& schedule, const ScheduleCosts& costs, std::int64_t bubble) {
  const Figures got = figures(schedule, costs);
  const ScheduleSize& size = schedule.size;
  const std::int64_t busy = std::int64_t{size.micro_batches} * size.vpp * size.slices *
                            (costs.stages.front().forward + costs.stages.front().backward).count();
  const auto ranks = static_cast<std::size_t>(size.pp);
  EXPECT_EQ(got.makespan, busy + bubble);
  EXPECT_EQ(got.busy, std::vector<std::int64_t>(ranks, busy));
  EXPECT_EQ(got.bubble, std::vector<std::int64_t>(ranks, bubble));
}

}  // namespace foretrain::closed_form
