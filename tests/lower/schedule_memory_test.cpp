#include "tests/support/scenarios.h"
#include "tests/support/sent_bytes.h"

#include "sim/lower/lower.h"

#include <gtest/gtest.h>

/// Rule: what a rank holds follows from its list by hand: who is in flight, and until when.
namespace foretrain {
namespace {

using test::TinyScenario;

constexpr std::int64_t kInput = std::int64_t{2048} * 1024 * 2;  ///< s b h in 16 bits
/// Norm inputs and outputs, q, k, v and the attention's output: 8 s b h; gate, up and their
/// product: 3 s b f; the softmax statistics one fp32 number a token and head.
constexpr std::int64_t kLayer = 8 * kInput + std::int64_t{2048} * (3 * 4096 * 2 + 16 * 4);
constexpr std::int64_t kAgain = kLayer - kInput;  ///< what full recomputation brings back
constexpr std::int64_t kHead = 2 * kInput;        ///< the final norm's input and output
constexpr std::int64_t kLogits = std::int64_t{2048} * 32000 * (2 + 4);

constexpr std::int64_t kLayerParameters = 4 * 1024 * 1024 + 3 * 1024 * 4096 + 2 * 1024;
constexpr std::int64_t kTable = 32000 * 1024;

/// One pipeline of 8 layers, without tensor or data parallelism.
TinyScenario pipeline(const std::string& schedule,
                      std::int64_t pp,
                      std::int64_t micro_batches,
                      std::int64_t vpp = 1) {
  TinyScenario tiny;
  tiny.schedule = schedule;
  tiny.pp = pp;
  tiny.gpus = pp;
  tiny.vpp = vpp;
  tiny.batch = micro_batches;
  return tiny;
}

TinyScenario recomputed(TinyScenario tiny) {
  tiny.more = R"(, "recompute": {"mode": "full"})";
  return tiny;
}

StageReport stage(const TinyScenario& tiny, std::size_t rank) {
  return tiny.run().report.stages.at(rank);
}

std::int64_t activations(const TinyScenario& tiny, std::size_t rank) {
  return stage(tiny, rank).memory.activations;
}

// zb-h1 on p ranks, in the steady state of rank r: F, I_k, W_(k-r). After the F p micro-batches are
// in flight, after I_k the r + 1 from k - r to k have had their input gradients and wait for W.
TEST(ScheduleMemory, ZeroBubbleKeepsAllThatWIsOwed) {
  const TinyScenario plain = pipeline("zb-h1", 4, 6);  // 2 layers a stage
  for (const std::size_t rank : {1, 2}) {
    EXPECT_EQ(stage(plain, rank).in_flight_peak, 4);
    EXPECT_EQ(activations(plain, rank), 4 * 2 * kLayer);
  }
}

// What I recomputed stays until W, of the whole stage; 1f1b has one layer at a time. So checkpoints
// save zero bubble far less: the last rank of p waits with p micro-batches.
TEST(ScheduleMemory, ZeroBubbleRunsOutWhereCheckpointsSave1F1B) {
  for (const std::size_t rank : {0, 1, 2}) {
    const auto r = static_cast<std::int64_t>(rank);
    EXPECT_EQ(activations(recomputed(pipeline("zb-h1", 4, 6)), rank),
              4 * 2 * kInput + (r + 1) * 2 * kAgain);
    EXPECT_EQ(activations(recomputed(pipeline("1f1b", 4, 6)), rank), (4 - r) * 2 * kInput + kAgain);
  }
}

// The last rank of four: F_k with its logits over three that wait for W, each with the logits'
// gradient in 16 bits; what the loss had in 32 bits is gone after I.
TEST(ScheduleMemory, LogitsThatWaitForWAreTheirGradient) {
  for (const bool full : {false, true}) {
    const TinyScenario plain = pipeline("zb-h1", 4, 6);
    const StageMemory last = stage(full ? recomputed(plain) : plain, 3).memory;
    EXPECT_EQ(last.logits, kLogits + 3 * kLogits / 3);
    EXPECT_EQ(last.activations,
              full ? 4 * (2 * kInput + kHead) + 3 * 2 * kAgain : 4 * (2 * kLayer + kHead));
  }
}

TEST(ScheduleMemory, RecomputationIsPaidInTheInputGradient) {
  const auto costs = [](const TinyScenario& tiny) { return tiny.run().chunk_costs.stages.at(1); };
  const ChunkCosts plain = costs(pipeline("zb-h1", 4, 6));
  const ChunkCosts again = costs(recomputed(pipeline("zb-h1", 4, 6)));
  EXPECT_EQ(again.forward, plain.forward);
  EXPECT_EQ(again.input_gradient, plain.input_gradient + plain.forward);
  EXPECT_EQ(again.weight_gradient, plain.weight_gradient);
}

// zb-v of p = 2 and m = 4 on rank 0, a = stage 0 and b = stage 3:
//   Fa0 Fa1 Fa2  Fb0 Ib0 Wb0  Fb1 Ib1 Wb1  Fa3 Ia0 Wa0 Fb2 Ib2 Wb2  Ia1 Wa1 Fb3 Ib3 Wb3
//   Ia2 Wa2 Ia3 Wa3
// three of a under the head's one, whose logits make it the peak. On rank 1, a = 1 and b = 2:
//   Fa0 Fb0 Fa1 Fb1 Ib0 Wb0  Fa2 Ia0 Wa0 Fb2 Ib1 Wb1  Fa3 Ia1 Wa1 Fb3 Ib2 Wb2
//   Ia2 Ib3 Ia3 Wa2 Wb3 Wa3
// two of each; recomputed, the end is the peak, where three are in flight and all wait for W.
TEST(ScheduleMemory, AFoldedPipelineHoldsBothEndsOnRankZero) {
  const TinyScenario plain = pipeline("zb-v", 2, 4, 2);
  const StageReport first = stage(plain, 0);
  EXPECT_TRUE(first.embedding && first.head);
  EXPECT_EQ(first.in_flight_peak, 4);
  EXPECT_EQ(first.memory.activations, 3 * 2 * kLayer + 2 * kLayer + kHead);
  EXPECT_EQ(first.memory.logits, kLogits);
  EXPECT_EQ(first.memory.weights, 2 * (4 * kLayerParameters + 2 * kTable + 1024));
  const StageReport last = stage(plain, 1);
  EXPECT_FALSE(last.embedding || last.head);
  EXPECT_EQ(last.in_flight_peak, 4);
  EXPECT_EQ(last.memory.activations, 4 * 2 * kLayer);
  EXPECT_EQ(last.memory.logits, 0);
  EXPECT_EQ(last.memory.weights, 2 * 4 * kLayerParameters);
  // Logits outweigh two layers that I has again, when their 32-bit copy is gone.
  EXPECT_EQ(activations(recomputed(plain), 0), (3 * 2 + 2) * kInput + kHead);
  EXPECT_EQ(activations(recomputed(plain), 1), 3 * 2 * (kInput + kAgain));
}

TEST(ScheduleMemory, TiedTablesAreOneWhereTheEndsMeet) {
  const auto sent = [](TinyScenario tiny, bool tied) {
    tiny.tied = tied;
    const Expected<Lowered> lowered = lower(tiny.read());
    return test::sent_by_stream(lowered->program)["dp"];
  };
  TinyScenario folded = pipeline("zb-v", 2, 4, 2);
  EXPECT_EQ(sent(folded, true), sent(folded, false));
  // Elsewhere the first and the last rank sum their copies' gradients: 2 ranks send (2 - 1) / 2 of
  // twice the table in fp32.
  EXPECT_EQ(sent(pipeline("1f1b", 2, 4), true) - sent(pipeline("1f1b", 2, 4), false),
            2 * 4 * kTable);
  folded.tied = true;
  EXPECT_EQ(stage(folded, 0).memory.weights, 2 * (4 * kLayerParameters + kTable + 1024));
  EXPECT_EQ(stage(folded, 0).memory.gradients, 4 * (4 * kLayerParameters + kTable + 1024));
}

// Rank 1 of 4 holds stage 1 of one copy and stage 2 of the other, of two layers each; four ranks
// hold those two stages where dp is 2, and split their states.
TEST(ScheduleMemory, DualPipeHoldsTwiceTheModelAndOneMoreInFlight) {
  TinyScenario both = pipeline("dualpipe", 4, 16);
  both.gpus = 8;
  both.sharding = "zero1";
  const StageReport rank = stage(both, 1);
  EXPECT_EQ(rank.layers, 4);
  EXPECT_EQ(rank.memory.weights, 2 * 4 * kLayerParameters);
  EXPECT_EQ(rank.memory.gradients, 4 * 4 * kLayerParameters);
  EXPECT_EQ(rank.memory.optimizer, 12 * 4 * kLayerParameters / 4);
  EXPECT_EQ(rank.in_flight_peak, 5);
  EXPECT_EQ(rank.memory.activations, 5 * 2 * kLayer);
  TinyScenario one = both;
  one.schedule = "1f1b";
  EXPECT_EQ(rank.memory.weights, 2 * stage(one, 1).memory.weights);
  EXPECT_EQ(rank.memory.gradients, 2 * stage(one, 1).memory.gradients);
  EXPECT_EQ(rank.memory.optimizer, stage(one, 1).memory.optimizer);
  const StageReport end = stage(both, 0);
  EXPECT_EQ(end.memory.weights, 2 * (4 * kLayerParameters + 2 * kTable + 1024));
}

// dualpipev of p = 2 and m = 4 on rank 1, a = stage 1 and b = stage 2:
//   Fa0 Fb0 Fa1 Fb1 Fa2 Bb0 (Fb2;Ba0) (Fa3;Bb1) (Fb3;Ba1) Bb2 Ba2 Ib3 Ia3 Wb3 Wa3
// A forward takes its memory before the backward of its unit gives any back.
TEST(ScheduleMemory, DualPipeVHoldsOneModelAndOneMoreInFlight) {
  const TinyScenario plain = pipeline("dualpipev", 2, 4, 2);
  const StageReport last = stage(plain, 1);
  EXPECT_EQ(last.in_flight_peak, 5);
  EXPECT_EQ(last.memory.activations, 5 * 2 * kLayer);
  // Two are left for the split backwards at the end; whole ones have a layer again at a time.
  EXPECT_EQ(activations(recomputed(plain), 1), 2 * 2 * (kInput + kAgain));
  EXPECT_EQ(last.memory.weights, 2 * 4 * kLayerParameters);
  const StageReport first = stage(plain, 0);
  EXPECT_EQ(first.memory.weights, 2 * (4 * kLayerParameters + 2 * kTable + 1024));
}

// Four slices a micro-batch on two ranks: rank r has 1 - r + 4 slices in flight. The last rank has
// a whole micro-batch, with its logits, since the last slice goes back first.
TEST(ScheduleMemory, SlicesAreHeldOneByOne) {
  TinyScenario tiny = pipeline("seq1f1b", 2, 2);
  const auto cut = [&tiny](std::size_t rank) {
    const Expected<Scenario> scenario = parse_scenario(tiny.json(), ".", {"schedule.slices=4"});
    return simulate(*scenario)->report.stages.at(rank);
  };
  EXPECT_EQ(cut(0).in_flight_peak, 5);
  EXPECT_EQ(cut(0).memory.activations, 5 * 4 * kLayer / 4);
  EXPECT_EQ(cut(0).memory.logits, 0);
  EXPECT_EQ(cut(1).in_flight_peak, 4);
  EXPECT_EQ(cut(1).memory.activations, 4 * kLayer + kHead);
  EXPECT_EQ(cut(1).memory.logits, kLogits);
  EXPECT_EQ(stage(tiny, 0).memory.activations, 2 * 4 * kLayer);  // uncut: 1f1b
}

// Two micro-batches on four ranks of two layers.
TEST(ScheduleMemory, FewMicroBatchesAreAllThatCanBeInFlight) {
  EXPECT_EQ(activations(pipeline("gpipe", 4, 2), 1), 2 * 2 * kLayer);
  EXPECT_EQ(activations(pipeline("1f1b", 4, 2), 1), 2 * 2 * kLayer);
  EXPECT_EQ(activations(pipeline("1f1b", 4, 2), 2), 2 * 2 * kLayer);
  EXPECT_EQ(activations(pipeline("1f1b", 4, 2), 3), 2 * kLayer + kHead);
  EXPECT_EQ(activations(pipeline("zb-h1", 4, 2), 3), 2 * (2 * kLayer + kHead));
  EXPECT_EQ(activations(pipeline("zb-h2", 4, 2), 2), 2 * 2 * kLayer);
  // Two chunks of one layer, both micro-batches in each.
  EXPECT_EQ(activations(pipeline("looped-bfs", 4, 2, 2), 1), 4 * kLayer);
  EXPECT_EQ(activations(pipeline("interleaved-pytorch", 4, 2, 2), 1), 4 * kLayer);
  EXPECT_EQ(activations(pipeline("zb-v", 4, 2, 2), 1), 4 * kLayer);
}

// 1, 3, 2 and 2 layers under the lists of AFoldedPipelineHoldsBothEndsOnRankZero: rank 0 has three
// of stage 0 and one of stage 3, rank 1 after Fa2 three of stage 1 and one of stage 2.
TEST(ScheduleMemory, UnevenStagesOfAFoldedPipeline) {
  const std::string text = pipeline("zb-v", 2, 4, 2).json();
  const Expected<Scenario> scenario =
      parse_scenario(text, ".", {"parallelism.layers_per_stage=[1, 3, 2, 2]"});
  const StepReport report = simulate(*scenario)->report;
  EXPECT_EQ(report.stages[0].memory.activations, (3 * 1 + 2) * kLayer + kHead);
  EXPECT_EQ(report.stages[0].memory.weights, 2 * (3 * kLayerParameters + 2 * kTable + 1024));
  EXPECT_EQ(report.stages[1].memory.activations, (3 * 3 + 2) * kLayer);
  EXPECT_EQ(report.stages[1].memory.weights, 2 * 5 * kLayerParameters);
  // Four of stage 0 are 16 layers; three and the head's one are 13, but logits add 4.7.
  const Expected<Scenario> heavy =
      parse_scenario(text, ".", {"parallelism.layers_per_stage=[4, 1, 2, 1]"});
  const StageMemory first = simulate(*heavy)->report.stages[0].memory;
  EXPECT_EQ(first.activations, (3 * 4 + 1) * kLayer + kHead);
  EXPECT_EQ(first.logits, kLogits);
}

}  // namespace
}  // namespace foretrain
