// A layout stands once, whatever it is called.
#include "tests/search/search_jobs.h"

#include <algorithm>
#include <set>
#include <string>

namespace foretrain::test {
namespace {

template <typename Takes>
std::int64_t count_if(const SearchResult& result, const Takes& takes) {
  return std::count_if(result.layouts.begin(),
                       result.layouts.end(),
                       [&](const RankedLayout& ranked) { return takes(ranked.estimate.layout); });
}

TEST(Twins, WithoutAPipelineScheduleAndChunksMeanNothing) {
  const TrainingJob job = job_of("llama3-70b", 64, 8192, 512);
  SearchOptions options = closed_form(job);
  const auto no_pipeline = [](const Layout& layout) { return layout.pp == 1; };
  const std::int64_t plain = count_if(searched(job, options), no_pipeline);
  ASSERT_GT(plain, 0);
  options.axes.vpp = {5, 2, 1};
  for (const std::vector<std::string>& schedules :
       {std::vector<std::string>{"1f1b", "interleaved"},
        std::vector<std::string>{"gpipe", "interleaved", "1f1b"},
        std::vector<std::string>{"interleaved"},
        std::vector<std::string>{"interleaved", "gpipe"}}) {
    options.axes.schedules = schedules;
    const SearchResult result = searched(job, options);
    EXPECT_EQ(count_if(result, no_pipeline), plain) << schedules.size();
    EXPECT_EQ(
        count_if(result, [](const Layout& layout) { return layout.pp == 1 && layout.vpp > 1; }), 0);
    EXPECT_GT(count_if(result, [](const Layout& layout) { return layout.vpp > 1; }), 0);
  }
  options.axes.vpp = {2};
  options.axes.schedules = {"1f1b", "interleaved"};
  EXPECT_EQ(count_if(searched(job, options), no_pipeline), plain) << "under the one legal name";
}

TEST(Twins, ADimensionOfOneRankHasNoPlaceInTheOrder) {
  const TrainingJob job = job_of("llama3-8b", 64, 8192, 512);
  SearchOptions options = closed_form(job);
  const std::int64_t plain =
      count_if(searched(job, options), [](const Layout& layout) { return layout.pp == 1; });
  options.axes.orders = {"tp-cp-ep-dp-pp", "pp-tp-cp-ep-dp", "tp-cp-pp-dp-ep"};
  const SearchResult result = searched(job, options);
  EXPECT_EQ(count_if(result, [](const Layout& layout) { return layout.pp == 1; }), plain);
  std::set<std::string> orders;
  for (const RankedLayout& ranked : result.layouts) {
    const Layout& layout = ranked.estimate.layout;
    orders.insert(layout.tp > 1 && layout.pp > 1 && layout.dp > 1 ? layout.order : "");
  }
  EXPECT_EQ(orders.size(), 4U) << "with three dimensions above one each order is its own";
}

TEST(Twins, WithoutReplicasNothingIsSharded) {
  const TrainingJob job = job_of("llama3-8b", 8, 8192, 64);
  SearchOptions options = closed_form(job);
  options.axes.shardings = {Sharding::kZero3, Sharding::kZero1, Sharding::kZero2, Sharding::kNone};
  const SearchResult result = searched(job, options);
  const auto alone = [](const Layout& layout) { return layout.dp * layout.cp == 1; };
  SearchOptions plain = closed_form(job);
  EXPECT_EQ(count_if(result, alone), count_if(searched(job, plain), alone));
  EXPECT_GT(count_if(result, alone), 0);
  EXPECT_EQ(count_if(result,
                     [&](const Layout& layout) {
                       return alone(layout) && layout.sharding != Sharding::kNone;
                     }),
            0)
      << "the least sharding stands for all";
}

TEST(Twins, AllLayersRecomputedAndTheirNumberAreOne) {
  const TrainingJob job = job_of("llama3-8b", 8, 8192, 64);
  SearchOptions options = closed_form(job);
  options.axes.recompute_layers = {kRecomputeAll, 4};
  const SearchResult result = searched(job, options);
  const auto of_eight = [](const Layout& layout) { return layout.pp == 8; };  // 4 layers each
  options.axes.recompute_layers = {4};
  EXPECT_EQ(count_if(result, of_eight), count_if(searched(job, options), of_eight));
  EXPECT_GT(count_if(result, of_eight), 0);
}

}  // namespace
}  // namespace foretrain::test
