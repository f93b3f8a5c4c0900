#include "tests/support/scenarios.h"

#include "sim/lower/lower.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

/// Rule: what goes in comes out: FLOPs, bytes, layers, memory, time.
namespace foretrain {
namespace {

using test::TinyScenario;

std::vector<TinyScenario> layouts() {
  std::vector<TinyScenario> list;
  for (const std::int64_t tp : {1, 2, 8}) {
    for (const std::int64_t pp : {1, 2, 4}) {
      for (const std::int64_t dp : {1, 2}) {
        TinyScenario scenario;
        scenario.tp = tp;
        scenario.pp = pp;
        scenario.gpus = tp * pp * dp;
        scenario.sharding = dp == 2 ? "zero1" : "none";
        scenario.batch = 8;
        scenario.costs = pp == 2 ? R"("calibrated")" : scenario.costs;
        if (pp == 4) {
          scenario.schedule = "interleaved";
          scenario.vpp = 2;
        }
        list.push_back(scenario);
      }
    }
  }
  return list;
}

TEST(Conservation, ExecutedFlopsAreTheFormula) {
  for (const TinyScenario& tiny : layouts()) {
    SCOPED_TRACE(tiny.json());
    const Scenario scenario = tiny.read();
    const Expected<Lowered> lowered = lower(scenario);
    ASSERT_TRUE(lowered.has_value());
    const double formula =
        flops_per_token(
            scenario.model, scenario.training.sequence_length, FlopsConvention::kCausal) *
        static_cast<double>(lowered->facts.tokens);
    EXPECT_NEAR(static_cast<double>(lowered->facts.model_flops) / formula, 1.0, 1e-12);
    EXPECT_EQ(lowered->facts.recomputed_flops, 0);
  }
}

TEST(Conservation, FullRecomputeRepeatsTheForwardOfTheLayers) {
  TinyScenario tiny;
  tiny.gpus = 2;
  tiny.tp = 2;
  tiny.more = R"(, "recompute": {"mode": "full"})";
  const Scenario scenario = tiny.read();
  const Expected<Lowered> lowered = lower(scenario);
  ASSERT_TRUE(lowered.has_value());
  // All model FLOPs but the head's and the final norm's are the layers'; a third of those is
  // forward.
  const double head = 6.0 * (32000.0 * 1024 + 1024) * 2048 * 8;
  const double layers = static_cast<double>(lowered->facts.model_flops) - head;
  EXPECT_NEAR(static_cast<double>(lowered->facts.recomputed_flops) / (layers / 3), 1.0, 1e-9);
}

TEST(Conservation, BreakdownSumsToTheStepAndBytesArriveAsSent) {
  for (const TinyScenario& tiny : layouts()) {
    SCOPED_TRACE(tiny.json());
    const Simulation simulation = tiny.run();
    Duration sum{};
    for (const BreakdownPart& part : breakdown_parts()) {
      sum += simulation.report.breakdown.*part.member;
      EXPECT_GE((simulation.report.breakdown.*part.member).count(), 0) << part.key;
    }
    EXPECT_EQ(sum, simulation.report.step_time);
    // The critical path is a chain without holes, no shorter than the busiest rank's kernels.
    Duration path{};
    for (const PathShare& part : simulation.report.critical_path) {
      path += part.time;
    }
    EXPECT_EQ(path, simulation.report.step_time);
    for (const StageReport& stage : simulation.report.stages) {
      EXPECT_GE(path, stage.busy);
    }
    Int128 sent = 0;
    Int128 received = 0;
    for (std::size_t i = 0; i < simulation.timeline.accounts.size(); ++i) {
      const std::int64_t ranks = simulation.program.instances[i].multiplicity;
      sent += static_cast<Int128>(ranks) * simulation.timeline.accounts[i].point_to_point_bytes;
      received += static_cast<Int128>(ranks) * simulation.timeline.accounts[i].received_bytes;
    }
    EXPECT_EQ(sent, received);
    // Messages: 2 m per hop, p v - 1 hops, of s b h / tp 16-bit elements, on every tp x dp column.
    const std::int64_t micro_batches = 8 / (tiny.gpus / (tiny.tp * tiny.pp));
    const std::int64_t expected = 2 * micro_batches * (tiny.pp * tiny.vpp - 1) *
                                  (2048 * 1024 * 2 / tiny.tp) * (tiny.gpus / tiny.pp);
    EXPECT_EQ(sent, tiny.pp == 1 ? 0 : expected);
  }
}

TEST(Conservation, MemoryReturnsToItsBase) {
  for (const TinyScenario& tiny : layouts()) {
    const Expected<Lowered> lowered = lower(tiny.read());
    ASSERT_TRUE(lowered.has_value());
    for (const Template& stage : lowered->program.templates) {
      const std::int64_t balance =
          std::accumulate(stage.calls.begin(),
                          stage.calls.end(),
                          std::int64_t{0},
                          [](std::int64_t sum, const Call& call) {
                            return sum + call.allocated_bytes - call.freed_bytes;
                          });
      EXPECT_EQ(balance, 0);
    }
    EXPECT_EQ(std::accumulate(
                  lowered->facts.layers.begin(), lowered->facts.layers.end(), std::int64_t{0}),
              tiny.layers);
  }
}

TEST(Conservation, StatesAreTheBytesPerParameterTimesTheParameters) {
  // 16-bit weights, fp32 gradients: 18 bytes a parameter, 6 + 12 / d with ZeRO-1 (Megatron-LM's
  // table).
  TinyScenario tiny;
  tiny.gpus = 4;
  tiny.sharding = "zero1";
  const StepReport report = tiny.run().report;
  const StageMemory& memory = report.stages.front().memory;
  const std::int64_t parameters = report.parameters;
  EXPECT_EQ(memory.weights, 2 * parameters);
  EXPECT_EQ(memory.gradients, 4 * parameters);
  EXPECT_EQ(memory.optimizer, (12 * parameters + 3) / 4);
  tiny.sharding = "none";
  EXPECT_EQ(tiny.run().report.stages.front().memory.optimizer, 12 * parameters);
}

TEST(Conservation, ActivationsAreLayersTimesMicroBatchesInFlight) {
  // 1F1B keeps min(m, p - r) micro-batches on rank r; each of its layers keeps the listed tensors.
  TinyScenario tiny;
  tiny.pp = 4;
  tiny.gpus = 4;
  tiny.batch = 3;
  const StepReport report = tiny.run().report;
  std::int64_t layer = 0;
  for (const LayerActivation& kept : report.layer_activations) {
    layer += kept.bytes;
  }
  // Norm inputs and outputs, q, k, v, attention output: 8 s b h of 2 bytes; gate, up, activation: 3
  // s b f of 2; the softmax statistics one fp32 number a token and head.
  EXPECT_EQ(layer, 2048 * (8 * 1024 * 2 + 3 * 4096 * 2 + 16 * 4));
  for (const std::int64_t rank : {1, 2}) {
    const StageReport& stage = report.stages[static_cast<std::size_t>(rank)];
    EXPECT_EQ(stage.in_flight_peak, std::min<std::int64_t>(3, 4 - rank));
    EXPECT_EQ(stage.memory.activations, stage.in_flight_peak * stage.layers * layer);
  }
}

TEST(Conservation, RecomputationNeverKeepsMore) {
  // Full recomputation keeps the input of each layer; one layer at a time has the rest again.
  TinyScenario tiny;
  tiny.gpus = 1;
  const auto activations = [&tiny](const std::string& recompute) {
    tiny.more = R"(, "recompute": )" + recompute;
    return tiny.run().report.stages.front().memory.activations;
  };
  const std::int64_t none = activations(R"({"mode": "none"})");
  EXPECT_EQ(activations(R"({"mode": "full", "layers": 0})"), none);
  EXPECT_EQ(activations(R"({"mode": "full", "layers": 1})"), none);
  EXPECT_LE(activations(R"({"mode": "selective"})"), none);
  const std::int64_t input = 2048 * 1024 * 2;
  const std::int64_t head = 2 * input;  // the final norm's input and the logits' input
  const std::int64_t layer = (none - head) / 8;
  EXPECT_EQ(activations(R"({"mode": "full"})"), head + 8 * input + (layer - input));
  EXPECT_EQ(activations(R"({"mode": "full", "layers": 3})"),
            head + 5 * layer + 3 * input + (layer - input));
}

TEST(Conservation, AStepTooLongToCountIsRefused) {
  TinyScenario tiny;
  tiny.ffn = 1'000'000'000;
  tiny.layers = 40;
  tiny.gpus = 1;
  tiny.batch = 100'000;
  const Expected<Lowered> lowered = lower(tiny.read());
  ASSERT_FALSE(lowered.has_value());
  EXPECT_EQ(lowered.error().list.front().pointer, "/training");
}

TEST(Conservation, BusBandwidthStaysBelowTheLink) {
  TinyScenario tiny;
  tiny.tp = 2;
  tiny.gpus = 2;
  tiny.costs = R"({"model": "constant", "embedding_and_head": "free"})";
  const NetworkReport tensor = tiny.run().report.network.front();
  EXPECT_LE(tensor.bus_bandwidth, 450e9);
  EXPECT_GT(tensor.bus_bandwidth, 0.999 * 450e9);
}

}  // namespace
}  // namespace foretrain
