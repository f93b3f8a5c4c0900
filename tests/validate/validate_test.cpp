#include "foretrain/validate.h"

#include "tests/validate/published_table.h"

#include "foretrain/simulate.h"
#include "sim/validate/read_settings.h"
#include "sim/validate/row_scenario.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

/// Rule: every row of a table is simulated as its scenario is, or skipped for one of a few reasons;
/// threads change nothing.
namespace foretrain {
namespace {

/// Narayanan et al. 2021, Table 1, row 2, as a table of its own; then one row of each kind.
const std::string kTable =
    "id,split,source,model,layers,hidden,heads,ffn,vocab,seq,gpu,gpus,internode_bw_note,dtype,tp,"
    "pp,vpp,dp,sharding,sp,mbs,gbs,recompute,schedule,step_time_s\n"
    "good,fit,SC21,GPT-3.6B,30,3072,32,12288,51200,2048,A100-80GB,64,8x200Gb/s,fp16,2,1,1,32,zero0,"
    "0,16,512,full,none,3.697\n"
    "bare,fit,a blog,GPT-3.6B,30,3072,,,,2048,A100-80GB,64,,,2,1,,,,,,512,,,3.697\n"
    "dp,fit,SC21,GPT-3.6B,30,3072,32,12288,51200,2048,A100-80GB,64,,fp16,2,1,1,16,zero0,0,16,512,"
    "full,none,3.697\n"
    "tpu,coarse,x,GPT-3.6B,30,3072,32,12288,51200,2048,TPUv9,64,,fp16,2,1,1,,,,,512,full,,3.697\n"
    "gap,fit,x,GPT-3.6B,,3072,32,12288,51200,2048,A100-80GB,64,,fp16,2,1,1,,,,,512,full,,3.697\n"
    "free,fit,x,GPT-3.6B,30,3072,32,12288,51200,2048,A100-80GB,64,,fp16,2,1,1,,,,,512,full,,\n"
    "own,fit,x,GPT-3.6B,31,3072,32,12288,51200,2048,A100-80GB,64,,fp16,2,2,1,,,,,512,full,mine,"
    "3.697\n";

ValidationResult validated(const std::string& text, const ValidateOptions& options = {}) {
  const Expected<ValidationResult> result = validate_text(text, options);
  EXPECT_TRUE(result.has_value()) << result.error().list.front().message;
  return result.value_or(ValidationResult{});
}

ValidateOptions of_split(const std::string& split) {
  ValidateOptions options;
  options.split = split;
  return options;
}

ValidateOptions on_threads(int threads) {
  ValidateOptions options;
  options.threads = threads;
  return options;
}

TEST(Validate, ARowIsItsScenario) {
  const ValidatedRow row = validated(kTable).rows.front();
  const Expected<Scenario> scenario = parse_scenario(
      R"({"model": {"model_type": "gpt2", "n_embd": 3072, "n_layer": 30, "n_head": 32,
                    "vocab_size": 51200, "n_positions": 2048},
          "cluster": {"topology": "dgx-a100-hdr200", "gpus": 64},
          "training": {"sequence_length": 2048, "global_batch_size": 512, "micro_batch_size": 16,
                       "dtype": "fp16"},
          "parallelism": {"tp": 2, "sharding": "none", "sequence_parallel": false},
          "recompute": {"mode": "full"}, "overlap": {"dp_grad": false, "dp_param": false},
          "stack": "megatron-2021"})");
  const StepReport report = simulate(*scenario)->report;
  EXPECT_EQ(row.simulated_s, seconds(report.step_time));
  EXPECT_EQ(row.memory_peak, report.memory_peak);
  EXPECT_EQ(row.fits, report.fits);
  EXPECT_DOUBLE_EQ(*row.error(), seconds(report.step_time) / 3.697 - 1);
  EXPECT_EQ(row.source, "sc21");
  EXPECT_TRUE(row.assumed.empty());
}

TEST(Validate, EveryRowIsSimulatedOrSkippedWithItsReason) {
  const ValidationResult result = validated(kTable);
  std::vector<std::string> reasons;
  for (const ValidatedRow& row : result.rows) {
    EXPECT_NE(row.simulated_s.has_value(), row.skipped.has_value()) << row.id;
    reasons.emplace_back(row.skipped ? to_string(*row.skipped) : "");
  }
  EXPECT_EQ(reasons,
            (std::vector<std::string>{"",
                                      "",
                                      "illegal layout as published",
                                      "hardware not modelled",
                                      "configuration incomplete",
                                      "no measured step time",
                                      "schedule not simulated"}));
  EXPECT_EQ(result.rows[1].source, "a blog");
  EXPECT_FALSE(result.rows[1].assumed.empty());
  EXPECT_EQ(result.complete, 5);  // good, bare, dp, tpu, own
  ASSERT_EQ(result.worst.size(), 2U);
  double shares = 0;
  ASSERT_EQ(result.worst.front().terms.size(), 3U);
  for (const StepTerm& term : result.worst.front().terms) {
    shares += term.share;
  }
  EXPECT_GT(shares, 0.5);
  EXPECT_LE(shares, 1.0 + 1e-9);
}

