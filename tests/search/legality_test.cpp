// A layout is legal in the search exactly where the reader of scenarios accepts it.
#include "tests/search/search_jobs.h"

#include "sim/search/combinations.h"
#include "sim/search/layout_rules.h"
#include "sim/search/twins.h"

#include <string>
#include <vector>

namespace foretrain::test {
namespace {

/// The search's own rules out of the way: nodes of any size, parts of any length, any pp.
SearchOptions permissive(const TrainingJob& job) {
  SearchOptions options = closed_form(job);
  options.assumptions.gpus_per_node = 1e6;
  options.assumptions.minimum_cp_tokens = 1;
  options.axes.uneven_stages = true;
  options.axes.recompute_layers = {0, 5};
  return options;
}

struct Verdicts {
  std::int64_t legal = 0, illegal = 0;
};

/// The layers that the search counts on the fullest rank and the last are the scenario's.
void expect_same_stages(const Layout& searched, const Layout& read, std::int64_t layers) {
  const std::int64_t even = layers / searched.pp;
  EXPECT_EQ(searched.most_layers > 0 ? searched.most_layers : even, read.most_layers);
  EXPECT_EQ(searched.last_layers > 0 ? searched.last_layers : even, read.last_layers);
}

/// What is only another name of a layout is no scenario's fault.
void compare(const TrainingJob& job, const SearchOptions& options, Verdicts& verdicts) {
  const Combinations combinations(job.model, options.axes);
  const SearchSubject subject{job, options.axes, options.assumptions};
  for (std::int64_t number = 0; number < combinations.count(); ++number) {
    const Layout layout = combinations.at(number, job.gpus);
    if (layout.dp < 1) {
      continue;
    }
    if (is_twin(subject, layout)) {
      continue;
    }
    const std::optional<std::size_t> broken = first_broken(subject, layout);
    const std::string text = scenario_text(job, layout, options.assumptions, "test");
    const Expected<Scenario> scenario = parse_scenario(text);
    ++(broken ? verdicts.illegal : verdicts.legal);
    if (!broken) {
      ASSERT_TRUE(scenario) << scenario.error().list.front().message << "\n" << text;
      expect_same_stages(layout, layout_of(*scenario, ClosedForm::kChapter), job.model.layers);
    } else {
      EXPECT_FALSE(scenario) << layout_rules()[*broken].reason(subject, layout) << "\n" << text;
    }
  }
}

TEST(Legality, IsThatOfTheScenarioReader) {
  struct Case {
    const char* model;
    std::int64_t gpus, sequence, batch;
  };
  for (const Case& one : {Case{"llama3-8b", 12, 96, 6},
                          Case{"llama3.2-1b", 64, 1000, 20},
                          Case{"qwen2.5-7b", 28, 4096, 7},
                          Case{"llama3-405b", 256, 8192, 16},
                          Case{"gpt2", 12, 1024, 24}}) {
    SCOPED_TRACE(one.model);
    const TrainingJob job = job_of(one.model, one.gpus, one.sequence, one.batch);
    SearchOptions options = permissive(job);
    options.axes.micro_batch_sizes = {1, 2};
    Verdicts verdicts;
    compare(job, options, verdicts);
    EXPECT_GT(verdicts.legal, 0);
    EXPECT_GT(verdicts.illegal, 0);
  }
}

TEST(Legality, OfChunksToo) {
  const TrainingJob job = job_of("llama3-8b", 16, 4096, 12);
  SearchOptions options = permissive(job);
  options.axes.schedules = {"gpipe", "interleaved"};
  options.axes.vpp = {1, 2, 3};
  Verdicts verdicts;
  compare(job, options, verdicts);
  EXPECT_GT(verdicts.legal, 0);
  EXPECT_GT(verdicts.illegal, 0);
}

TEST(Legality, WithExpertsToo) {
  for (const char* const model : {"deepseek-v3", "qwen3-30b-a3b"}) {
    const TrainingJob job = job_of(model, 64, 4096, 64);
    SearchOptions options = permissive(job);
    options.axes.recompute_layers = {0};
    Verdicts verdicts;
    compare(job, options, verdicts);
    EXPECT_GT(verdicts.legal, 0);
    EXPECT_GT(verdicts.illegal, 0);
  }
}

}  // namespace
}  // namespace foretrain::test
