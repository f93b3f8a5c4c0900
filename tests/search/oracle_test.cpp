// The search against a second, naive implementation of the chapter, over every layout; the
// smallest cluster against trying every size.
#include "tests/search/naive_chapter.h"
#include "tests/search/search_jobs.h"

#include <algorithm>
#include <string>
#include <vector>

namespace foretrain::test {
namespace {

struct Pair {
  const char* model;
  NaiveJob naive;
};

/// Parameters as the models' papers and configurations give them, to three figures.
NaiveJob sized(const std::string& model,
               std::int64_t sequence,
               std::int64_t batch,
               std::int64_t n) {
  if (model == "llama3-405b") {
    return {406e9, 126, 16384, 1024, 128256, sequence, batch, n};
  }
  if (model == "llama3-70b") {
    return {70.6e9, 80, 8192, 1024, 128256, sequence, batch, n};
  }
  if (model == "llama2-7b") {
    return {6.74e9, 32, 4096, 4096, 32000, sequence, batch, n};
  }
  return {8.03e9, 32, 4096, 1024, 128256, sequence, batch, n};  // llama3-8b
}

Pair pair_of(const char* model, std::int64_t sequence, std::int64_t batch, std::int64_t gpus) {
  return {model, sized(model, sequence, batch, gpus)};
}

std::vector<Pair> pairs() {
  return {pair_of("llama3-70b", 8192, 512, 64),
          pair_of("llama3-70b", 131072, 32, 64),
          pair_of("llama3-70b", 8192, 512, 1024),
          pair_of("llama3-8b", 8192, 64, 8),
          pair_of("llama3-8b", 8192, 7, 1),
          pair_of("llama3-8b", 8192, 7, 2),
          pair_of("llama3-8b", 65536, 7, 56),
          pair_of("llama3-8b", 8192, 12, 12),
          pair_of("llama3-8b", 8192, 100, 24),
          pair_of("llama2-7b", 4096, 1024, 16),
          pair_of("llama2-7b", 32768, 96, 96),
          pair_of("llama3-405b", 8192, 2048, 16384),
          pair_of("llama3-405b", 131072, 128, 2048),
          pair_of("llama3-405b", 8192, 256, 512)};
}

/// Both are sums of the same few terms in double; the order of summing may differ.
constexpr double kRounding = 1e-12;

void expect_same(const NaiveLayout& naive, const RankedLayout& ranked) {
  const Estimate& estimate = ranked.estimate;
  EXPECT_NEAR(estimate.mfu, naive.mfu, kRounding);
  EXPECT_NEAR(estimate.step_time_s / naive.step, 1, kRounding);
  EXPECT_NEAR(estimate.memory.total() / naive.bytes, 1, kRounding);
  EXPECT_EQ(estimate.recompute_layers, naive.recomputed);
  EXPECT_EQ(estimate.layout.dp, naive.dp);
  const EstimateParts& parts = estimate.parts;
  const std::array<double, 8> found = {parts.compute,
                                       parts.recompute,
                                       parts.imbalance,
                                       parts.tp,
                                       parts.cp,
                                       parts.pp,
                                       parts.bubble,
                                       parts.dp};
  for (std::size_t part = 0; part < found.size(); ++part) {
    EXPECT_NEAR(found[part], naive.parts[part], kRounding * naive.step) << "part " << part;
  }
}

TEST(Oracle, EveryLayoutIsTheNaiveChaptersAndInItsOrder) {
  for (const Pair& pair : pairs()) {
    const NaiveJob& naive = pair.naive;
    SCOPED_TRACE(std::string(pair.model) + " on " + std::to_string(naive.gpus) + ", " +
                 std::to_string(naive.sequence) + " tokens, batch " + std::to_string(naive.batch));
    const TrainingJob job = job_of(pair.model, naive.gpus, naive.sequence, naive.batch);
    const std::vector<NaiveLayout> expected = naive_search(naive);
    const SearchResult result = searched(job, closed_form(job));
    ASSERT_EQ(result.layouts.size(), expected.size());
    for (std::size_t rank = 0; rank < expected.size(); ++rank) {
      const NaiveLayout& wanted = expected[rank];
      // Layouts that differ by rounding alone may change places.
      EXPECT_NEAR(result.layouts[rank].estimate.mfu, wanted.mfu, kRounding) << "rank " << rank + 1;
      const auto found = std::find_if(
          result.layouts.begin(), result.layouts.end(), [&](const RankedLayout& ranked) {
            const Layout& layout = ranked.estimate.layout;
            return layout.tp == wanted.tp && layout.cp == wanted.cp && layout.pp == wanted.pp;
          });
      ASSERT_NE(found, result.layouts.end());
      expect_same(wanted, *found);
    }
  }
}

TEST(Oracle, TheSmallestClusterIsTheFirstSizeOnWhichAnythingFits) {
  for (const Pair& pair : pairs()) {
    const NaiveJob& naive = pair.naive;
    const std::int64_t expected = naive_fewest_gpus(naive, 512);
    const TrainingJob job = job_of(pair.model, naive.gpus, naive.sequence, naive.batch);
    const auto smallest = smallest_that_fits(job, SearchAxes{}, closed_form(job).assumptions, 512);
    ASSERT_EQ(smallest.has_value(), expected > 0) << pair.model;
    if (!smallest) {
      continue;
    }
    NaiveJob there = naive;
    there.gpus = expected;
    const Layout& layout = smallest->layout;
    EXPECT_EQ(layout.tp * layout.cp * layout.pp * layout.dp, expected) << pair.model;
    EXPECT_NEAR(smallest->mfu, naive_search(there).front().mfu, kRounding)
        << "the faster of equals";
  }
}

/// The same with experts and axes, for which the oracle is the search itself on every size.
TEST(Oracle, TheSmallestClusterWithExpertsAndAxesIsTheFirstThatTheSearchFills) {
  TrainingJob job = job_of("mixtral-8x7b", 1, 2048, 48);
  SearchOptions options = closed_form(job);
  options.axes.micro_batch_sizes = {2, 1};
  options.axes.shardings = {Sharding::kZero1, Sharding::kZero3};
  options.axes.schedules = {"1f1b", "interleaved"};
  options.axes.vpp = {1, 2};
  const auto smallest = smallest_that_fits(job, options.axes, options.assumptions);
  ASSERT_TRUE(smallest);
  for (job.gpus = 1; job.gpus <= 64; ++job.gpus) {
    const SearchResult result = searched(job, options);
    ASSERT_TRUE(result.smallest);
    EXPECT_EQ(result.smallest->layout, smallest->layout) << "whatever cluster is asked about";
    if (!result.layouts.empty()) {
      EXPECT_EQ(result.layouts.front().estimate.layout, smallest->layout);
      EXPECT_GT(job.gpus, 1);
      return;
    }
  }
  FAIL() << "nothing fits up to 64 GPUs";
}

TEST(Oracle, NoClusterLargerThanAllowedIsOffered) {
  const TrainingJob job = job_of("llama3-70b", 8, 4096, 8);
  const Assumptions given = closed_form(job).assumptions;
  EXPECT_TRUE(smallest_that_fits(job, SearchAxes{}, given, 16));
  EXPECT_FALSE(smallest_that_fits(job, SearchAxes{}, given, 15));
}

}  // namespace
}  // namespace foretrain::test
