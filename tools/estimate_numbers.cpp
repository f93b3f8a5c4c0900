#include "tools/estimate_numbers.h"

#include "sim/base/format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace foretrain {
namespace {

constexpr double kGibibyte = 1073741824;

}  // namespace

std::string count_text(double value) {
  static constexpr std::array<const char*, 7> kPrefixes = {"", " k", " M", " G", " T", " P", " E"};
  std::size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return fixed(value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2) + kPrefixes[prefix];
}

std::string teraflops_text(double flops_per_second) {
  const double rate = flops_per_second / 1e12;
  return rate >= 999.5 ? with_commas(std::llround(std::min(rate, 1e18))) : count_text(rate);
}

std::string gigabytes_text(double bytes) {
  return fixed(bytes / 1e9, bytes > 0 && bytes < 0.995e9 ? 2 : 1) + " GB";
}

std::string gibibytes_text(double bytes) {
  return fixed(bytes / kGibibyte, bytes > 0 && bytes < 0.995 * kGibibyte ? 2 : 1) + " GiB";
}

std::string seconds_text(double seconds) {
  constexpr double kLongest = 1e6;
  if (seconds >= kLongest) {
    return with_commas(static_cast<std::int64_t>(std::min(seconds / 86400, 1e18))) + " days";
  }
  return human_time(Duration{std::llround(seconds * 1e12)});
}

std::string short_number(double value) {
  constexpr double kWithZeros = 1e6;
  int thousands = 0;
  while (value >= kWithZeros || (thousands > 0 && value >= 1000)) {
    value /= 1000;
    ++thousands;
  }
  std::array<char, 32> buffer{};
  const auto end =
      std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::general, 6);
  return std::string(buffer.begin(), end.ptr) +
         (thousands > 0 ? "e" + std::to_string(3 * thousands) : "");
}

std::string assumption_text(AssumptionUnit unit, double value) {
  if (unit == AssumptionUnit::kNumber) {
    return short_number(value);
  }
  const bool flops = unit == AssumptionUnit::kFlopRate;
  const double scale = flops ? 1e12 : 1e9;
  const char* const suffix = flops ? " TFLOP/s" : unit == AssumptionUnit::kBytes ? " GB" : " GB/s";
  return short_number(value / scale) + suffix;
}

}  // namespace foretrain
