#include "tests/support/scenarios.h"

#include <string>

#include <gtest/gtest.h>

/// Rule: a narrow precision is faster where GEMMs are large, says which peak it is measured by, and
/// costs the memory of its copies.
namespace foretrain {
namespace {

StepReport run(const std::string& text) {
  const Expected<Scenario> scenario = parse_scenario(text);
  if (!scenario) {
    ADD_FAILURE() << scenario.error().list.front().pointer << " "
                  << scenario.error().list.front().message;
    return {};
  }
  const Expected<Simulation> simulation = simulate(*scenario);
  if (!simulation) {
    ADD_FAILURE() << simulation.error().list.front().pointer << " "
                  << simulation.error().list.front().message;
    return {};
  }
  return simulation->report;
}

struct Job {
  std::string model = "llama3-8b", topology = "dgx-h100-ndr400", parallelism = R"({"tp": 1})";
  std::int64_t gpus = 8, sequence = 8192, batch = 128, micro_batch = 1;
  std::string more;

  StepReport in(const std::string& dtype) const {
    const auto n = [](std::int64_t value) { return std::to_string(value); };
    return run(R"({"name": "job", "model": ")" + model + R"(", "cluster": {"topology": ")" +
               topology + R"(", "gpus": )" + n(gpus) + R"(}, "training": {"sequence_length": )" +
               n(sequence) + R"(, "global_batch_size": )" + n(batch) + R"(, "micro_batch_size": )" +
               n(micro_batch) + R"(, "dtype": )" + dtype + R"(}, "parallelism": )" + parallelism +
               more + "}");
  }
};

const std::string kBf16 = R"("bf16")";
const std::string kFp8 = R"("fp8")";

double gain(const Job& job, const std::string& dtype) {
  return seconds(job.in(kBf16).step_time) / seconds(job.in(dtype).step_time);
}

TEST(Precision, GainsGrowWithTheModel) {
  Job small, medium, large;
  small.model = "llama3.2-1b";
  large.model = "llama3-70b";
  large.gpus = 64;
  large.parallelism = R"({"tp": 4, "pp": 4})";
  EXPECT_GT(gain(small, kFp8), 1.0);
  EXPECT_GT(gain(medium, kFp8), gain(small, kFp8) + 0.05);
  EXPECT_GT(gain(large, kFp8), gain(medium, kFp8));
  EXPECT_LT(gain(large, kFp8), 2.0);
  // Very small GEMMs only get the casts.
  Job tiny = small;
  tiny.sequence = 256;
  EXPECT_LT(gain(tiny, kFp8), 1.0);
}

// Llama 3 8B on 8 H100, 8192 tokens x 128 sequences (NVIDIA/dgxc-benchmarking, releases 24.11.1 to
// 25.04, over cp 2, which moves little): 12.27 to 12.91 s in BF16, 9.33 to 9.67 s in FP8.
// TorchTitan's benchmarks of 2024-12 on 8 H100 at 500 W: 2.457 s and 1.920 s.
TEST(Precision, PublishedPairs) {
  const Job nemo;
  EXPECT_NEAR(gain(nemo, kFp8), 1.33, 0.07);
  Job titan;
  titan.topology = "h100-96gb-500w-400";
  titan.batch = 16;
  titan.micro_batch = 2;
  titan.parallelism = R"({"sharding": "zero3"})";
  titan.more = R"(, "recompute": {"mode": "selective"}, "stack": "torchtitan-2024")";
  EXPECT_NEAR(gain(titan, R"({"compute": "fp8", "param_gather": "fp8"})"), 1.28, 0.06);
}

TEST(Precision, RecipesKeepTheirOrder) {
  const Job job;
  const auto step = [&](const char* recipe) {
    return job.in(std::string(R"({"compute": "fp8", "recipe": ")") + recipe + "\"}").step_time;
  };
  EXPECT_LT(step("delayed"), step("tensorwise"));  // no pass for the largest value
  EXPECT_LT(step("tensorwise"), job.in(kBf16).step_time);
  Job blackwell;
  blackwell.topology = "dgx-b200-ndr400";
  EXPECT_GT(gain(blackwell, R"("nvfp4")"),
            gain(blackwell, R"({"compute": "fp8", "recipe": "mxfp8"})"));
}

