// What a search counts, explains, refuses and simulates.
#include "tests/search/search_jobs.h"
#include "tests/support/windowed_model.h"

#include "foretrain/simulate.h"
#include "sim/search/combinations.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace foretrain::test {
namespace {

SearchAxes wide_axes() {
  SearchAxes axes;
  axes.micro_batch_sizes = {1, 2, 4};
  axes.vpp = {1, 2, 4};
  axes.recompute_layers = {kRecomputeAsNeeded, 0, kRecomputeAll, 3};
  axes.shardings = {Sharding::kNone, Sharding::kZero1, Sharding::kZero2, Sharding::kZero3};
  axes.schedules = {"gpipe", "1f1b", "interleaved"};
  axes.orders = {"tp-cp-ep-dp-pp", "tp-cp-pp-ep-dp"};
  axes.uneven_stages = true;
  return axes;
}

std::string printed(const RankedLayout& ranked) {
  std::string text = to_string(ranked.estimate.layout) + " | " +
                     std::to_string(ranked.estimate.recompute_layers) + " | " +
                     std::to_string(ranked.closed_form_rank) + " " + ranked.not_simulated;
  if (ranked.simulated) {
    text += " " + std::to_string(ranked.simulated->memory_bytes);
  }
  return text;
}

TEST(Search, CountsEveryCombinationOnce) {
  for (const char* const model : {"llama3-8b", "mixtral-8x7b", "deepseek-v3"}) {
    const TrainingJob job = job_of(model, 64, 8192, 64);
    SearchOptions options = closed_form(job);
    options.axes = wide_axes();
    options.axes.orders = {"tp-cp-ep-dp-pp"};
    const SearchResult result = searched(job, options);
    std::int64_t left_out = 0;
    for (const Exclusion& exclusion : result.exclusions) {
      EXPECT_GT(exclusion.layouts, 0) << exclusion.rule;
      left_out += exclusion.layouts;
    }
    EXPECT_EQ(left_out + static_cast<std::int64_t>(result.layouts.size()), result.examined);
    EXPECT_LE(static_cast<std::int64_t>(result.layouts.size()), result.legal);
    // 8 experts: ep 1, 2, 4, 8; 256: nine powers of two.
    const std::int64_t ep = job.model.experts == 0 ? 1 : job.model.experts == 8 ? 4 : 9;
    EXPECT_EQ(result.examined, 120 * ep * 3 * 3 * 4 * 4 * 3) << model;
    std::set<std::string> seen;
    for (const RankedLayout& ranked : result.layouts) {
      const std::string text = to_string(ranked.estimate.layout) + ", " +
                               std::to_string(ranked.estimate.recompute_layers) + " recompute";
      EXPECT_TRUE(seen.insert(text).second) << text << " stands twice";
    }
  }
}

TEST(Search, ChunksOnlyWithTheInterleavedSchedule) {
  const TrainingJob job = job_of("llama3-8b", 64, 8192, 512);
  SearchOptions options = closed_form(job);
  options.axes.vpp = {1, 2, 4};
  options.axes.schedules = {"1f1b", "interleaved"};
  const SearchResult result = searched(job, options);
  std::set<std::string> mixes;
  for (const RankedLayout& ranked : result.layouts) {
    const Layout& layout = ranked.estimate.layout;
    EXPECT_EQ(layout.vpp > 1, layout.schedule == "interleaved") << to_string(layout);
    EXPECT_EQ(job.model.layers % (layout.pp * layout.vpp), 0);
    mixes.insert(layout.schedule + std::to_string(layout.vpp));
  }
  EXPECT_EQ(mixes, (std::set<std::string>{"1f1b1", "interleaved2", "interleaved4"}));
}

TEST(Search, ExpertsTakeTheRanksOfTensorsContextAndData) {
  const TrainingJob job = job_of("qwen3-30b-a3b", 64, 8192, 256);
  const SearchResult result = searched(job, closed_form(job));
  std::set<std::int64_t> degrees;
  bool over_tensors = false;
  for (const RankedLayout& ranked : result.layouts) {
    const Layout& layout = ranked.estimate.layout;
    EXPECT_EQ(layout.tp * layout.cp * layout.dp % layout.ep, 0);
    over_tensors = over_tensors || layout.cp * layout.dp % layout.ep != 0;
    EXPECT_EQ(layout.etp, 1);
    EXPECT_LE(layout.tp, 4) << "four key/value heads";
    degrees.insert(layout.ep);
  }
  EXPECT_EQ(degrees, (std::set<std::int64_t>{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_TRUE(over_tensors) << "no expert group reaches over the ranks of tp";
}

TEST(Search, LatentAttentionHasNoKeyValueHeadsToShare) {
  const TrainingJob job = job_of("deepseek-v3", 512, 4096, 512);
  TrainingJob grouped = job;
  grouped.model.kv_lora_rank = 0;
  grouped.model.kv_heads = 2;
  SearchOptions options = closed_form(job);
  options.shown = {{.tp = 4}};
  EXPECT_TRUE(searched(job, options).shown[0].layout);
  EXPECT_EQ(searched(grouped, options).shown[0].reason, "tp 4 does not divide 2 key/value heads");
}

TEST(Search, SaysWhyALayoutAskedForIsNotInTheList) {
  const TrainingJob job = job_of("llama3-70b", 64, 8192, 24);
  SearchOptions options = closed_form(job);
  options.shown = {{.tp = 3},
                   {.tp = 8, .cp = 64},
                   {.tp = 8, .cp = 4},
                   {.tp = 8, .cp = 32, .pp = 2},
                   {.tp = 1},
                   {.tp = 4}};
  const SearchResult result = searched(job, options);
  EXPECT_EQ(result.shown[0].reason, "tp 3 is not searched: powers of two from 1 to 8 are");
  EXPECT_EQ(result.shown[1].reason, "cp 64 is not searched: powers of two from 1 to 32 are");
  EXPECT_EQ(result.shown[2].reason, "8,192 tokens over cp 4 are 2,048 a rank, fewer than 4,096");
  EXPECT_EQ(result.shown[3].reason, "tp 8 x cp 32 x pp 2 = 512 does not divide 64 GPUs");
  EXPECT_EQ(result.shown[4].reason, "dp 64 does not divide 24 sequences");
  EXPECT_EQ(result.shown[5].reason, "dp 16 does not divide 24 sequences");
}

TEST(Search, AShortListNamesWhatBindsIt) {
  const TrainingJob job = job_of("llama3-70b", 24, 8192, 7);
  const SearchResult result = searched(job, closed_form(job));
  EXPECT_TRUE(result.layouts.empty());
  EXPECT_NE(result.reason.find("none of 120 combinations keeps every rule"), std::string::npos)
      << result.reason;
  // dp is a multiple of 3: of 20 products that divide 24, cp 1 or 2 and tp, pp up to 8 are 16, each
  // with 16 tokens or more; 7 sequences divide by none.
  EXPECT_NE(result.reason.find("dp does not divide 7 sequences: 16 of 120 combinations break this "
                               "rule alone, but not with --gbs 24"),
            std::string::npos)
      << result.reason;
  EXPECT_FALSE(result.nearest);
  EXPECT_TRUE(result.smallest);
}

TEST(Search, ThreadsChangeNothing) {
  const TrainingJob job = job_of("llama3-8b", 64, 8192, 512);
  SearchOptions options = closed_form(job);
  options.axes = wide_axes();
  options.simulate = 4;
  const SearchResult alone = searched(job, options);
  ASSERT_GT(alone.examined, 30'000);  // many shares of work
  for (const int threads : {2, 8}) {
    options.threads = threads;
    const SearchResult together = searched(job, options);
    ASSERT_EQ(together.layouts.size(), alone.layouts.size());
    for (std::size_t at = 0; at < alone.layouts.size(); ++at) {
      ASSERT_EQ(printed(together.layouts[at]), printed(alone.layouts[at]));
      ASSERT_EQ(together.layouts[at].estimate.mfu, alone.layouts[at].estimate.mfu);
    }
    ASSERT_EQ(together.exclusions.size(), alone.exclusions.size());
    for (std::size_t at = 0; at < alone.exclusions.size(); ++at) {
      EXPECT_EQ(together.exclusions[at].rule, alone.exclusions[at].rule);
      EXPECT_EQ(together.exclusions[at].layouts, alone.exclusions[at].layouts);
    }
  }
}

TEST(Search, SimulatingInThreadsChangesNothing) {
  const TrainingJob job = job_of("gpt3-175b", 1024, 2048, 1536);
  SearchOptions options = closed_form(job);
  options.simulate = 8;
  const SearchResult alone = searched(job, options);
  options.threads = 4;
  const SearchResult together = searched(job, options);
  ASSERT_EQ(together.layouts.size(), alone.layouts.size());
  for (std::size_t at = 0; at < alone.layouts.size(); ++at) {
    const RankedLayout& one = alone.layouts[at];
    const RankedLayout& other = together.layouts[at];
    EXPECT_EQ(printed(other), printed(one));
    ASSERT_EQ(one.simulated.has_value(), one.closed_form_rank <= 8);
    if (one.simulated) {
      EXPECT_EQ(other.simulated->step_time_s, one.simulated->step_time_s);
      EXPECT_EQ(other.simulated->mfu, one.simulated->mfu);
    }
  }
}

// gpipe and 1f1b of one layout take the same time, where both fit.
TEST(Search, EqualsKeepTheOrderOfTheLoops) {
  const TrainingJob job = job_of("llama3-8b", 64, 8192, 512);
  SearchOptions options = closed_form(job);
  options.axes = wide_axes();
  const Combinations combinations(job.model, options.axes);
  std::map<std::string, std::int64_t> numbers;
  const auto key = [](const Layout& layout) {
    return to_string(layout) + " " + std::to_string(layout.recompute_layers);
  };
  for (std::int64_t number = 0; number < combinations.count(); ++number) {
    numbers.emplace(key(combinations.at(number, job.gpus)), number);
  }
  const SearchResult result = searched(job, options);
  std::int64_t equals = 0;
  for (std::size_t at = 1; at < result.layouts.size(); ++at) {
    const Estimate& before = result.layouts[at - 1].estimate;
    const Estimate& here = result.layouts[at].estimate;
    ASSERT_GE(before.mfu, here.mfu);
    if (before.mfu == here.mfu) {
      ++equals;
      ASSERT_LT(numbers.at(key(before.layout)), numbers.at(key(here.layout))) << key(here.layout);
    }
  }
  EXPECT_GT(equals, 100);
}

TEST(Search, SimulatedLayoutsStandFirstAndAreTheScenariosOwn) {
  const TrainingJob job = job_of("gpt3-175b", 1024, 2048, 1536);
  SearchOptions options = closed_form(job);
  options.simulate = 6;
  int told = 0;
  options.progress = [&told](int done, int total) {
    EXPECT_EQ(done, told++);
    EXPECT_EQ(total, 6);
  };
  const SearchResult result = searched(job, options);
  EXPECT_EQ(told, 7);
  bool ended = false;
  double before = 1;
  std::int64_t form_before = 0;
  std::int64_t simulated = 0;
  for (const RankedLayout& ranked : result.layouts) {
    if (ranked.simulated && ranked.simulated->fits != Fit::kNo) {
      EXPECT_FALSE(ended) << "behind one that was not simulated";
      EXPECT_LE(ranked.simulated->mfu, before);
      before = ranked.simulated->mfu;
      ++simulated;
    } else {
      ended = true;
      EXPECT_GT(ranked.closed_form_rank, form_before);
      form_before = ranked.closed_form_rank;
    }
  }
  EXPECT_GT(simulated, 1);
  const RankedLayout& best = result.layouts.front();
  EXPECT_NE(best.closed_form_rank, 1) << "the order is the same: another job would show more";
  Layout layout = best.estimate.layout;
  layout.recompute_layers = best.estimate.recompute_layers;
  const auto scenario = parse_scenario(scenario_text(job, layout, options.assumptions, "best"));
  ASSERT_TRUE(scenario);
  const auto simulation = simulate(*scenario);
  ASSERT_TRUE(simulation);
  EXPECT_EQ(simulation->report.mfu, best.simulated->mfu);
  EXPECT_EQ(simulation->report.memory_peak, best.simulated->memory_bytes);
}

TEST(Search, WhatCannotBeSimulatedSaysWhyAndKeepsItsPlace) {
  const TrainingJob job = job_of(windowed_model_file(), 16, 32768, 32);
  SearchOptions options = closed_form(job);
  options.shown = {{.tp = 2, .cp = 2, .pp = 2}};
  options.simulate = 2;
  const SearchResult result = searched(job, options);
  std::vector<std::int64_t> tried;
  for (const RankedLayout& ranked : result.layouts) {
    EXPECT_FALSE(ranked.simulated);
    EXPECT_EQ(ranked.rank, ranked.closed_form_rank);
    if (!ranked.not_simulated.empty()) {
      EXPECT_EQ(ranked.not_simulated, kWindowCut);
      tried.push_back(ranked.rank);
    }
  }
  ASSERT_TRUE(result.shown[0].layout);
  ASSERT_GT(result.shown[0].layout->rank, 2) << "asked for beside the best two";
  EXPECT_EQ(tried, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(result.shown[0].layout->not_simulated, kWindowCut) << "its own entry says why";
}

TEST(Search, RefusesEveryWrongAxisAtOnce) {
  const TrainingJob job = job_of("llama3-8b", 64, 8192, 512);
  SearchOptions options = closed_form(job);
  options.axes.micro_batch_sizes = {0, 1};
  options.axes.vpp = {};
  options.axes.recompute_layers = {-3};
  options.axes.shardings = {Sharding::kZero1, Sharding::kZero1};
  options.axes.schedules = {"1f1b", "zb-v", "gpip"};
  options.axes.orders = {"tp-cp-dp", "tp-tp-cp-dp-pp", "tp-cp-dp-px"};
  const Expected<SearchResult> result = search(job, options);
  ASSERT_FALSE(result);
  std::set<std::string> found;
  for (const Diagnostic& fault : result.error().list) {
    found.insert(fault.pointer + ": " + fault.message + "; " + fault.hint);
  }
  for (const char* expected :
       {"/axes/micro_batch_sizes: 0 is out of range; 1 to 65536",
        "/axes/vpp: no value to try; leave the axis out",
        "/axes/recompute: -3 is out of range; 0 to 65536",
        "/axes/sharding: value 2 repeats; ",
        "/axes/schedules: unknown schedule \"gpip\"; did you mean \"gpipe\"?",
        "/axes/orders: pp is missing from order \"tp-cp-dp\"; name each dimension once"}) {
    EXPECT_TRUE(found.contains(expected)) << expected;
  }
  EXPECT_EQ(found.size(), 6U + 3U) << "tp twice, px unknown, pp missing again";
}

TEST(Search, RefusesMoreCombinationsThanItCanHold) {
  const TrainingJob job = job_of("llama3-8b", 64, 8192, 512);
  SearchOptions options = closed_form(job);
  options.axes.recompute_layers.clear();
  options.axes.micro_batch_sizes.clear();
  for (std::int64_t value = 1; value <= 200; ++value) {
    options.axes.recompute_layers.push_back(value);
    options.axes.micro_batch_sizes.push_back(value);
  }
  const Expected<SearchResult> result = search(job, options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().list.front().pointer, "/axes");
}

}  // namespace
}  // namespace foretrain::test
