// Which schedule is best, held to simulations of every way there is.
#include "foretrain/compare.h"

#include "sim/search/stage_lists.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain::test {
namespace {

using Lists = std::vector<std::vector<std::int64_t>>;

TEST(StageLists, AreEvenAndThenLighterAtTheEnds) {
  EXPECT_EQ(stage_lists(8, 4), (Lists{{2, 2, 2, 2}, {1, 3, 2, 2}, {2, 2, 3, 1}, {1, 3, 3, 1}}));
  EXPECT_EQ(stage_lists(30, 4), (Lists{{7, 8, 8, 7}, {6, 9, 8, 7}, {7, 8, 9, 6}, {6, 9, 9, 6}}));
  EXPECT_EQ(stage_lists(9, 4).front(), (std::vector<std::int64_t>{2, 2, 3, 2}));
  EXPECT_EQ(stage_lists(2, 4), (Lists{{0, 1, 1, 0}})) << "embedding and head alone";
  EXPECT_EQ(stage_lists(3, 2), (Lists{{1, 2}})) << "no stage lies between the two ends";
  EXPECT_EQ(stage_lists(5, 1), (Lists{{5}}));
}

TEST(StageLists, LoseNoLayer) {
  for (std::int64_t stages = 1; stages <= 9; ++stages) {
    for (std::int64_t layers = 0; layers <= 40; ++layers) {
      const Lists lists = stage_lists(layers, stages);
      EXPECT_EQ(std::set(lists.begin(), lists.end()).size(), lists.size());
      for (const auto& list : lists) {
        EXPECT_EQ(static_cast<std::int64_t>(list.size()), stages);
        EXPECT_EQ(std::accumulate(list.begin(), list.end(), std::int64_t{0}), layers);
        EXPECT_GE(*std::min_element(list.begin(), list.end()), 0);
      }
      const auto [least, most] = std::minmax_element(lists.front().begin(), lists.front().end());
      EXPECT_LE(*most - *least, 1);
    }
  }
}

TEST(ScheduleChoice, IsANameWithChunksAndAGroup) {
  const ScheduleChoice plain = parse_schedule_choice("zb-v").value();
  EXPECT_EQ(plain.name, "zb-v");
  EXPECT_FALSE(plain.vpp || plain.group || plain.best);
  const ScheduleChoice full = parse_schedule_choice("interleaved:8:32").value();
  EXPECT_EQ(full.name, "interleaved");
  EXPECT_EQ(full.vpp, 8);
  EXPECT_EQ(full.group, 32);
  EXPECT_TRUE(parse_schedule_choice("interleaved:best").value().best);
  EXPECT_EQ(parse_schedule_choice("/a/b.csv").value().csv, "/a/b.csv");
  for (const char* bad : {"", ":", "a:", "a:0", "a:-1", "a:1:", "a:best:1", "a:1:1:1", "a:1x"}) {
    EXPECT_FALSE(parse_schedule_choice(bad)) << bad;
  }
}

/// What a scenario takes, every rule of reading and simulating kept.
struct Outcome {
  Duration step{};
  std::int64_t peak = 0;
  bool fits = false;
};

std::optional<Outcome> simulated(const std::string& scenario, const Settings& settings) {
  const Expected<Scenario> read = read_scenario(scenario, settings);
  if (!read) {
    return std::nullopt;
  }
  const Expected<Simulation> simulation = simulate(*read);
  if (!simulation || simulation->report.deadlock) {
    return std::nullopt;
  }
  const StepReport& report = simulation->report;
  return Outcome{report.step_time, report.memory_peak, report.fits != Fit::kNo};
}

std::string text_of(const std::vector<std::int64_t>& list) {
  std::string text;
  for (const std::int64_t layers : list) {
    text += (text.empty() ? "[" : ",") + std::to_string(layers);
  }
  return text + "]";
}

/// A pipeline of two on one GPU each, with a head worth several layers, in memory that some of the
/// schedules pass.
struct Job {
  std::string scenario = "llama3-8b-8";
  Settings settings = {"parallelism.tp=4",
                       "parallelism.pp=2",
                       "parallelism.dp=1",
                       "training.global_batch_size=8",
                       "training.sequence_length=32768"};
  std::int64_t layers = 32, pp = 2;
};

/// Every split in one list, the extra layers in the middle; every way written out once more.
std::vector<Settings> every_way(const Job& job) {
  std::vector<Settings> ways;
  for (const std::string_view name : schedule_names()) {
    for (std::int64_t vpp = 1; vpp <= job.layers / job.pp + 1; ++vpp) {
      const ScheduleEntry& entry = *find_schedule(name);
      const std::int64_t stages = job.pp * vpp;
      const bool divides = job.layers % stages == 0 || (job.layers + 2) % stages == 0;
      if (entry.chunks == 0 ? vpp == 1 || !divides : vpp != entry.chunks) {
        continue;
      }
      const std::vector<int> slices = entry.uses_slices ? std::vector{2, 4, 8} : std::vector{1};
      for (const int cut : slices) {
        for (int lighter = 0; lighter < 4; ++lighter) {
          std::vector<std::int64_t> split(static_cast<std::size_t>(stages), job.layers / stages);
          const std::int64_t over = job.layers % stages;  // 0, or all but the two ends
          for (std::int64_t stage = 1; over > 0 && stage < stages - 1; ++stage) {
            ++split[static_cast<std::size_t>(stage)];
          }
          if (stages > 2 && (lighter & 1) != 0) {
            --split.front();
            ++split[1];
          }
          if (stages > 2 && (lighter & 2) != 0) {
            --split.back();
            ++split[split.size() - 2];
          }
          Settings way = job.settings;
          way.push_back("schedule={\"name\":\"" + std::string(name) +
                        "\",\"slices\":" + std::to_string(cut) + "}");
          way.push_back("parallelism.vpp=" + std::to_string(vpp));
          way.push_back("parallelism.layers_per_stage=" + text_of(split));
          ways.push_back(std::move(way));
        }
      }
    }
  }
  return ways;
}

std::vector<ComparedRow> best_rows(const Job& job) {
  std::vector<Contestant> contestants;
  for (const ScheduleChoice& choice : every_schedule()) {
    contestants.push_back(under_schedule(job.scenario, job.settings, choice));
  }
  std::vector<ComparedRow> rows = compare(contestants);
  rank_rows(rows);
  return rows;
}

// The best schedule, vpp and split within memory is that of every way simulated.
TEST(Best, IsTheBestOfEveryWay) {
  const Job job;
  const std::vector<ComparedRow> rows = best_rows(job);
  std::optional<Outcome> best;
  std::int64_t fit = 0;
  std::int64_t legal = 0;
  bool faster_but_too_large = false;
  std::vector<Outcome> outcomes;
  for (const Settings& way : every_way(job)) {
    if (const std::optional<Outcome> outcome = simulated(job.scenario, way)) {
      outcomes.push_back(*outcome);
      ++legal;
      fit += outcome->fits ? 1 : 0;
      if (outcome->fits && (!best || outcome->step < best->step)) {
        best = outcome;
      }
    }
  }
  ASSERT_TRUE(best);
  for (const Outcome& outcome : outcomes) {
    faster_but_too_large = faster_but_too_large || (!outcome.fits && outcome.step < best->step);
  }
  EXPECT_LT(fit, legal) << "memory limits nothing here";
  EXPECT_TRUE(faster_but_too_large) << "memory does not bind the choice";
  const ComparedRow* const winner = fastest(rows);
  ASSERT_NE(winner, nullptr);
  EXPECT_EQ(winner, &rows.front());
  EXPECT_EQ(winner->simulation->report.step_time, best->step);
  Settings again = job.settings;
  again.insert(again.end(), winner->settings.begin(), winner->settings.end());
  const std::optional<Outcome> same = simulated(job.scenario, again);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->step, best->step);
}

TEST(Best, RankingPutsWhatFitsFirst) {
  const std::vector<ComparedRow> rows = best_rows(Job{});
  ASSERT_EQ(rows.size(), schedule_names().size());
  for (std::size_t at = 1; at < rows.size(); ++at) {
    EXPECT_GE(rows[at - 1].fits(), rows[at].fits());
    EXPECT_GE(rows[at - 1].simulation.has_value(), rows[at].simulation.has_value());
    if (rows[at].simulation && rows[at - 1].fits() == rows[at].fits()) {
      EXPECT_LE(rows[at - 1].simulation->report.step_time, rows[at].simulation->report.step_time);
    }
  }
}

}  // namespace
}  // namespace foretrain::test
