#include "tests/report/tiny_run.h"

namespace foretrain {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000'000;
constexpr std::int64_t kGigabyte = 1'000'000'000;

StageReport stage(std::int32_t rank, std::int64_t layers, std::int64_t busy_ms, std::int64_t peak) {
  StageReport report;
  report.pp_rank = rank;
  report.layers = layers;
  report.embedding = rank == 0;
  report.head = rank == 15;
  report.busy = Duration{busy_ms * kMillisecond};
  report.idle = Duration{(6310 - busy_ms) * kMillisecond};
  report.bubble_ratio = 0.108;
  report.in_flight_peak = 143 - 2 * rank;
  report.memory.weights = 6'100'000'000;
  report.memory.gradients = 12'200'000'000;
  report.memory.optimizer = 300'000'000;
  report.memory.activations = (peak - 20) * kGigabyte;
  report.memory.logits = report.head ? 1'400'000'000 : 0;
  report.memory.peak = peak * kGigabyte;
  report.memory.reserved = (peak + 4) * kGigabyte;
  return report;
}

NetworkReport network(const char* group,
                      std::int64_t size,
                      std::int64_t exposed,
                      std::int64_t hidden) {
  NetworkReport report;
  report.group = group;
  report.size = size;
  report.inside_node = size <= 8;
  report.exposed = Duration{exposed * kMillisecond};
  report.hidden = Duration{hidden * kMillisecond};
  report.wait = Duration{3 * kMillisecond};
  report.bytes = 84 * kGigabyte;
  report.bus_bandwidth = size <= 8 ? 372e9 : 41e9;
  report.limiting_link = size <= 8 ? "NVLink" : "NIC";
  return report;
}

void fill_times(StepReport& report) {
  const auto ms = [](std::int64_t value) { return Duration{value * kMillisecond}; };
  Breakdown& parts = report.breakdown;
  parts.compute = ms(4620) + Duration{7};
  parts.tp = ms(610);
  parts.pp = ms(60);
  parts.dp = ms(150);
  parts.optimizer = ms(50);
  parts.bubble = ms(690);
  parts.imbalance = ms(130);
  report.step_time = ms(6310) + Duration{7};
  report.isolated_step = ms(6730);
  report.tokens_per_s = 2'658'821.0;
  report.tokens_per_s_per_gpu = 162.28;
  report.tflops_per_gpu = 409.6;
  report.mfu = report.hfu = report.mfu_causal = report.mfu_hardware = 0.414;
  report.mfu_full = 0.431;
}

}  // namespace

StepReport sample_report() {
  StepReport report;
  report.header.name = "llama3-405b-8k";
  report.header.model = "Llama 3 405B";
  report.header.cluster = "16,384 H100 SXM (2,048 nodes x 8, NDR 400 Gb/s)";
  report.header.precision = "bf16 · 8,192 tokens x 2,048 sequences";
  report.header.layout =
      "tp 8 · cp 1 · pp 16 (vpp 8) · dp 128 · zero2 · interleaved · 16 micro-batches of 1 · "
      "no recompute · stack megatron-2024";
  report.header.scenario_json = R"({"name": "sample", "seed": 0, "parallelism": {"tp": 8}})";
  fill_times(report);
  report.peak_tflops = 989;
  report.peak_precision = "bf16 dense";
  report.flops_per_token = 2.524e12;
  report.flops_convention = "causal";
  report.parameters = 405'853'388'800;
  report.gpus = 16'384;
  for (std::int32_t rank = 0; rank < 16; ++rank) {
    report.stages.push_back(rank == 0    ? stage(rank, 7, 5610, 71)
                            : rank == 15 ? stage(rank, 7, 5930, 29)
                                         : stage(rank, 8, 5720, 64));
    report.stages.back().in_flight_peak = rank == 0 ? 143 : rank == 15 ? 113 : 128;
  }
  report.memory_peak = 71 * kGigabyte;
  report.memory_capacity = 80 * kGigabyte;
  report.network = {network("tp", 8, 610, 130), network("dp", 128, 150, 870)};
  report.critical_path = {{"compute", Duration{4900 * kMillisecond}, 0.7765},
                          {"tp", Duration{1410 * kMillisecond}, 0.2235}};
  report.assumed = {"attention flash-3", "gradients reduced in fp32", "buckets of 40 M parameters"};
  report.notes = {"ideal bubble 15/(16 x 8) = 11.7 % of busy", "last stage is the slowest"};
  report.steps.mean_s = report.steps.p50_s = report.steps.max_s = 6.310000000007;
  report.simulation = {"dataflow", 16'384, 16, 143'104, 0.04, 43'000'000, 0, "0.1.0"};
  return report;
}

}  // namespace foretrain
