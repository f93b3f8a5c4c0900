#include "sim/plan/figures.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace foretrain {
namespace {

double rounded_to(double value, int digits) {
  char text[40];
  std::snprintf(std::begin(text), std::size(text), "%.*e", digits - 1, value);
  return std::strtod(std::begin(text), nullptr);
}

std::string shortest(double value) {
  char text[400];
  const auto end =
      std::to_chars(std::begin(text), std::end(text), value, std::chars_format::fixed).ptr;
  return std::string(std::begin(text), end);
}

double board_value(double value, int digits = 3) {
  const double exact = rounded_to(value, digits + 1);
  return std::fabs(value - exact) <= 1e-9 * std::fabs(value) ? exact : rounded_to(value, digits);
}

}  // namespace

std::string figure(double value) {
  return figure(value, 3);
}

std::string figure(double value, int digits) {
  constexpr double kLong = 1e6;
  if (value == std::floor(value) && std::fabs(value) < kLong) {
    return shortest(value);
  }
  double shown = board_value(value, digits);
  int exponent = 0;
  while (std::fabs(value) >= kLong && std::fabs(shown) >= 1000) {
    shown = board_value(shown / 1000, digits);
    exponent += 3;
  }
  return shortest(shown) + (exponent > 0 ? "e" + std::to_string(exponent) : "");
}

std::string figure(std::int64_t value) {
  return figure(static_cast<double>(value));
}

std::string size_text(double bytes) {
  struct Unit {
    double size;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{1e12, " TB"}, {1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}};
  for (const Unit& unit : kUnits) {
    if (rounded_to(bytes, 3) >= unit.size) {
      return shortest(board_value(bytes / unit.size)) + unit.name;
    }
  }
  return shortest(board_value(bytes)) + " B";
}

std::string over(std::initializer_list<std::int64_t> factors) {
  std::string product;
  int count = 0;
  for (const std::int64_t factor : factors) {
    if (factor != 1) {
      product += (count++ > 0 ? " x " : "") + std::to_string(factor);
    }
  }
  return count == 0 ? "" : count == 1 ? " / " + product : " / (" + product + ")";
}

std::string shared_by(std::initializer_list<std::int64_t> factors) {
  const std::string text = over(factors);
  return text.empty() ? " / 1" : text;
}

std::string ordinal(std::int64_t number) {
  const std::int64_t last = number % 10;
  const bool teen = number / 10 % 10 == 1;
  const char* const ending = teen || last == 0 || last > 3 ? "th"
                             : last == 1                   ? "st"
                             : last == 2                   ? "nd"
                                                           : "rd";
  return std::to_string(number) + ending;
}

}  // namespace foretrain
