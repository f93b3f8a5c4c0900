// Searches over schedules: what the closed form takes of each, and that each can win.
#include "tests/search/search_jobs.h"

#include "foretrain/schedule.h"
#include "sim/estimate/schedule_shape.h"

#include <algorithm>
#include <set>
#include <string>

namespace foretrain::test {
namespace {

Layout layout_under(const ScheduleEntry& entry, std::int64_t pp, std::int64_t vpp) {
  Layout layout;
  layout.schedule = std::string(entry.name);
  layout.pp = pp;
  layout.vpp = entry.chunks == 0 ? vpp : entry.chunks;
  layout.slices = entry.uses_slices ? 3 : 1;
  return layout;
}

bool legal(const Layout& layout, std::int64_t micro_batches) {
  ScheduleSize size;
  size.pp = static_cast<std::int32_t>(layout.pp);
  size.vpp = static_cast<std::int32_t>(layout.vpp);
  size.micro_batches = static_cast<std::int32_t>(micro_batches);
  size.slices = static_cast<std::int32_t>(layout.slices);
  return make_schedule(layout.schedule, size).has_value();
}

// Of more micro-batches than fill the pipeline, as many are timed as show the same shape.
TEST(ScheduleShapes, AFullPipelineRepeatsItself) {
  const ScheduleShapes shapes;
  int compared = 0;
  for (const ScheduleEntry& entry : schedule_table()) {
    for (const std::int64_t pp : {1, 2, 3, 4, 6}) {
      for (const std::int64_t vpp : {2, 3}) {
        const Layout layout = layout_under(entry, pp, vpp);
        for (std::int64_t m = 1; m <= 11 * pp; ++m) {
          if (legal(layout, m)) {
            EXPECT_EQ(shapes.of(layout, m), timed_shape(layout, m))
                << entry.name << " p " << pp << " m " << m << " v " << layout.vpp;
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 3000);
}

// Makespan bubbles at equal passes, in passes of three units each: published formulas.
TEST(ScheduleShapes, AreThePublishedFormulas) {
  constexpr std::int64_t kPp = 4;
  constexpr std::int64_t kMicroBatches = 16;
  struct Known {
    const char* name;
    std::int64_t vpp;
    double bubble, in_flight;
  };
  for (const Known& known : {Known{"gpipe", 1, 3, 16},
                             Known{"1f1b", 1, 3, 4},
                             Known{"eager-1f1b", 1, 3, 7},
                             Known{"interleaved", 2, 1.5, 11 / 2.0},
                             Known{"looped-bfs", 2, 1.5, 16},
                             Known{"zb-h1", 1, 1, 4},
                             Known{"zb-h2", 1, 1, 7},
                             Known{"zb-interleaved", 2, 0.5, 4},
                             Known{"zb-v", 2, 0.5, 4},
                             Known{"dualpipe", 1, 2 / 3.0, 5},
                             Known{"dualpipev", 2, 1, 9 / 2.0}}) {
    Layout layout;
    layout.schedule = known.name;
    layout.pp = kPp;
    layout.vpp = known.vpp;
    const ScheduleShape shape = ScheduleShapes().of(layout, kMicroBatches);
    EXPECT_NEAR(shape.bubble, known.bubble, 1e-12) << known.name;
    EXPECT_NEAR(shape.in_flight, known.in_flight, 1e-12) << known.name;
  }
}

SearchOptions over_schedules(const TrainingJob& job) {
  SearchOptions options = closed_form(job);
  options.axes.schedules.assign(schedule_names().begin(), schedule_names().end());
  options.axes.vpp = {1, 2, 5};
  return options;
}

// Every schedule stands in the list, those of two chunks with them, whatever the axis says first.
TEST(SearchSchedules, EveryOneIsALegalValue) {
  const TrainingJob job = job_of("llama3-70b", 64, 8192, 256);
  for (const std::vector<std::int64_t>& vpp :
       {std::vector<std::int64_t>{1, 2, 5}, {2, 1, 5}, {5, 2}, {5}, {1, 5}}) {
    SearchOptions options = over_schedules(job);
    options.axes.vpp = vpp;
    const SearchResult result = searched(job, options);
    std::set<std::string> found;
    std::set<std::string> layouts;
    for (const RankedLayout& ranked : result.layouts) {
      const Layout& layout = ranked.estimate.layout;
      const ScheduleEntry& entry = *find_schedule(layout.schedule);
      found.insert(layout.schedule);
      EXPECT_TRUE(layouts.insert(to_string(layout)).second) << to_string(layout);
      EXPECT_TRUE(entry.chunks == 0 || layout.vpp == entry.chunks) << to_string(layout);
      EXPECT_EQ(layout.slices, entry.uses_slices ? kSearchSlices : 1);
    }
    for (const std::string_view name : {"zb-v", "v-half", "v-min", "dualpipev"}) {
      EXPECT_TRUE(found.contains(std::string(name))) << name;
    }
    if (vpp.front() == 1) {
      EXPECT_EQ(found.size(), schedule_names().size());
    }
    std::int64_t excluded = 0;
    for (const Exclusion& exclusion : result.exclusions) {
      excluded += exclusion.layouts;
    }
    EXPECT_EQ(excluded + static_cast<std::int64_t>(result.layouts.size()), result.examined);
  }
}

// With a schedule on its own, the search's legal layouts are the files that can be read.
TEST(SearchSchedules, AListedLayoutIsAScenario) {
  const TrainingJob job = job_of("llama3-8b", 16, 8192, 64);
  SearchOptions options = over_schedules(job);
  options.axes.vpp = {1, 2};
  const SearchResult result = searched(job, options);
  EXPECT_GT(result.layouts.size(), 50U);
  for (const RankedLayout& ranked : result.layouts) {
    EXPECT_EQ(why_not_simulated(job, ranked.estimate, options.assumptions), "")
        << to_string(ranked.estimate.layout);
  }
}

// Two copies of the model: weights and gradients twice, optimizer states shared out among them.
TEST(SearchSchedules, TwoCopiesTakeTwiceTheWeights) {
  const TrainingJob job = job_of("llama3-8b", 16, 8192, 64);
  SearchOptions options = closed_form(job);
  const Estimator estimator(
      job.model, job.sequence_length, job.global_batch_size, options.assumptions);
  Layout layout{.tp = 2, .pp = 4, .dp = 2};
  const EstimateMemory one = estimator.estimate(layout).memory;
  layout.schedule = "dualpipe";
  const EstimateMemory two = estimator.estimate(layout).memory;
  EXPECT_DOUBLE_EQ(two.weights, 2 * one.weights);
  EXPECT_DOUBLE_EQ(two.gradients, 2 * one.gradients);
  EXPECT_DOUBLE_EQ(two.optimizer, one.optimizer);
}

// The bubble is what a long pipeline of few micro-batches loses most by: less of it ranks first.
TEST(SearchSchedules, LessBubbleRanksFirst) {
  const TrainingJob job = job_of("llama3-8b", 8, 8192, 16);
  const Estimator estimator(
      job.model, job.sequence_length, job.global_batch_size, closed_form(job).assumptions);
  const auto mfu = [&](const char* schedule, std::int64_t vpp) {
    Layout layout{.pp = 8, .dp = 1, .vpp = vpp, .recompute_layers = 0};
    layout.schedule = schedule;
    return estimator.estimate(layout).mfu;
  };
  EXPECT_GT(mfu("zb-h1", 1), mfu("1f1b", 1));
  EXPECT_GT(mfu("zb-v", 2), mfu("zb-h1", 1));
  EXPECT_GT(mfu("dualpipe", 1), mfu("1f1b", 1));
}

}  // namespace
}  // namespace foretrain::test