TEST(Validate, SplitsAreChosenByName) {
  EXPECT_EQ(validated(kTable, of_split("coarse")).rows.size(), 1U);
  EXPECT_EQ(validated(kTable, of_split("fit")).rows.size(), 6U);
  const Expected<ValidationResult> none = validate_text(kTable, of_split("fitt"));
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().list.front().pointer, "/split");
  EXPECT_EQ(none.error().list.front().hint, "known: fit, coarse");
}

TEST(Validate, ThreadsChangeNothing) {
  const ValidationResult one = validated(kTable, on_threads(1));
  for (int threads = 2; threads <= 4; ++threads) {
    const ValidationResult many = validated(kTable, on_threads(threads));
    ASSERT_EQ(many.rows.size(), one.rows.size());
    for (std::size_t i = 0; i < one.rows.size(); ++i) {
      EXPECT_EQ(many.rows[i].id, one.rows[i].id);
      EXPECT_EQ(many.rows[i].simulated_s, one.rows[i].simulated_s);
      EXPECT_EQ(many.rows[i].assumed, one.rows[i].assumed);
    }
    EXPECT_EQ(many.overall.mape, one.overall.mape);
  }
}

// A light simulation tells the same times as a full one.
TEST(Validate, TimesOnlyChangesNoTime) {
  const Scenario scenario = *read_scenario("tutorial-2x4");
  SimulateOptions light;
  light.times_only = true;
  int runs = 0;
  light.progress = [&runs](int, int total) {
    ++runs;
    EXPECT_EQ(total, 1);
  };
  const StepReport fast = simulate(scenario, light)->report;
  const StepReport full = simulate(scenario)->report;
  EXPECT_EQ(fast.step_time, full.step_time);
  EXPECT_EQ(fast.isolated_step, full.isolated_step);
  EXPECT_EQ(fast.memory_peak, full.memory_peak);
  EXPECT_EQ(fast.breakdown.compute, full.breakdown.compute);
  EXPECT_TRUE(fast.critical_path.empty());
  EXPECT_EQ(runs, 1);
  SimulateOptions still;
  still.memory_only = true;
  const StepReport memory = simulate(scenario, still)->report;
  EXPECT_EQ(memory.memory_peak, full.memory_peak);
  EXPECT_EQ(memory.memory_peak_stage, full.memory_peak_stage);
  EXPECT_EQ(memory.memory_capacity, full.memory_capacity);
  EXPECT_EQ(memory.fits, full.fits);
}

/// Whether a row can be simulated, without doing it; else why not.
std::optional<SkipReason> why_skipped(const PublishedRow& row) {
  const RowScenario mapped = scenario_of_row(row, source_of(row), hardware_of(row));
  if (mapped.skipped) {
    return mapped.skipped;
  }
  std::vector<std::string> settings = mapped.settings;
  if (!mapped.tries.empty()) {
    const std::vector<std::string>& first = mapped.tries.front().settings;
    settings.insert(settings.end(), first.begin(), first.end());
  }
  const ReadRow read = read_settings(settings);
  return read.scenario ? std::nullopt : std::optional(read.reason);
}

// Of the rows that publish layout, batch and step, at least so many are simulated; none is illegal
// by our reading but one (bridge-25.09-208 has ep 64 on 32 ranks of a stage).
TEST(Validate, TheShippedTableIsCovered) {
  constexpr double kCovered = 0.9;
  std::int64_t complete = 0, simulated = 0, illegal = 0;
  for (const PublishedRow& row : test::shipped_rows("published")) {
    if (row.step_time_s && missing_fields(row).empty()) {
      const std::optional<SkipReason> reason = why_skipped(row);
      ++complete;
      simulated += reason ? 0 : 1;
      illegal += reason == SkipReason::kIllegal ? 1 : 0;
    }
  }
  EXPECT_EQ(complete, 1859);
  EXPECT_LE(illegal, 1);
  EXPECT_GE(static_cast<double>(simulated), kCovered * static_cast<double>(complete));
  for (const PublishedRow& row : test::shipped_rows("fits")) {
    EXPECT_FALSE(why_skipped(row).has_value()) << row.id;
  }
}

TEST(Validate, ReasonsAreFewAndDiffer) {
  std::set<std::string_view> phrases;
  for (int reason = 0; reason < kSkipReasons; ++reason) {
    phrases.insert(to_string(static_cast<SkipReason>(reason)));
  }
  EXPECT_EQ(phrases.size(), static_cast<std::size_t>(kSkipReasons));
  EXPECT_LT(kSkipReasons, 10);
}

TEST(Validate, TablesByNameOrPath) {
  const Expected<ValidationResult> unknown = validate_table("publishd");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().list.front().hint.find("published"), std::string::npos);
  EXPECT_EQ(validate_table("no/such.csv").error().kind, FaultKind::kFile);
}

}  // namespace
}  // namespace foretrain
