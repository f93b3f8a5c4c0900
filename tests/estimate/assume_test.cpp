// What --assume takes and refuses.
#include "tests/estimate/jobs.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace foretrain::test {
namespace {

/// "pointer | message | hint" of the refusal, or "" when the assumption is taken.
std::string refusal(const std::string& key_value, Assumptions assumptions = {}) {
  Layout layout;
  const Expected<bool> set = assume(key_value, assumptions, layout);
  if (set) {
    return "";
  }
  EXPECT_EQ(set.error().list.size(), 1U) << key_value;
  const Diagnostic& fault = set.error().list.front();
  return fault.pointer + " | " + fault.message + " | " + fault.hint;
}

Assumptions workshop() {
  Assumptions assumptions;
  assumptions.form = ClosedForm::kWorkshop;
  return assumptions;
}

Assumptions dense() {
  Assumptions assumptions;
  assumptions.has_experts = false;
  return assumptions;
}

TEST(Assume, EveryKeyTakesItsLeastAndItsMostAndNothingBeyond) {
  for (const AssumptionRow& row : assumption_rows()) {
    Assumptions assumptions;
    assumptions.form = row.chapter ? ClosedForm::kChapter : ClosedForm::kWorkshop;
    Layout layout;
    for (const double value : {row.least, row.most}) {
      char text[64];
      std::snprintf(text, sizeof text, "%.17g", value);
      ASSERT_TRUE(assume(std::string(row.key) + "=" + text, assumptions, layout)) << row.key;
      EXPECT_EQ(assumptions.*row.member, value) << row.key;
    }
    for (const double value : {row.least - 0.5, 2 * row.most}) {
      char text[64];
      std::snprintf(text, sizeof text, "%.17g", value);
      EXPECT_NE(refusal(std::string(row.key) + "=" + text, assumptions), "") << row.key << text;
    }
  }
}

// 400 Gb/s are 50 GB/s; a GiB is 1024^3.
TEST(Assume, UnitsAreThoseOfTheTopologyFiles) {
  Assumptions assumptions;
  Layout layout;
  ASSERT_TRUE(assume("network_bandwidth=400 Gb/s", assumptions, layout));
  EXPECT_EQ(assumptions.network_bandwidth, 50e9);
  ASSERT_TRUE(assume("memory=64 GiB", assumptions, layout));
  EXPECT_EQ(assumptions.memory, 64 * 1073741824.0);
  ASSERT_TRUE(assume("peak=1979 TFLOP/s", assumptions, layout));
  EXPECT_EQ(assumptions.peak, 1979e12);
  ASSERT_TRUE(assume("peak=989e12", assumptions, layout));
  EXPECT_EQ(assumptions.peak, 989e12);
}

TEST(Assume, WhatIsNoNumberIsRefusedWithTheReason) {
  EXPECT_EQ(refusal("efficiency=fast"), "/assume/efficiency | \"fast\" is not a number | e.g. 0.6");
  EXPECT_EQ(refusal("efficiency="), "/assume/efficiency | \"\" is not a number | e.g. 0.6");
  for (const char* hostile :
       {"nan", "inf", "-inf", "1e999", "0x10", "0.5 ", " 0.5", "0.5,", "1e", "++1", "--1"}) {
    EXPECT_NE(refusal("efficiency=" + std::string(hostile)), "") << hostile;
    EXPECT_NE(refusal("gradient_bytes=" + std::string(hostile)), "") << hostile;
  }
  EXPECT_EQ(refusal("gradient_bytes=-1"),
            "/assume/gradient_bytes | -1 is out of range | 0 to 1024");
  EXPECT_EQ(refusal("peak=3 tflop/s"),
            "/assume/peak | \"tflop/s\" is no unit of a FLOP rate | case matters: did you mean "
            "\"TFLOP/s\"?");
  EXPECT_EQ(refusal("memory=-80 GB"), "/assume/memory | \"-80 GB\": a size cannot be negative | ");
}

// 80 bytes are a slip of the pen.
TEST(Assume, MemoryWithoutItsUnitIsRefused) {
  EXPECT_EQ(refusal("memory=80"),
            "/assume/memory | 80 is out of range | 1e+06 to 1e+18, e.g. \"80 GB\" or 80e9");
}

TEST(Assume, UnknownKeysSuggestTheNearest) {
  EXPECT_EQ(refusal("efficency=0.5"),
            "/assume/efficency | unknown assumption | did you mean \"efficiency\"?");
  EXPECT_EQ(refusal("shardin=none"),
            "/assume/shardin | unknown assumption | did you mean \"sharding\"?");
  EXPECT_EQ(refusal("=1"), "/assume | \"=1\" is not KEY=VALUE | e.g. efficiency=0.55");
  EXPECT_EQ(refusal(""), "/assume | \"\" is not KEY=VALUE | e.g. efficiency=0.55");
  EXPECT_EQ(refusal("efficiency"),
            "/assume | \"efficiency\" is not KEY=VALUE | e.g. efficiency=0.55");
}

// An assumption that changes nothing would be believed.
TEST(Assume, WhatTheRulesDoNotUseIsRefused) {
  for (const char* key :
       {"cp_overlap", "pp_overlap", "dp_overlap", "ep_overlap", "minimum_cp_tokens"}) {
    EXPECT_EQ(refusal(std::string(key) + "=1", workshop()),
              "/assume/" + std::string(key) +
                  " | not used by the workshop's rules | leave it out, or take those of the "
                  "chapter");
    EXPECT_EQ(refusal(std::string(key) + "=1"), "") << key;
  }
  EXPECT_EQ(refusal("recompute_layers=as_needed", workshop()),
            "/assume/recompute_layers | the workshop's rules recompute a number of layers | "
            "e.g. 8");
  EXPECT_EQ(refusal("recompute_layers=as_needed"), "");
}

TEST(Assume, ExpertsOfAModelWithoutAreRefused) {
  for (const char* key : {"expert_parameters", "ep_overlap", "expert_imbalance"}) {
    EXPECT_EQ(refusal(std::string(key) + "=1", dense()),
              "/assume/" + std::string(key) + " | the model has no experts | leave it out");
  }
  EXPECT_EQ(refusal("efficiency=1", dense()), "");
}

TEST(Assume, TheLayoutsOwnValues) {
  Assumptions assumptions;
  Layout layout;
  const std::vector<std::string> names = {"none", "zero1", "zero2", "zero3"};
  for (std::size_t index = 0; index < names.size(); ++index) {
    ASSERT_TRUE(assume("sharding=" + names[index], assumptions, layout));
    EXPECT_EQ(layout.sharding, static_cast<Sharding>(index));
  }
  ASSERT_TRUE(assume("vpp=4", assumptions, layout));
  EXPECT_EQ(layout.vpp, 4);
  ASSERT_TRUE(assume("recompute_layers=0", assumptions, layout));
  EXPECT_EQ(layout.recompute_layers, 0);
  ASSERT_TRUE(assume("recompute_layers=as_needed", assumptions, layout));
  EXPECT_EQ(layout.recompute_layers, kRecomputeAsNeeded);
  for (const char* bad : {"sharding=zero4", "vpp=0", "vpp=1.5", "vpp=1e7", "recompute_layers=-1"}) {
    EXPECT_NE(refusal(bad), "") << bad;
  }
}

}  // namespace
}  // namespace foretrain::test
