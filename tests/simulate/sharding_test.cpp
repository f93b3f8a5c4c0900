#include "tests/support/small_experts.h"

#include <gtest/gtest.h>

/// Rule: sharding changes memory and traffic, never the work; a degree of one is its absence.
namespace foretrain {
namespace {

using test::kSmallExperts;
using test::report_with;

constexpr const char* kDense = R"({"name": "dense", "model": "llama3-8b",
  "cluster": {"topology": "dgx-h100-ndr400", "gpus": 16},
  "training": {"sequence_length": 4096, "global_batch_size": 32},
  "parallelism": {"sharding": "zero3"}})";
constexpr const char* kFree = R"(costs={"model": "constant", "communication": "free"})";

std::int64_t peak(const StepReport& report) {
  return report.memory_peak;
}

TEST(Sharding, OnAFreeNetworkZero3TakesTheTimeOfZero1AndLessMemory) {
  for (const char* pipeline : {"parallelism.pp=1", "parallelism.pp=2"}) {
    const auto run = [&](const char* sharding) {
      return report_with(kDense, {kFree, pipeline, sharding});
    };
    const StepReport whole = run("parallelism.sharding=zero1");
    const StepReport units = run("parallelism.sharding=zero3");
    EXPECT_EQ(units.step_time, whole.step_time);
    EXPECT_EQ(units.breakdown, whole.breakdown);
    EXPECT_LT(peak(units), peak(whole));
  }
}

TEST(Sharding, AHybridGroupOfAllRanksIsZero3) {
  const StepReport all = report_with(kDense, {});
  const StepReport group = report_with(kDense, {"parallelism.shard_group=16"});
  EXPECT_EQ(group.step_time, all.step_time);
  EXPECT_EQ(group.breakdown, all.breakdown);
  EXPECT_EQ(peak(group), peak(all));
}

TEST(Sharding, AHybridGroupTradesMemoryForTraffic) {
  const StepReport all = report_with(kDense, {});
  const StepReport node = report_with(kDense, {"parallelism.shard_group=8"});
  EXPECT_GT(peak(node), peak(all));
  // States are split over 8 instead of 16: as many bytes more as half of 18 bytes a parameter / 8.
  const double parameters = static_cast<double>(all.parameters);
  EXPECT_NEAR(static_cast<double>(peak(node) - peak(all)), 18.0 * parameters / 16, 1e7);
}

TEST(Sharding, AloneThereIsNothingToShard) {
  const std::vector<std::string> alone = {"cluster.gpus=1", "training.global_batch_size=2"};
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.end(), alone.begin(), alone.end());
    return report_with(kDense, more);
  };
  const StepReport none = run({"parallelism.sharding=none"});
  for (const char* sharding :
       {"parallelism.sharding=zero1", "parallelism.sharding=zero2", "parallelism.sharding=zero3"}) {
    const StepReport report = run({sharding});
    EXPECT_EQ(report.step_time, none.step_time) << sharding;
    EXPECT_EQ(peak(report), peak(none)) << sharding;
  }
}

TEST(Sharding, UnitsThatStayGatheredAreNotGatheredAgain) {
  const auto bytes = [](const StepReport& report) {
    for (const NetworkReport& row : report.network) {
      if (row.group == "dp") {
        return static_cast<double>(row.bytes);
      }
    }
    return 0.0;
  };
  const StepReport again = report_with(kDense, {});
  const StepReport once = report_with(kDense, {"parallelism.fsdp.reshard_after_forward=false"});
  // Two gathers of 2 bytes and one reduction of 4, against one gather and the reduction.
  EXPECT_NEAR(bytes(once) / bytes(again), 6.0 / 8.0, 1e-6);
  EXPECT_GT(peak(once), peak(again));
}

TEST(Sharding, PrefetchHidesGathersAndCostsTheirMemory) {
  // One sequence of 1,024 tokens a rank: gathers take longer than a layer's kernels.
  const std::vector<std::string> little = {"training.sequence_length=1024",
                                           "training.global_batch_size=16"};
  const auto run = [&](const std::string& prefetch) {
    std::vector<std::string> sets = little;
    sets.push_back("parallelism.fsdp.prefetch=" + prefetch);
    return report_with(kDense, sets);
  };
  const StepReport none = run("0");
  const StepReport one = run("1");
  EXPECT_LT(one.step_time, none.step_time);
  EXPECT_LT(one.breakdown.dp, none.breakdown.dp);
  EXPECT_GT(peak(one), peak(none));
}

TEST(Sharding, WaitingForWeightsIsDataCommunicationWhateverComesFirst) {
  // Backward opens with a tensor gather; one stage has no bubble.
  const StepReport report = report_with(kDense,
                                        {"parallelism.tp=2",
                                         "parallelism.fsdp.prefetch=0",
                                         "training.sequence_length=1024",
                                         "training.global_batch_size=8"});
  EXPECT_GT(report.breakdown.dp, 10 * report.breakdown.tp);
  EXPECT_LT(report.breakdown.bubble, report.step_time / 100);
}

