// Quantities parse exactly: the expected integers below are the definitions of the units.
#include "foretrain/quantity.h"

#include <gtest/gtest.h>

namespace foretrain {
namespace {

std::string message(const Diagnostic& fault) {
  return fault.message + "; " + fault.hint;
}

TEST(Units, TimesAreIntegerPicoseconds) {
  EXPECT_EQ(parse_duration("5 us")->count(), 5'000'000);
  EXPECT_EQ(parse_duration("5us")->count(), 5'000'000);
  EXPECT_EQ(parse_duration("5 \xC2\xB5s")->count(), 5'000'000);
  EXPECT_EQ(parse_duration("1.5 min")->count(), 90'000'000'000'000);
  EXPECT_EQ(parse_duration("0.1 ns")->count(), 100);
  EXPECT_EQ(parse_duration("0 us")->count(), 0);
  EXPECT_EQ(parse_duration("1e3 ms")->count(), 1'000'000'000'000);
  EXPECT_EQ(parse_duration("2E-3 s")->count(), 2'000'000'000);
}

TEST(Units, BytesTellPowersOf1000FromPowersOf1024) {
  EXPECT_EQ(parse_bytes("80 GB")->value, 80'000'000'000);
  EXPECT_EQ(parse_bytes("80 GiB")->value, 85'899'345'920);
  EXPECT_EQ(parse_bytes("1.5 kB")->value, 1500);
  EXPECT_EQ(parse_bytes("512 B")->value, 512);
}

TEST(Units, BandwidthsTellBitsFromBytes) {
  EXPECT_EQ(parse_bandwidth("400 Gb/s")->bytes_per_second, 50'000'000'000);
  EXPECT_EQ(parse_bandwidth("400 Gbit/s")->bytes_per_second, 50'000'000'000);
  EXPECT_EQ(parse_bandwidth("50 GB/s")->bytes_per_second, 50'000'000'000);
  EXPECT_EQ(parse_bandwidth("12.5 Gb/s")->bytes_per_second, 1'562'500'000);
  EXPECT_EQ(parse_flop_rate("989.4 TFLOP/s")->flops_per_second, 989'400'000'000'000);
}

TEST(Units, SizesMayBeBare) {
  EXPECT_EQ(parse_size("1024")->value, 1024);
  EXPECT_EQ(parse_size("64MB")->value, 64'000'000);
  EXPECT_FALSE(parse_size("64 megs").has_value());
}

TEST(Units, FaultsSayWhatIsWrongAndWhatWouldBeRight) {
  EXPECT_EQ(message(parse_bandwidth("400").error().list.front()),
            "\"400\" has no unit; write it with its unit, e.g. \"400 Gb/s\" or \"50 GB/s\"");
  EXPECT_EQ(message(parse_bandwidth("400 gb/s").error().list.front()),
            "\"gb/s\" is no unit of a bandwidth; case matters: did you mean \"GB/s\" or \"Gb/s\"?");
  EXPECT_EQ(message(parse_bytes("80 KB").error().list.front()),
            "\"KB\" is no unit of a size; case matters: did you mean \"kB\"?");
  EXPECT_EQ(message(parse_duration("-5 us").error().list.front()),
            "\"-5 us\": a time cannot be negative; ");
  EXPECT_EQ(message(parse_duration("soon").error().list.front()),
            "\"soon\" is not a time; write it with its unit, e.g. \"5 us\"");
}

// 2^63 ps is 106.75 days; 2^53 B is 9.007 PB. Whatever exceeds them, or is so small that it would
// read as zero, is refused instead of wrapped or dropped.
TEST(Units, NothingWrapsAndNothingVanishes) {
  EXPECT_TRUE(parse_duration("106 d").has_value());
  EXPECT_FALSE(parse_duration("107 d").has_value());
  EXPECT_FALSE(parse_duration("1e300 s").has_value());
  EXPECT_FALSE(parse_duration("1e9999 s").has_value());
  EXPECT_FALSE(parse_duration("1e-9999 s").has_value());
  EXPECT_FALSE(parse_duration("0.1 ps").has_value());
  EXPECT_TRUE(parse_bytes("9.007 PB").has_value());
  EXPECT_FALSE(parse_bytes("9.008 PB").has_value());
}

TEST(Units, OddTextIsRefused) {
  for (const char* text : {"",
                           " ",
                           ".",
                           "5.",
                           ".s",
                           "1 2 s",
                           "nan s",
                           "inf s",
                           "0x10 s",
                           "+5 s",
                           "5e s",
                           "123456789012345678901234567890 s",
                           "5 s s"}) {
    EXPECT_FALSE(parse_duration(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace foretrain
