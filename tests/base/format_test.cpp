#include "sim/base/format.h"

#include <gtest/gtest.h>

namespace foretrain {
namespace {

TEST(Format, GroupsThousands) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(16384), "16,384");
  EXPECT_EQ(with_commas(-1234567), "-1,234,567");
}

TEST(Format, OneOfAThingIsNoPlural) {
  EXPECT_EQ(plural("GPU", 1), "GPU");
  EXPECT_EQ(plural("GPU", 0), "GPUs");
  EXPECT_EQ(plural("micro-batch", 1), "micro-batch");
  EXPECT_EQ(plural("micro-batch", 2), "micro-batches");
}

TEST(Format, PicksTheUnitThatFits) {
  EXPECT_EQ(human_time(Duration{6'310'000'000'000}), "6.31 s");
  EXPECT_EQ(human_time(Duration{412'000'000'000}), "412 ms");
  EXPECT_EQ(human_time(Duration{3'200'000}), "3.20 us");
  EXPECT_EQ(human_time(Duration{850}), "850 ps");
  EXPECT_EQ(human_time(Duration{0}), "0 s");
  EXPECT_EQ(human_bytes(71'200'000'000), "71.2 GB");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_rate(372e9), "372 GB/s");
  EXPECT_EQ(percent(0.42), "42.0 %");
}

TEST(Format, PadsByColumnsNotBytes) {
  EXPECT_EQ(pad("a·b", 5), "a·b  ");
  EXPECT_EQ(pad("7", 3, true), "  7");
}

}  // namespace
}  // namespace foretrain