TEST(Sharding, WhatIsNotShardedIsNotGathered) {
  // 16 experts over ep 16: each is held once (edp 1); one replica alone has nothing to shard.
  const auto weights = [](const char* text, const std::vector<std::string>& sets) {
    return report_with(text, sets).stages.front().memory.weights;
  };
  const std::vector<std::string> experts = {"parallelism.ep=16"};
  std::vector<std::string> sharded = experts;
  sharded.push_back("parallelism.sharding=zero3");
  // A sixteenth of what all ranks hold alike, the rank's own expert of each layer whole, and two
  // gathered units of the largest kind, the head.
  const std::int64_t layer = 4 * 512 * 512 + 2 * 64 + 2 * 512 + 512 * 16;
  const std::int64_t head = 32000 * 512 + 512;
  const std::int64_t shared = 4 * layer + 32000 * 512 + head;
  const auto expected = [&](std::int64_t width, std::int64_t gathered) {
    return 2 * shared / 16 + 2 * (4 * 3 * 512 * width) + 2 * gathered;
  };
  EXPECT_EQ(weights(kSmallExperts, sharded), expected(256, 2 * head));
  std::vector<std::string> wide = sharded;  // an expert larger than the head
  wide.emplace_back("model.moe_intermediate_size=16384");
  EXPECT_EQ(weights(kSmallExperts, wide), expected(16384, 2 * head));
  std::vector<std::string> kept = sharded;
  kept.emplace_back("parallelism.fsdp.reshard_after_forward=false");
  EXPECT_EQ(weights(kSmallExperts, kept), expected(256, shared));
  EXPECT_LT(weights(kSmallExperts, sharded), weights(kSmallExperts, experts));
  const std::vector<std::string> replica = {"parallelism.tp=8", "cluster.gpus=8"};
  std::vector<std::string> alone = replica;
  alone.push_back("parallelism.sharding=none");
  EXPECT_EQ(weights(kDense, replica), weights(kDense, alone));
}

TEST(Sharding, TheOptimizerUpdatesWhatTheRankOwns) {
  // ep 4 over dp 16: an expert is held by 4 ranks. Norm: 4 bytes a parameter; Adam: gradient 4,
  // master weight and two moments read and written 24, the 16-bit copy 2.
  const StepReport report =
      report_with(kSmallExperts,
                  {"parallelism.ep=4", R"(costs={"model": "constant", "memory_bound_ops": true})"});
  const double layer = 4 * 512 * 512 + 2 * 64 + 2 * 512 + 512 * 16;
  const double shared = 4 * layer + 2 * 32000 * 512 + 512;
  const double experts = 4.0 * 4 * 3 * 512 * 256;
  const double owned = shared / 16 + experts / 4;
  EXPECT_NEAR(seconds(report.breakdown.optimizer), owned * (4 + 4 + 24 + 2) / 3350e9, 1e-9);
}

TEST(Sharding, WhatChangesNothingIsRefused) {
  const auto fault = [](const std::vector<std::string>& sets) {
    const Expected<Scenario> scenario = parse_scenario(kDense, ".", sets);
    return scenario ? std::string() : scenario.error().list.front().pointer;
  };
  EXPECT_EQ(fault({"parallelism.bucket_bytes=1000000"}), "/parallelism/bucket_bytes");
  EXPECT_EQ(fault({"parallelism.sharding=zero2", "parallelism.fsdp.prefetch=2"}),
            "/parallelism/fsdp");
  EXPECT_EQ(fault({"parallelism.sharding=none", "parallelism.shard_group=8"}),
            "/parallelism/shard_group");
  const std::vector<Diagnostic> refused =
      not_simulated(test::read_with(kSmallExperts, {"parallelism.ep=2", "overlap.ep=true"}));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_EQ(refused.front().pointer, "/overlap/ep");
}

TEST(Sharding, DegreesOfOneAreTheirAbsence) {
  const StepReport plain = report_with(kSmallExperts, {"costs=calibrated"});
  for (const char* set : {"parallelism.cp=1",
                          "parallelism.cp_kind=ulysses",
                          "parallelism.cp_kind=all_gather",
                          "parallelism.ep=1",
                          "parallelism.etp=1",
                          "stack.dispatcher=deepep",
                          "stack.dispatcher=allgather",
                          "parallelism.shard_group=16",
                          "training.multi_token_prediction=0",
                          "training.document_length=1024",
                          "parallelism.order=tp-dp-pp"}) {
    const StepReport report = report_with(kSmallExperts, {"costs=calibrated", set});
    EXPECT_EQ(report.step_time, plain.step_time) << set;
    EXPECT_EQ(report.breakdown, plain.breakdown) << set;
  }
}

TEST(Sharding, TheOrderOfDimensionsKeepsWhatIsMoved) {
  const std::vector<std::string> degrees = {
      "parallelism.tp=2", "parallelism.ep=4", "parallelism.pp=2", kFree};
  const auto run = [&](const std::string& order) {
    std::vector<std::string> sets = degrees;
    sets.push_back("parallelism.order=" + order);
    return report_with(kSmallExperts, sets);
  };
  const StepReport first = run("tp-cp-ep-dp-pp");
  for (const char* order : {"tp-cp-ep-pp-dp", "ep-dp-tp-pp", "pp-tp-ep-dp", "dp-tp-ep-pp"}) {
    const StepReport other = run(order);
    EXPECT_EQ(other.step_time, first.step_time) << order;
    ASSERT_EQ(other.network.size(), first.network.size()) << order;
    for (std::size_t i = 0; i < other.network.size(); ++i) {
      EXPECT_EQ(other.network[i].bytes, first.network[i].bytes)
          << order << " " << other.network[i].group;
    }
  }
}

}  // namespace
}  // namespace foretrain
