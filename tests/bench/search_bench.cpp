#include "foretrain/search.h"

#include <cstddef>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

/// Layouts per second of the closed form on one core: alone, and in a search with its rules,
/// ranking and smallest cluster. 10,000 must take less than 0.1 s.
namespace foretrain {
namespace {

constexpr std::size_t kLayouts = 10'000;

TrainingJob job_of(const std::string& model, std::int64_t gpus, std::int64_t sequence) {
  const Expected<TrainingJob> job = read_job(model, "dgx-h100-ndr400", gpus, sequence, 2048);
  return job ? *job : TrainingJob{};
}

SearchOptions wide_search(const TrainingJob& job) {
  SearchOptions options;
  options.assumptions = default_assumptions(ClosedForm::kChapter, job.model, job.hardware);
  options.simulate = 0;
  options.threads = 1;
  options.axes.micro_batch_sizes = {1, 2, 4, 8};
  options.axes.vpp = {1, 2, 4};
  options.axes.recompute_layers = {kRecomputeAsNeeded, 0, kRecomputeAll};
  options.axes.shardings = {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3};
  options.axes.schedules = {"gpipe", "1f1b", "interleaved"};
  options.axes.orders = {
      "tp-cp-ep-dp-pp", "tp-cp-pp-ep-dp", "tp-pp-cp-ep-dp", "tp-dp-cp-ep-pp", "cp-tp-ep-dp-pp"};
  return options;
}

/// A long sequence: layers recompute one by one until the rest fits, the slowest case.
void BM_Estimates(benchmark::State& state, const char* model) {
  const TrainingJob job = job_of(model, 1024, 131'072);
  SearchOptions options = wide_search(job);
  options.axes.recompute_layers = {kRecomputeAsNeeded};
  const Expected<SearchResult> found = search(job, options);
  std::vector<Layout> layouts;
  while (found && !found->layouts.empty() && layouts.size() < kLayouts) {
    layouts.push_back(found->layouts[layouts.size() % found->layouts.size()].estimate.layout);
  }
  const Estimator estimator(
      job.model, job.sequence_length, job.global_batch_size, options.assumptions);
  std::int64_t done = 0;
  for (auto _ : state) {
    for (const Layout& layout : layouts) {
      benchmark::DoNotOptimize(estimator.estimate(layout));
    }
    done += static_cast<std::int64_t>(layouts.size());
  }
  state.counters["layouts/s"] =
      benchmark::Counter(static_cast<double>(done), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(BM_Estimates, llama3_70b, "llama3-70b")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Estimates, mixtral_8x7b, "mixtral-8x7b")->Unit(benchmark::kMillisecond);

/// Every combination of every axis; `legal` of them are estimated.
void BM_Search(benchmark::State& state, const char* model, std::int64_t sequence) {
  const TrainingJob job = job_of(model, 1024, sequence);
  const SearchOptions options = wide_search(job);
  std::int64_t legal = 0;
  std::int64_t examined = 0;
  std::int64_t searches = 0;
  for (auto _ : state) {
    const Expected<SearchResult> result = search(job, options);
    if (!result) {
      state.SkipWithError("the search is refused");
      break;
    }
    legal += result->legal;
    examined += result->examined;
    ++searches;
  }
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  state.counters["legal"] = benchmark::Counter(real(legal), benchmark::Counter::kAvgIterations);
  state.counters["legal/s"] = benchmark::Counter(real(legal), benchmark::Counter::kIsRate);
  state.counters["examined/s"] = benchmark::Counter(real(examined), benchmark::Counter::kIsRate);
  state.counters["10,000 legal"] = benchmark::Counter(
      real(legal) / real(kLayouts), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(BM_Search, llama3_70b_8k, "llama3-70b", 8192)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Search, llama3_70b_128k, "llama3-70b", 131'072)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretrain

BENCHMARK_MAIN();