TEST(Precision, MfuNamesItsPeak) {
  Job job;
  job.topology = "dgx-b200-ndr400";
  const StepReport fp8 = job.in(kFp8);
  EXPECT_EQ(fp8.peak_tflops, 4500.0);
  EXPECT_EQ(fp8.peak_precision, "fp8 dense");
  EXPECT_NEAR(fp8.mfu, fp8.tflops_per_gpu / 4500, 1e-9);
  EXPECT_EQ(job.in(kBf16).peak_precision, "bf16 dense");
  EXPECT_EQ(job.in(R"("nvfp4")").peak_tflops, 9000.0);
}

// One GPU holds Llama 3 8B's 8,030,261,248 parameters, 6,979,321,856 of them in linear layers
// (32 x 218,103,808): 2 bytes each, and 2 copies of 1 byte of the linear layers' on Hopper, 1 on
// Blackwell; stored in FP8, the rest keeps its 2 bytes.
TEST(Precision, MemoryOfTheWeights) {
  constexpr std::int64_t kAll = 8'030'261'248, kLinear = 32LL * 218'103'808;
  Job job;
  job.gpus = 1;
  job.batch = 4;
  const auto weights = [&](const std::string& dtype) {
    return job.in(dtype).stages.front().memory.weights;
  };
  EXPECT_EQ(weights(kBf16), 2 * kAll);
  EXPECT_EQ(weights(kFp8), 2 * kAll + 2 * kLinear);
  EXPECT_EQ(weights(R"({"compute": "fp8", "params": "fp8"})"), 2 * (kAll - kLinear) + 2 * kLinear);
  job.topology = "dgx-b200-ndr400";
  EXPECT_EQ(weights(kFp8), 2 * kAll + kLinear);
  EXPECT_EQ(weights(R"({"compute": "fp8", "params": "fp8"})"), 2 * (kAll - kLinear) + kLinear);
  EXPECT_EQ(weights(R"({"compute": "fp8", "recipe": "mxfp8"})"), 2 * kAll + kLinear / 16 * 33);
}

TEST(Precision, NarrowGathersOfParametersMoveHalf) {
  Job job;
  job.more = R"(, "overlap": {"dp_param": false})";
  const auto bytes = [&](const std::string& dtype) {
    return static_cast<double>(job.in(dtype).network.front().bytes);
  };
  // 7/8 of 4 bytes of gradient reduced and 2 or 1 bytes of parameter gathered.
  EXPECT_NEAR(bytes(R"({"compute": "fp8", "param_gather": "fp8"})") / bytes(kFp8), 5.0 / 6, 1e-4);
}

TEST(Precision, SixteenBitsAreUntouched) {
  const Job job;
  const StepReport spelled = job.in(R"({"compute": "bf16", "attention": "bf16"})");
  EXPECT_EQ(spelled.step_time, job.in(kBf16).step_time);
  EXPECT_EQ(job.in(R"("fp16")").step_time, job.in(kBf16).step_time);
}

TEST(Precision, WhatIsNotModelledIsRefusedByName) {
  const auto refused = [](const std::string& dtype) {
    test::TinyScenario tiny;
    std::string text = tiny.json();
    const std::string mark = R"("training": {)";
    text.insert(text.find(mark) + mark.size(), R"("dtype": )" + dtype + ", ");
    const Expected<Scenario> scenario = parse_scenario(text);
    EXPECT_TRUE(scenario.has_value());
    const Expected<Simulation> simulation = simulate(*scenario);
    return simulation ? std::string() : simulation.error().list.front().pointer;
  };
  EXPECT_EQ(refused(R"({"compute": "fp8", "attention": "fp8"})"), "/training/dtype/attention");
  EXPECT_EQ(refused(R"({"compute": "fp8", "grads": "fp8"})"), "/training/dtype/grads");
  EXPECT_EQ(refused(R"({"compute": "fp32"})"), "/training/dtype");
  EXPECT_EQ(refused(R"("fp8")"), "");
}

}  // namespace
}  // namespace foretrain
