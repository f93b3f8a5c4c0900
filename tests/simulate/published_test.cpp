#include "tests/support/scenarios.h"

#include "foretrain/simulate.h"
#include "sim/base/format.h"

#include <array>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

/// Rule: the accuracy table of README.md is what the program says today, error by error.
namespace foretrain {
namespace {

/// A published step of a GPT model on A100s: Narayanan et al. 2021 (arXiv 2104.04473, Table 1; step
/// from the published TFLOP/s) and Korthikanti et al. 2022 (arXiv 2205.05198, Table 5, without
/// sequence parallelism). fp16, full recomputation, gradients all-reduced after the backward.
struct PublishedStep {
  const char* model;
  const char* stack;
  std::int64_t gpus, layers, hidden, heads, tp, pp, vpp, micro_batch, batch;
  double measured_s;
};

constexpr std::array kSteps = {
    PublishedStep{"GPT 3.6B", "megatron-2021", 64, 30, 3072, 32, 2, 1, 1, 16, 512, 3.697},
    PublishedStep{"GPT 7.5B", "megatron-2021", 128, 36, 4096, 32, 4, 1, 1, 16, 512, 3.696},
    PublishedStep{"GPT 39.1B", "megatron-2021", 512, 48, 8192, 64, 8, 2, 1, 4, 1536, 14.453},
    PublishedStep{"GPT 76.1B", "megatron-2021", 1024, 60, 10240, 80, 8, 4, 3, 2, 1792, 16.058},
    PublishedStep{"GPT 310.1B", "megatron-2021", 1920, 96, 16384, 128, 8, 16, 2, 1, 2160, 37.614},
    PublishedStep{"GPT 1008B", "megatron-2021", 3072, 128, 25600, 160, 8, 64, 1, 1, 3072, 102.63},
    PublishedStep{"GPT 22B", "megatron-2022", 8, 48, 6144, 64, 8, 1, 1, 4, 4, 1.42},
    PublishedStep{"GPT 175B", "megatron-2022", 64, 96, 12288, 96, 8, 8, 3, 1, 64, 18.13},
};

std::string scenario_of(const PublishedStep& step) {
  const auto n = [](std::int64_t value) { return std::to_string(value); };
  return R"({"name": "published", "model": {"model_type": "gpt2", "n_embd": )" + n(step.hidden) +
         R"(, "n_layer": )" + n(step.layers) + R"(, "n_head": )" + n(step.heads) +
         R"(, "vocab_size": 51200, "n_positions": 2048}, )" +
         R"("cluster": {"topology": "dgx-a100-hdr200", "gpus": )" + n(step.gpus) +
         R"(}, "training": {"sequence_length": 2048, "dtype": "fp16", "global_batch_size": )" +
         n(step.batch) + R"(, "micro_batch_size": )" + n(step.micro_batch) +
         R"(}, "parallelism": {"tp": )" + n(step.tp) + R"(, "pp": )" + n(step.pp) + R"(, "vpp": )" +
         n(step.vpp) + R"(, "sharding": "none", "sequence_parallel": false}, "schedule": ")" +
         (step.vpp > 1 ? "interleaved" : "1f1b") + R"(", "recompute": {"mode": "full"}, )" +
         R"("overlap": {"dp_grad": false, "dp_param": false}, "stack": ")" + step.stack + "\"}";
}

std::string read_me() {
  const std::ifstream file(std::string(FORETRAIN_SOURCE_DIR) + "/README.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Published, ErrorsAreThoseOfTheReadMe) {
  const std::string read = read_me();
  double sum = 0;
  for (const PublishedStep& step : kSteps) {
    SCOPED_TRACE(step.model);
    const Expected<Scenario> scenario = parse_scenario(scenario_of(step));
    ASSERT_TRUE(scenario.has_value()) << scenario.error().list.front().message;
    const Expected<Simulation> simulation = simulate(*scenario);
    ASSERT_TRUE(simulation.has_value());
    const double simulated = seconds(simulation->report.step_time);
    const double error = simulated / step.measured_s - 1;
    sum += std::fabs(error);
    const std::string row = "| " + std::string(step.model) + " | " + with_commas(step.gpus) +
                            " | " + fixed(step.measured_s, 2) + " s | " + fixed(simulated, 2) +
                            " s | " + (error < 0 ? "" : "+") + percent(error) + " |";
    EXPECT_NE(read.find(row), std::string::npos) << "README.md lacks: " << row;
    // No constant is fitted to these rows; far off means something is broken.
    EXPECT_LT(std::fabs(error), 0.15);
  }
  const std::string mean = "mean absolute error " + percent(sum / kSteps.size());
  EXPECT_NE(read.find(mean), std::string::npos) << "README.md lacks: " << mean;
}

/// Peak memory a framework allocated on 8 B200 (MooreThreads/SimuMax, docs/b200): Llama 3 70B cut
/// to 12 layers, sequence 4,096, micro-batch 1, no recomputation, distributed optimizer.
TEST(Published, AllocatedPeaksAreWithinThreePercent) {
  struct Run {
    std::int64_t tp, pp, batch;
    double measured_gib;
  };
  for (const Run& measured : {Run{1, 2, 16, 66.55}, Run{1, 2, 32, 66.55}, Run{4, 1, 32, 39.07}}) {
    test::TinyScenario scenario;
    scenario.layers = 12;
    scenario.hidden = 8192;
    scenario.heads = 64;
    scenario.kv_heads = 8;
    scenario.ffn = 28672;
    scenario.vocabulary = 128256;
    scenario.sequence = 4096;
    scenario.tp = measured.tp;
    scenario.pp = measured.pp;
    scenario.batch = measured.batch;
    scenario.sharding = "zero1";
    scenario.topology = "dgx-b200-ndr400";
    scenario.costs = R"("calibrated")";
    const double gib = static_cast<double>(scenario.run().report.memory_peak) / 0x1p30;
    EXPECT_NEAR(gib / measured.measured_gib, 1.0, 0.03) << scenario.json();
  }
}

}  // namespace
}  // namespace foretrain
