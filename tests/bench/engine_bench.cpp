#include "tests/bench/pipeline_program.h"

#include "foretrain/engine.h"
#include "foretrain/scenario.h"
#include "foretrain/simulate.h"

#include <benchmark/benchmark.h>

/// Tasks per second of the evaluators and ranks per second of folding. Warm-up steps count: they
/// are evaluated like the others. And what a user waits for: from the scenario's file to the
/// report.
namespace foretrain {
namespace {

void run_program(benchmark::State& state, const Program& program, Evaluator evaluator) {
  RunOptions options;
  options.evaluator = evaluator;
  std::int64_t tasks = 0;
  for (auto _ : state) {
    const RunResult result = run(program, options);
    tasks += std::get<Timeline>(result).tasks;
  }
  state.counters["tasks/s"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate);
}

/// One rank per stage; the argument is the number of tasks of a step, about.
PipelineShape folded_shape(std::int64_t tasks) {
  PipelineShape shape;
  shape.tp = 1;
  shape.micro_batches = static_cast<std::int32_t>(tasks / (16 * 64));
  return shape;
}

void BM_DataflowFolded(benchmark::State& state) {
  run_program(state, PipelineProgram(folded_shape(state.range(0))).build(), Evaluator::kDataflow);
}
BENCHMARK(BM_DataflowFolded)
    ->RangeMultiplier(10)
    ->Range(20000, 2000000)
    ->Unit(benchmark::kMillisecond);

void BM_EventsFolded(benchmark::State& state) {
  run_program(state, PipelineProgram(folded_shape(state.range(0))).build(), Evaluator::kEvent);
}
BENCHMARK(BM_EventsFolded)
    ->RangeMultiplier(10)
    ->Range(20000, 200000)
    ->Unit(benchmark::kMillisecond);

/// 16,384 ranks, 82 million tasks a step; the argument: 1 when every rank has its own speed.
void BM_DataflowAllRanks(benchmark::State& state) {
  PipelineShape shape;
  shape.replicas = 1024;
  shape.micro_batches = 78;
  shape.own_factors = state.range(0) != 0;
  run_program(state, PipelineProgram(shape).build(), Evaluator::kDataflow);
}
BENCHMARK(BM_DataflowAllRanks)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

/// 131,072 ranks, one of them slow: about as many classes as a straggler leaves.
void BM_Fold(benchmark::State& state) {
  PipelineShape shape;
  shape.replicas = 8192;
  shape.micro_batches = 1;
  Program program = PipelineProgram(shape).build();
  program.factor_sets.push_back({});
  program.factor_sets.back().base[0] *= 2;
  program.instances[4242].factor_set = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(fold(program));
  }
}
BENCHMARK(BM_Fold)->Unit(benchmark::kMillisecond);

void BM_Faults(benchmark::State& state) {
  PipelineShape shape;
  shape.replicas = 8192;
  const Program program = PipelineProgram(shape).build();
  for (auto _ : state) {
    benchmark::DoNotOptimize(program_faults(program));
  }
}
BENCHMARK(BM_Faults)->Unit(benchmark::kMillisecond);

/// 16,384 and 3,072 ranks; the variants that explain idle time are runs too, not counted here.
void BM_FileToReport(benchmark::State& state, const char* name) {
  std::int64_t tasks = 0;
  for (auto _ : state) {
    const Expected<Scenario> scenario = read_scenario(name);
    const Expected<Simulation> simulation =
        scenario ? simulate(*scenario) : tl::unexpected(scenario.error());
    if (!simulation) {
      state.SkipWithError("the scenario does not run");
      break;
    }
    tasks += simulation->timeline.tasks;
  }
  state.counters["tasks/s"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(BM_FileToReport, llama3_405b_8k, "llama3-405b-8k")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_FileToReport, gpt_1t_3072, "gpt-1t-3072-a100")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretrain

BENCHMARK_MAIN();
