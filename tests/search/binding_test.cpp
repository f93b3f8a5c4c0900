// An empty list names the rule that leaves out what would be possible otherwise, and the way out
// leads somewhere.
#include "tests/search/search_jobs.h"

#include <string>

namespace foretrain::test {
namespace {

TrainingJob usual_job() {
  return job_of("llama3-70b", 64, 8192, 512);
}

void expect_reason(const SearchResult& result, const std::string& part) {
  EXPECT_TRUE(result.layouts.empty());
  EXPECT_NE(result.reason.find(part), std::string::npos) << result.reason;
}

// 36 layouts of this job keep every rule with vpp 1; of them pp 1 to 8 take two chunks of 80
// layers, five stages of 16 do not.
TEST(Binding, ChunksWithoutASchedule) {
  const TrainingJob job = usual_job();
  SearchOptions options = closed_form(job);
  options.axes.vpp = {2};
  const SearchResult result = searched(job, options);
  expect_reason(result,
                "vpp above 1 without interleaved: 31 of 120 combinations break this rule alone, "
                "but not with --schedules interleaved");
  EXPECT_EQ(result.reason.find("GPUs: "), std::string::npos) << result.reason;
  EXPECT_EQ(result.way_out, (std::vector<SearchChange>{{"--schedules", "interleaved"}}));
  options.axes.schedules = {"interleaved"};
  EXPECT_FALSE(searched(job, options).layouts.empty());
}

TEST(Binding, MoreLayersRecomputedThanThereAre) {
  const TrainingJob job = usual_job();
  SearchOptions options = closed_form(job);
  options.axes.recompute_layers = {200};
  const SearchResult result = searched(job, options);
  expect_reason(result, "more layers to recompute than a stage holds: 36 of 120");
  EXPECT_EQ(result.way_out, (std::vector<SearchChange>{{"--recompute", "as_needed"}}));
}

TEST(Binding, TwoRulesAtOnce) {
  const TrainingJob job = usual_job();
  SearchOptions options = closed_form(job);
  options.axes.recompute_layers = {200};
  options.axes.vpp = {2};
  const SearchResult result = searched(job, options);
  expect_reason(result,
                "vpp above 1 without interleaved, and more layers to recompute than a stage "
                "holds: 31 of 120 combinations break these rules alone");
  EXPECT_EQ(result.way_out.size(), 2U);
}

// 80 and 82 layers do not divide by three chunks.
TEST(Binding, ChunksThatDoNotDivideTheLayers) {
  const TrainingJob job = usual_job();
  SearchOptions options = closed_form(job);
  options.axes.vpp = {3};
  options.axes.schedules = {"interleaved"};
  const SearchResult result = searched(job, options);
  expect_reason(result, "pp x vpp does not divide 80 layers: 36 of 120 combinations break this");
  EXPECT_EQ(result.way_out, (std::vector<SearchChange>{{"--vpp", "1"}}));
  options.axes.vpp = {1};
  EXPECT_FALSE(searched(job, options).layouts.empty());
}

TEST(Binding, MoreMicroBatchesThanMayBe) {
  TrainingJob job = job_of("llama3-70b", 64, 8192, std::int64_t{1} << 53);
  const SearchOptions options = closed_form(job);
  const SearchResult result = searched(job, options);
  expect_reason(result, "more than 1,048,576 micro-batches: 36 of 120");
  ASSERT_EQ(result.way_out.size(), 1U);
  EXPECT_EQ(result.way_out[0].option, "--gbs");
  job.global_batch_size = std::stoll(result.way_out[0].value);
  EXPECT_FALSE(searched(job, options).layouts.empty());
}

// 16 bytes x 70.6e9 over 8 x 72 GB: memory binds, and more GPUs are the way out.
TEST(Binding, MemoryAsksForMoreGpus) {
  const TrainingJob job = job_of("llama3-70b", 8, 4096, 8, "dgx-a100-hdr200");
  const SearchResult result = searched(job, closed_form(job));
  EXPECT_EQ(result.way_out, (std::vector<SearchChange>{{"--gpus", "16"}}));
}

}  // namespace
}  // namespace foretrain::test
