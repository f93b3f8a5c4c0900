#include "foretrain/scenario.h"
#include "foretrain/simulate.h"

#include <string>

#include <benchmark/benchmark.h>

/// A step of 1,024 GPUs with all its traffic sharing links: less than 10 s on one core.
namespace foretrain {
namespace {

constexpr const char* kDense = R"({"name": "dense", "model": "llama3-70b",
  "cluster": {"topology": "dgx-h100-ndr400", "gpus": 1024},
  "training": {"sequence_length": 8192, "global_batch_size": 512},
  "parallelism": {"tp": 8, "pp": 8, "sharding": "zero1"}, "network": {"mode": "flow"}})";

constexpr const char* kExperts = R"({"name": "experts", "model": "mixtral-8x22b",
  "cluster": {"topology": "dgx-h100-ndr400", "gpus": 1024},
  "training": {"sequence_length": 4096, "global_batch_size": 1024},
  "parallelism": {"tp": 4, "pp": 8, "ep": 8, "sharding": "zero1"}, "network": {"mode": "flow"}})";

void BM_FlowStep(benchmark::State& state, const char* text) {
  const Expected<Scenario> scenario = parse_scenario(text);
  if (!scenario) {
    state.SkipWithError(scenario.error().list.front().message.c_str());
    return;
  }
  SimulateOptions options;
  options.times_only = true;
  std::int64_t tasks = 0;
  for (auto _ : state) {
    const Expected<Simulation> simulation = simulate(*scenario, options);
    tasks += simulation ? simulation->timeline.tasks : 0;
  }
  state.counters["tasks/s"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(BM_FlowStep, llama3_70b, kDense)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_FlowStep, mixtral_8x22b, kExperts)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretrain

BENCHMARK_MAIN();
