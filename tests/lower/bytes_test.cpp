#include "tests/support/sent_bytes.h"
#include "tests/support/small_experts.h"

#include "sim/lower/lower.h"

#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

/// Rule: what every collective moves is its formula, for any legal layout. The formulas here are
/// written from the layout alone and know no operator.
namespace foretrain {
namespace {

using test::kSmallExperts;
using test::read_with;
using test::sent_by_stream;

constexpr std::int64_t kHidden = 512, kExpertWidth = 256, kExperts = 16, kTopK = 2;
constexpr std::int64_t kLayers = 4, kVocabulary = 32000, kHeads = 8, kHeadDim = 64;

struct Degrees {
  std::int64_t tp = 1, ep = 1, etp = 1, dp = 1, pp = 1;
  std::string sharding = "zero1";
  std::int64_t gpus() const { return tp * dp * pp; }
  std::int64_t edp() const { return tp * dp / (ep * etp); }
  std::int64_t micro_batches() const { return 16 / dp; }
  std::vector<std::string> sets() const {
    const auto n = [](std::int64_t value) { return std::to_string(value); };
    return {"cluster.gpus=" + n(gpus()),
            "parallelism.tp=" + n(tp),
            "parallelism.ep=" + n(ep),
            "parallelism.etp=" + n(etp),
            "parallelism.pp=" + n(pp),
            "parallelism.sharding=" + sharding};
  }
};

std::vector<Degrees> random_layouts(int count) {
  std::mt19937 random(20261129);
  const auto pick = [&random](std::initializer_list<std::int64_t> list) {
    return list.begin()[random() % list.size()];
  };
  std::vector<Degrees> layouts;
  while (static_cast<int>(layouts.size()) < count) {
    Degrees at;
    at.tp = pick({1, 2, 4});
    at.dp = pick({1, 2, 4, 8});
    at.pp = pick({1, 2, 4});
    at.ep = pick({1, 2, 4, 8});
    at.etp = pick({1, 2});
    at.sharding = std::vector<std::string>{"none", "zero1", "zero3"}[random() % 3];
    if (at.tp * at.dp % (at.ep * at.etp) == 0) {
      layouts.push_back(at);
    }
  }
  return layouts;
}

TEST(CollectiveBytes, OfExpertsAreTokensTimesTopKTimesTheShareOffTheRank) {
  for (const Degrees& at : random_layouts(24)) {
    SCOPED_TRACE(at.sets()[1] + " " + at.sets()[2] + " " + at.sets()[3] + " " + at.sets()[4]);
    const Expected<Lowered> lowered = lower(read_with(kSmallExperts, at.sets()));
    ASSERT_TRUE(lowered.has_value());
    std::map<std::string, std::int64_t> sent = sent_by_stream(lowered->program);
    const std::int64_t tokens = 1024 / at.tp;
    const std::int64_t copies = tokens * kTopK * kHidden * 2;
    // Dispatch and combine, forward and backward; with etp every rank of it gathers the others'
    // rows and scatters its part of the result.
    const std::int64_t all_to_all = 4 * copies / at.ep * (at.ep - 1);
    const std::int64_t tensor = 4 * copies * (at.etp - 1);
    const std::int64_t layers_and_ranks = kLayers * at.micro_batches() * at.tp * at.dp;
    EXPECT_EQ(sent["ep"], (all_to_all + tensor) * layers_and_ranks);
  }
}

TEST(CollectiveBytes, OfContextParallelismAreCpMinusOnePassesOfKeysAndValues) {
  for (const std::int64_t cp : {1, 2, 4}) {
    for (const std::int64_t tp : {1, 2}) {
      const auto n = [](std::int64_t value) { return std::to_string(value); };
      const auto sent = [&](const std::string& kind) {
        const Expected<Lowered> lowered = lower(read_with(kSmallExperts,
                                                          {"cluster.gpus=" + n(2 * cp * tp),
                                                           "parallelism.cp=" + n(cp),
                                                           "parallelism.tp=" + n(tp),
                                                           "parallelism.cp_kind=" + kind}));
        return sent_by_stream(lowered->program)["cp"];
      };
      // dp 2: 8 micro-batches on each of 2 cp tp ranks. Keys and values go round forward and once
      // more backward, their gradients backward.
      const std::int64_t tensor = 1024 / cp * kHeads * kHeadDim / tp * 2;
      const std::int64_t times = kLayers * 8 * 2 * cp * tp;
      const std::int64_t passes = 3 * (cp - 1) * 2 * tensor * times;
      EXPECT_EQ(sent("ring"), passes) << "cp " << cp << " tp " << tp;
      EXPECT_EQ(sent("all_gather"), passes) << "cp " << cp << " tp " << tp;
      // Query, key, value and output change places, and so do their gradients.
      EXPECT_EQ(sent("ulysses"), 2 * 4 * tensor / cp * (cp - 1) * times)
          << "cp " << cp << " tp " << tp;
    }
  }
}

/// Parameters of one stage on one rank: what dp x cp reduces, and what edp reduces.
std::pair<std::int64_t, std::int64_t> parameters(const Degrees& at, std::int64_t stage) {
  const std::int64_t attention = 4 * kHidden * kHeads * kHeadDim / at.tp + 2 * kHeadDim;
  const std::int64_t layer = attention + 2 * kHidden + kHidden * kExperts;
  const std::int64_t table = kVocabulary / at.tp * kHidden;
  const std::int64_t layers = kLayers / at.pp;
  return {layers * layer + (stage == 0 ? table : 0) + (stage + 1 == at.pp ? table + kHidden : 0),
          layers * kExperts / at.ep * 3 * kHidden * kExpertWidth / at.etp};
}

TEST(CollectiveBytes, OfStatesAreGradientsAndParametersOverTheirOwnGroups) {
  for (const Degrees& at : random_layouts(24)) {
    SCOPED_TRACE(at.sets()[1] + " " + at.sets()[2] + " " + at.sets()[4] + " " + at.sharding +
                 " dp " + std::to_string(at.dp));
    const Expected<Lowered> lowered = lower(read_with(kSmallExperts, at.sets()));
    ASSERT_TRUE(lowered.has_value());
    std::map<std::string, std::int64_t> sent = sent_by_stream(lowered->program);
    const std::int64_t m = at.micro_batches();
    // fp32 gradients, 16-bit parameters. zero3 gathers for every forward and backward and reduces
    // after every backward.
    const std::int64_t each = at.sharding == "none"    ? 2 * 4
                              : at.sharding == "zero1" ? 4 + 2
                                                       : m * (2 + 2 + 4);
    // Every size here divides by its group, so that nothing is rounded.
    std::int64_t expected = 0;
    for (std::int64_t stage = 0; stage < at.pp; ++stage) {
      const auto [shared, experts] = parameters(at, stage);
      const std::int64_t rank =
          shared * each / at.dp * (at.dp - 1) + experts * each / at.edp() * (at.edp() - 1);
      expected += rank * at.tp * at.dp;
    }
    // The gradient norm is 4 bytes over all ranks that hold different gradients, the loss 4 over a
    // pipeline.
    const std::int64_t norm = at.sharding == "none" ? at.tp * at.pp : at.gpus();
    expected += at.gpus() * ((8 * (norm - 1) + norm - 1) / norm);
    expected += at.pp > 1 ? at.gpus() * 4 : 0;
    EXPECT_EQ(sent["dp"], expected);
  }
}

TEST(CollectiveBytes, OfHybridShardsAreOneSumOverReplicasAStep) {
  // tp 1, pp 1, dp 8 in two groups of 4, two micro-batches; experts over ep 2 (edp 4, two of 2).
  Degrees at;
  at.dp = 8;
  at.ep = 2;
  at.sharding = "zero3";
  const auto [shared, experts] = parameters(at, 0);
  const auto sent = [&](const std::string& reduction) {
    std::vector<std::string> sets = at.sets();
    sets.emplace_back("parallelism.shard_group=4");
    sets.push_back("parallelism.fsdp.reduction=" + reduction);
    const Expected<Lowered> lowered = lower(read_with(kSmallExperts, sets));
    return sent_by_stream(lowered->program)["dp"];
  };
  const auto of = [](std::int64_t parameters, std::int64_t group, std::int64_t times) {
    // Gathered twice a micro-batch in 16 bits, reduced `times` in 32; then each shard's all-reduce
    // over two replicas: 2 (2 - 1) / 2 of it.
    const std::int64_t inside = (2 * (2 + 2) + times * 4) * parameters / group * (group - 1);
    return inside + 4 * parameters / group;
  };
  const std::int64_t norm = 8 * 7;
  EXPECT_EQ(sent("micro_batch"), 8 * (of(shared, 4, 2) + of(experts, 2, 2)) + norm);
  EXPECT_EQ(sent("run"), 8 * (of(shared, 4, 1) + of(experts, 2, 1)) + norm);
}

TEST(CollectiveBytes, ExecutedFlopsAreTheFormulaForAnyFolding) {
  for (const Degrees& at : random_layouts(12)) {
    const Scenario scenario = read_with(kSmallExperts, at.sets());
    const Expected<Lowered> lowered = lower(scenario);
    ASSERT_TRUE(lowered.has_value());
    const double formula = flops_per_token(scenario.model, 1024, FlopsConvention::kCausal) *
                           static_cast<double>(lowered->facts.tokens);
    EXPECT_NEAR(static_cast<double>(lowered->facts.model_flops) / formula, 1.0, 1e-9);
  }
}

}  // namespace
}  // namespace foretrain
