#include "sim/base/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace foretrain {
namespace {

/// Three or four significant figures: 6.31, 63.1, 631, 6310.
std::string significant(double value) {
  const double magnitude = std::fabs(value);
  if (magnitude >= 99.95) {
    return fixed(value, 0);
  }
  return fixed(value, magnitude >= 9.995 ? 1 : 2);
}

std::string scaled(double value, const char* suffix) {
  static constexpr std::array<const char*, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (std::fabs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const std::string number = prefix == 0 ? fixed(value, 0) : significant(value);
  return number + " " + kPrefixes[prefix] + suffix;
}

}  // namespace

std::string with_commas(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string human_time(Duration duration) {
  const double picoseconds = static_cast<double>(duration.count());
  struct Unit {
    double size;
    const char* name;
  };
  static constexpr std::array<Unit, 4> kUnits = {
      {{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}}};
  for (const Unit& unit : kUnits) {
    if (std::fabs(picoseconds) >= 0.9995 * unit.size) {
      return significant(picoseconds / unit.size) + " " + unit.name;
    }
  }
  return duration.count() == 0 ? "0 s" : std::to_string(duration.count()) + " ps";
}

std::string plural(const std::string& noun, std::int64_t count) {
  return count == 1 ? noun : noun + (noun.ends_with("ch") ? "es" : "s");
}

std::string human_bytes(std::int64_t bytes) {
  return scaled(static_cast<double>(bytes), "B");
}

std::string human_rate(double bytes_per_second) {
  return scaled(bytes_per_second, "B/s");
}

std::string fixed(double value, int decimals) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
  return buffer.data();
}

std::string percent(double fraction, int decimals) {
  return fixed(100 * fraction, decimals) + " %";
}

std::string bar(double columns) {
  static constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<int>(std::lround(std::max(0.0, columns) * 8));
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) {
    text += "█";
  }
  return text + kEighths[static_cast<std::size_t>(eighths % 8)];
}

int display_width(const std::string& text) {
  int width = 0;
  for (const char c : text) {
    width += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  }
  return width;
}

std::string pad(const std::string& text, int width, bool right_align) {
  const int missing = width - display_width(text);
  const std::string space(static_cast<std::size_t>(missing > 0 ? missing : 0), ' ');
  return right_align ? space + text : text + space;
}

}  // namespace foretrain
