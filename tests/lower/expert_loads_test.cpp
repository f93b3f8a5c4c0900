#include "sim/lower/expert_loads.h"

#include "tests/support/own_folder.h"
#include "tests/support/small_experts.h"

#include <cmath>
#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>

/// Rule: an imbalance is the hottest rank's load over the mean, the same for traffic, GEMMs and
/// memory.
namespace foretrain {
namespace {

using test::kSmallExperts;
using test::read_with;
using test::report_with;

const std::vector<std::string> kEight = {"cluster.gpus=8", "parallelism.ep=8"};

std::vector<std::string> with(const std::string& imbalance) {
  std::vector<std::string> sets = kEight;
  sets.push_back(R"(perturbations=[{"kind": "expert_imbalance", )" + imbalance + "}]");
  return sets;
}

TEST(ExpertLoads, TwiceAsHotTakesAboutTwiceTheExpertsTimeAndMemory) {
  // Experts wide enough that they dominate their layer.
  const std::string wide = "model.moe_intermediate_size=8192";
  std::vector<std::string> even = kEight;
  std::vector<std::string> hot = with(R"("factor": 2.0)");
  even.push_back(wide);
  hot.push_back(wide);
  const StepReport mean = report_with(kSmallExperts, even);
  const StepReport twice = report_with(kSmallExperts, hot);
  const double ratio = seconds(twice.step_time) / seconds(mean.step_time);
  EXPECT_GT(ratio, 1.6);
  EXPECT_LT(ratio, 2.0);
  const auto kept = [](const StepReport& report, const std::string& tensor) {
    for (const LayerActivation& entry : report.layer_activations) {
      if (entry.tensor == tensor) {
        return entry.bytes;
      }
    }
    return std::int64_t{0};
  };
  EXPECT_GT(kept(mean, "expert activation output"), 0);
  EXPECT_EQ(kept(twice, "expert activation output"), 2 * kept(mean, "expert activation output"));
  ASSERT_EQ(twice.stragglers.size(), 1U);
  EXPECT_EQ(twice.stragglers.front().cost, twice.step_time - mean.step_time);
}

TEST(ExpertLoads, AFactorOfOneIsNoImbalance) {
  EXPECT_EQ(report_with(kSmallExperts, with(R"("factor": 1.0)")).step_time,
            report_with(kSmallExperts, kEight).step_time);
  EXPECT_EQ(
      report_with(kSmallExperts, with(R"("distribution": "lognormal", "sigma": 0.0)")).step_time,
      report_with(kSmallExperts, kEight).step_time);
}

/// 4 layers, 2 micro-batches, 8 ranks: rank (layer + micro-batch) mod 8 gets 3, the others 1.
std::string loads_file(bool complete) {
  const std::string path = test::own_folder() + "expert_loads.csv";
  std::ofstream file(path);
  file << "layer,micro_batch,rank,load\n";
  for (int layer = 0; layer < 4; ++layer) {
    for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
      for (int rank = 0; rank < (complete || layer < 3 ? 8 : 7); ++rank) {
        const bool hot = rank == (layer + micro_batch) % 8 && layer != 2;
        file << layer << ',' << micro_batch << ',' << rank << ',' << (hot ? 3 : 1) << '\n';
      }
    }
  }
  return path;
}

TEST(ExpertLoads, AFileSaysEveryLayerMicroBatchAndRank) {
  const Scenario scenario =
      read_with(kSmallExperts, with(R"("file": ")" + loads_file(true) + "\""));
  const ExpertLoads loads(scenario);
  ASSERT_TRUE(loads.varies());
  // Hottest over mean: 3 / (10 / 8) = 2.4, rounded up to a sixty-fourth; layer 2 is even.
  for (const std::int64_t micro_batch : {0, 1}) {
    EXPECT_NEAR(loads.at(0, micro_batch), 2.4, 1.0 / 64);
    EXPECT_GE(loads.at(0, micro_batch), 2.4);
    EXPECT_EQ(loads.at(2, micro_batch), 1.0);
  }
}

TEST(ExpertLoads, AFileWithAHoleIsRefusedAndTheHoleNamed) {
  const Expected<Scenario> scenario =
      parse_scenario(kSmallExperts, ".", with(R"("file": ")" + loads_file(false) + "\""));
  ASSERT_FALSE(scenario.has_value());
  EXPECT_EQ(scenario.error().list.front().pointer, "/perturbations/0/file");
  EXPECT_EQ(scenario.error().list.front().message,
            "has no load for layer 3, micro-batch 0, rank 7");
}

TEST(ExpertLoads, NoRankGetsMoreThanEveryTokenCanSend) {
  const auto fault = [](const std::vector<std::string>& sets) {
    const Expected<Scenario> scenario = parse_scenario(kSmallExperts, ".", sets);
    return scenario ? std::string() : scenario.error().list.front().pointer;
  };
  // ep 8, two experts a rank, top-2: both copies of every token make 8 times the mean.
  EXPECT_EQ(fault(with(R"("factor": 8.0)")), "");
  EXPECT_EQ(fault(with(R"("factor": 8.1)")), "/perturbations/0/factor");
  const std::string imbalance = R"(perturbations=[{"kind": "expert_imbalance", "factor": 1.5}])";
  EXPECT_EQ(fault({imbalance}), "/perturbations/0/factor");
  EXPECT_EQ(fault(with(R"("file": "/dev/null")")), "/perturbations/0/file");
  EXPECT_EQ(fault(with(R"("file": "/tmp")")), "/perturbations/0/file");
}

TEST(ExpertLoads, DrawsAreTheSeedsAndTheirMeanIsTheBruteForce) {
  const std::vector<std::string> sets = with(R"("distribution": "lognormal", "sigma": 0.4)");
  const Scenario scenario = read_with(kSmallExperts, sets);
  Scenario other = scenario;
  other.seed = 7;
  const ExpertLoads first(scenario);
  const ExpertLoads again(scenario);
  const ExpertLoads reseeded(other);
  int different = 0;
  for (std::int64_t layer = 0; layer < 4; ++layer) {
    EXPECT_EQ(first.at(layer, 1), again.at(layer, 1));
    EXPECT_GT(first.at(layer, 1), 1.0);
    EXPECT_LT(first.at(layer, 1), 8.0);
    different += first.at(layer, 1) == reseeded.at(layer, 1) ? 0 : 1;
  }
  EXPECT_GT(different, 0);
}

}  // namespace
}  // namespace foretrain
