#include "foretrain/schedule.h"

#include <benchmark/benchmark.h>

/// Time to build and to time every schedule of the table at 64 ranks and 1,024 micro-batches, and
/// of V-Half, which searches for room, over the number of micro-batches.
namespace foretrain {
namespace {

ScheduleSize size_of(const ScheduleEntry& entry, std::int64_t micro_batches) {
  return {.pp = 64,
          .micro_batches = static_cast<std::int32_t>(micro_batches),
          .vpp = entry.chunks == 0 ? 4 : entry.chunks,
          .slices = entry.uses_slices ? 4 : 1};
}

void BM_Schedule(benchmark::State& state) {
  const ScheduleEntry& entry = schedule_table()[static_cast<std::size_t>(state.range(0))];
  state.SetLabel(std::string(entry.name));
  for (auto _ : state) {
    const Expected<Schedule> schedule = make_schedule(entry.name, size_of(entry, 1024));
    benchmark::DoNotOptimize(time_schedule(*schedule, {}));
  }
}
BENCHMARK(BM_Schedule)->DenseRange(0, 16)->Unit(benchmark::kMillisecond);

void BM_VHalfLists(benchmark::State& state) {
  const ScheduleEntry& entry = *find_schedule("v-half");
  for (auto _ : state) {
    benchmark::DoNotOptimize(make_schedule(entry.name, size_of(entry, state.range(0))));
  }
}
BENCHMARK(BM_VHalfLists)->RangeMultiplier(4)->Range(16, 4096)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretrain

BENCHMARK_MAIN();
