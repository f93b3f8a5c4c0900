#include "tests/support/pipelines.h"

#include "sim/base/format.h"

#include <cmath>

#include <gtest/gtest.h>

/// Published steps whose phases were measured: what is left over is the schedule and its transfers.
namespace foretrain {
namespace {

using test::pipeline_text;
using test::read_with;
using test::report_of;

/// Milliseconds of a whole stage, as the authors profiled it on A100s (Qi et al. 2024, Zero Bubble
/// Pipeline Parallelism, arXiv 2401.10241, table 9: T_F, T_B, T_W, T_comm).
struct Profile {
  double forward, dgrad, wgrad, p2p;
};
constexpr Profile kProfiles[] = {
    {18.522, 18.086, 9.337, 0.601},   // 1.5B, 24 micro-batches
    {18.513, 18.086, 9.331, 0.626},   // 1.5B, 32 micro-batches
    {18.546, 18.097, 9.321, 0.762},   // 1.5B, 64 micro-batches
    {11.347, 11.248, 8.132, 0.377},   // 14.6B, 48 micro-batches
    {11.325, 11.308, 8.109, 0.378},   // 14.6B, 128 micro-batches
    {29.718, 29.444, 19.927, 0.527},  // 6.2B, 24 micro-batches
    {29.802, 29.428, 19.53, 0.577},   // 6.2B, 32 micro-batches
    {29.935, 29.621, 19.388, 0.535},  // 6.2B, 64 micro-batches
};

/// Steps of the same paper, tables 4 and 7: seconds from samples per second and GPU.
struct MeasuredStep {
  const char* schedule;
  int profile;
  std::int64_t pp, vpp, micro_batches;
  double step_s;
  bool barrier;
};
constexpr MeasuredStep kSteps[] = {
    {"zb-h2", 0, 8, 1, 24, 1.24138, false},       {"zb-h2", 1, 8, 1, 32, 1.62162, false},
    {"zb-h2", 2, 8, 1, 64, 3.22148, false},       {"zb-h2", 5, 8, 1, 24, 2.08333, false},
    {"zb-h2", 6, 8, 1, 32, 2.75862, false},       {"zb-h2", 7, 8, 1, 64, 5.46697, false},
    {"zb-h2", 3, 16, 1, 48, 1.65746, false},      {"zb-h2", 4, 16, 1, 128, 4.32432, false},
    {"zb-h1", 0, 8, 1, 24, 1.39535, false},       {"zb-h1", 1, 8, 1, 32, 1.79104, false},
    {"zb-h1", 2, 8, 1, 64, 3.38028, false},       {"zb-h1", 5, 8, 1, 24, 2.31959, false},
    {"zb-h1", 6, 8, 1, 32, 3.0, false},           {"zb-h1", 7, 8, 1, 64, 5.71429, false},
    {"zb-h1", 3, 16, 1, 48, 1.86335, false},      {"zb-h1", 4, 16, 1, 128, 4.54545, false},
    {"1f1b", 0, 8, 1, 24, 1.52542, true},         {"1f1b", 1, 8, 1, 32, 1.92, true},
    {"1f1b", 2, 8, 1, 64, 3.52941, true},         {"1f1b", 5, 8, 1, 24, 2.57143, true},
    {"1f1b", 6, 8, 1, 32, 3.24324, true},         {"1f1b", 7, 8, 1, 64, 5.95533, true},
    {"1f1b", 3, 16, 1, 48, 2.14286, true},        {"1f1b", 4, 16, 1, 128, 4.87805, true},
    {"interleaved", 0, 8, 3, 24, 1.37405, true},  {"interleaved", 1, 8, 3, 32, 1.79104, true},
    {"interleaved", 2, 8, 3, 64, 3.45324, true},  {"interleaved", 5, 8, 4, 24, 2.24439, true},
    {"interleaved", 6, 8, 4, 32, 2.94118, true},  {"interleaved", 7, 8, 4, 64, 5.72792, true},
    {"interleaved", 3, 16, 3, 48, 1.94805, true}, {"interleaved", 4, 16, 3, 128, 4.81928, true},
    {"zb-h2", 0, 8, 1, 24, 1.373, true},          {"zb-h2", 5, 8, 1, 24, 2.25, true},
    {"zb-h2", 3, 16, 1, 48, 1.78571, true},
};

double simulated(const MeasuredStep& row, bool transfers) {
  const Profile& stage = kProfiles[row.profile];
  const auto chunks = static_cast<double>(row.vpp);
  const auto ms = [](double value) { return "\"" + fixed(value, 6) + " ms\""; };
  const std::string costs = R"({"model": "stated", "forward": )" + ms(stage.forward / chunks) +
                            R"(, "backward": )" + ms((stage.dgrad + stage.wgrad) / chunks) +
                            R"(, "dgrad": )" + ms(stage.dgrad / chunks) + R"(, "wgrad": )" +
                            ms(stage.wgrad / chunks) + R"(, "p2p": )" +
                            ms(transfers ? stage.p2p : 0.0) + "}";
  const std::string text = pipeline_text(row.schedule,
                                         {row.pp, row.micro_batches, row.vpp},
                                         costs,
                                         row.barrier ? "" : R"(, "barrier": false)");
  if (!transfers) {
    return seconds(report_of(read_with(text, {})).step_time);
  }
  // Megatron-LM of that time waits for each batch of transfers before it computes on. The
  // zero-bubble runtime waits where a transfer is used; all of a rank's share NCCL's one stream.
  const bool megatron = std::string(row.schedule).substr(0, 2) != "zb";
  return seconds(
      report_of(read_with(text, {megatron ? "overlap.pp=false" : "schedule.streams=shared"}))
          .step_time);
}

// The ideal schedule misses the 35 steps by 1 to 16 %, 7.6 % in the mean, all of it too fast. What
// closes part of that on every row are transfers that hold each other up on one stream, and ranks
// that stand still while their batch of transfers runs.
TEST(MeasuredPipelines, TransfersOfTheFrameworkComeCloserThanTheIdealSchedule) {
  double ideal_sum = 0;
  double framework_sum = 0;
  for (const MeasuredStep& row : kSteps) {
    SCOPED_TRACE(std::string(row.schedule) + " m " + std::to_string(row.micro_batches));
    const double ideal = simulated(row, false) / row.step_s - 1;
    const double framework = simulated(row, true) / row.step_s - 1;
    EXPECT_LT(ideal, 0);
    EXPECT_LT(std::abs(framework), std::abs(ideal));
    ideal_sum += std::abs(ideal) / std::size(kSteps);
    framework_sum += std::abs(framework) / std::size(kSteps);
  }
  EXPECT_NEAR(ideal_sum, 0.0760, 0.0005);
  EXPECT_NEAR(framework_sum, 0.0518, 0.0005);
}

/// One step of DeepSeek-V3 on 2,048 H800 (DeepSeek-AI 2025, Insights into DeepSeek-V3, arXiv
/// 2505.09343, table 4): seconds a rank spends in forwards and in the two halves of backwards by
/// themselves, in overlapped pairs, and in the optimizer.
struct MeasuredPhases {
  double forward = 1.13, input_gradient = 1.99, weight_gradient = 0.48, pairs = 13.95;
  double optimizer = 0.29;
  double step = 19.926;
};

double step_from_phases(double p2p_ms) {
  const MeasuredPhases phases;
  // 120 micro-batches on 16 ranks: on the mean rank so many run in pairs, the others alone.
  const double in_pairs = 100.375;
  const double by_itself = 120 - in_pairs;
  const auto ms = [](double seconds_all, double count) {
    return "\"" + fixed(seconds_all / count * 1e3, 6) + " ms\"";
  };
  const std::string costs = R"({"model": "stated", "forward": )" + ms(phases.forward, by_itself) +
                            R"(, "dgrad": )" + ms(phases.input_gradient, by_itself) +
                            R"(, "wgrad": )" + ms(phases.weight_gradient, by_itself) +
                            R"(, "overlapped": )" + ms(phases.pairs, in_pairs) + R"(, "p2p": )" +
                            ms(p2p_ms, 1e3) + R"(, "optimizer": )" + ms(phases.optimizer, 1) + "}";
  const std::string text = pipeline_text("dualpipe", {16, 120}, costs);
  return seconds(report_of(read_with(text, {"overlap.pp=false"})).step_time);
}

TEST(MeasuredPipelines, DeepSeekV3PairsAreCountedFromTheSchedule) {
  const Expected<Schedule> schedule = make_schedule("dualpipe", {.pp = 16, .micro_batches = 120});
  ASSERT_TRUE(schedule.has_value());
  int pairs = 0;
  for (const std::vector<Action>& list : schedule->ranks) {
    pairs += static_cast<int>(
        std::count_if(list.begin(), list.end(), [](const Action& a) { return a.overlapped; }));
  }
  EXPECT_EQ(pairs, 16 * 100.375);
}

// A boundary of 4,096 x 7,168 bf16 values over the half of a 400 Gb/s NIC that expert traffic
// leaves takes 2.35 ms: the published step within 2 %. With free transfers it is 4.6 % short.
TEST(MeasuredPipelines, DeepSeekV3PhasesGiveItsStep) {
  const double half_nic_ms = 4096.0 * 7168 * 2 / 25e9 * 1e3;
  EXPECT_NEAR(step_from_phases(half_nic_ms) / MeasuredPhases{}.step, 1.0, 0.02);
  EXPECT_NEAR(step_from_phases(half_nic_ms) / MeasuredPhases{}.step - 1, -0.016, 0.0005);
  EXPECT_NEAR(step_from_phases(0.0) / MeasuredPhases{}.step - 1, -0.046, 0.0005);
}

}  // namespace
}  // namespace foretrain
