// Questions that users of such tools asked in public, and the answers a search must give.
#include "tests/search/search_jobs.h"

#include <algorithm>
#include <string>

namespace foretrain::test {
namespace {

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::int64_t gpus_of(const Estimate& estimate) {
  const Layout& layout = estimate.layout;
  return layout.tp * layout.cp * layout.pp * layout.dp;
}

// Megatron-LM#1000: 70.6e9 x 16 bytes = 1.13 TB, x 18 = 1.27 TB; over 80 GB: 14.1 and 15.9 GPUs.
TEST(UserCases, SeventyBillionOnOneNodeOfA100) {
  const TrainingJob job = job_of("llama3-70b", 8, 4096, 8, "dgx-a100-hdr200");
  SearchOptions options = closed_form(job);
  options.shown = {{.tp = 8, .pp = 2}, {.tp = 8}};
  const SearchResult result = searched(job, options);
  EXPECT_TRUE(result.layouts.empty());
  EXPECT_TRUE(says(result.reason, "70.6e9 parameters x 16 bytes = 1.13 TB")) << result.reason;
  EXPECT_TRUE(says(result.reason, "at least 15 GPUs of 80.0 GB")) << result.reason;
  EXPECT_TRUE(says(result.reason, "18 bytes = 1.27 TB")) << result.reason;
  EXPECT_TRUE(says(result.reason, "at least 16 GPUs of 80.0 GB")) << result.reason;
  EXPECT_TRUE(says(result.reason, "here are 8 x 80.0 GB = 640 GB")) << result.reason;
  ASSERT_TRUE(result.nearest);
  EXPECT_EQ(result.nearest->layout.tp, 8);
  // 70.6e9 / 8 parameters x 16 bytes, and a checkpoint of 2 bytes in each of 80 layers.
  EXPECT_NEAR(result.nearest->memory.total(), 70.6e9 / 8 * 16 + 80.0 * 2 * 4096 * 8192 / 8, 1);
  ASSERT_TRUE(result.smallest);
  EXPECT_EQ(gpus_of(*result.smallest), 16);
  EXPECT_TRUE(says(result.reason, "smallest cluster: 16 GPUs as tp 8 · cp 1 · pp 2 · dp 1"))
      << result.reason;
  ASSERT_EQ(result.shown.size(), 2U);
  EXPECT_EQ(result.shown[0].reason, "tp 8 x cp 1 x pp 2 = 16 does not divide 8 GPUs");
  EXPECT_TRUE(says(result.shown[1].reason, "needs 142 GB of the 72.0 GB a GPU may use"))
      << result.shown[1].reason;
}

// inference-sim#624: a refusal carries the breakdown and the smallest layout that fits.
TEST(UserCases, DeepSeekOnTwoGpus) {
  const TrainingJob job = job_of("deepseek-v3", 2, 4096, 64);
  const SearchResult result = searched(job, closed_form(job));
  EXPECT_TRUE(result.layouts.empty());
  for (const char* part : {"nearest: ",
                           "weights ",
                           "gradients ",
                           "optimizer ",
                           "activations ",
                           "671e9 parameters x 16 bytes = 10.7 TB",
                           "here are 2 x 80.0 GB",
                           "smallest cluster: "}) {
    EXPECT_TRUE(says(result.reason, part)) << part << " in " << result.reason;
  }
  ASSERT_TRUE(result.smallest);
  EXPECT_TRUE(result.smallest->fits);
  // 10.7 TB of states over what 72 GB hold.
  EXPECT_GE(gpus_of(*result.smallest), 671e9 * 16 / 72e9);
}

// 126 layers divide by few pp: 406e9 x 16 bytes = 6.5 TB take at least 91 GPUs of 72 GB.
TEST(UserCases, UnevenStagesMayHoldOnFewer) {
  const TrainingJob job = job_of("llama3-405b", 8, 4096, 16);
  const SearchResult result = searched(job, closed_form(job));
  EXPECT_TRUE(says(result.reason, "with uneven stages: 128 GPUs as tp 8 · cp 1 · pp 16 · dp 1"))
      << result.reason;
}

// Which layout, and what is the smallest cluster it fits: a list with margins, a number of GPUs.
TEST(UserCases, WhichLayoutAndTheSmallestCluster) {
  const TrainingJob job = job_of("llama3-8b", 64, 8192, 512);
  const SearchResult result = searched(job, closed_form(job));
  ASSERT_GE(result.layouts.size(), 3U);
  for (const RankedLayout& ranked : result.layouts) {
    EXPECT_LE(ranked.estimate.memory.total(), ranked.estimate.memory_limit);
  }
  ASSERT_TRUE(result.smallest);
  EXPECT_EQ(gpus_of(*result.smallest), 2);  // 128 GB of states: 2 x 72 GB hold them
  EXPECT_TRUE(result.reason.empty());
}

/// The best rank of a layout that a test takes; 0: none.
template <typename Takes>
std::int64_t best_rank(const SearchResult& result, const Takes& takes) {
  for (const RankedLayout& ranked : result.layouts) {
    if (takes(ranked.estimate.layout)) {
      return ranked.rank;
    }
  }
  return 0;
}

// Megatron-LM#756: Mixtral 8x7B on 16 H100: ep 8 with a small tp comes before tp 4, with experts
// cut or without. Ranks that hold every expert of their layers whole do not fit beside tp 4.
TEST(UserCases, MixtralPrefersExpertsOverTensors) {
  const TrainingJob job = job_of("mixtral-8x7b", 16, 2048, 128);
  const SearchResult result = searched(job, closed_form(job));
  const auto experts = [](const Layout& layout) { return layout.ep == 8 && layout.tp <= 2; };
  const auto tensors = [](const Layout& layout) { return layout.tp == 4; };
  const auto whole = [](const Layout& layout) { return layout.ep == 1 && layout.tp == 4; };
  ASSERT_GT(best_rank(result, experts), 0);
  EXPECT_LE(best_rank(result, experts), 3);
  ASSERT_GT(best_rank(result, tensors), 0);
  EXPECT_LT(best_rank(result, experts), best_rank(result, tensors));
  EXPECT_EQ(best_rank(result, whole), 0);
}

// tp x cp x dp = etp x ep x edp: 4 x 1 x 4 = 1 x 8 x 2, as the reader of scenarios has it.
TEST(UserCases, ExpertsReachOverTheRanksOfTensors) {
  const TrainingJob job = job_of("mixtral-8x7b", 16, 2048, 128);
  const SearchResult result = searched(job, closed_form(job));
  EXPECT_GT(best_rank(result,
                      [](const Layout& layout) {
                        return layout.tp == 4 && layout.pp == 1 && layout.ep == 8;
                      }),
            0);
}

/// Simulated utilisation of pp 8 over that of tp 8, and the closed form's.
struct Ratio {
  double estimated = 0, simulated = 0;
};

Ratio pipeline_over_tensor(std::int64_t micro_batches) {
  const TrainingJob job = job_of("llama2-13b", 8, 2048, micro_batches, "dgx-a100-hdr200");
  SearchOptions options = closed_form(job);
  options.simulate = 1;
  options.shown = {{.pp = 8}, {.tp = 8}};
  const SearchResult result = searched(job, options);
  const auto& pipeline = result.shown.at(0).layout;
  const auto& tensor = result.shown.at(1).layout;
  if (!pipeline || !tensor || !pipeline->simulated || !tensor->simulated) {
    ADD_FAILURE() << "not simulated";
    return {};
  }
  return {pipeline->estimate.mfu / tensor->estimate.mfu,
          pipeline->simulated->mfu / tensor->simulated->mfu};
}

// Megatron-LM#258: in one node the pipeline wins when micro-batches are many, tensor parallelism
// when they are no more than the stages; in between the two change places once.
TEST(UserCases, PipelineAgainstTensorInOneNode) {
  for (const std::int64_t few : {1, 4, 8}) {
    const Ratio ratio = pipeline_over_tensor(few);
    EXPECT_LT(ratio.estimated, 1) << few;
    EXPECT_LT(ratio.simulated, 1) << few;
  }
  double before = 0;
  for (const std::int64_t more : {8, 16, 32, 64, 128, 256}) {
    const double ratio = pipeline_over_tensor(more).simulated;
    EXPECT_GT(ratio, before) << more;
    before = ratio;
  }
  const Ratio many = pipeline_over_tensor(256);
  EXPECT_GT(many.estimated, 1);
  EXPECT_GT(many.simulated, 1);
}

}  // namespace
}  // namespace foretrain::test
