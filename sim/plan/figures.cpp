#include "sim/plan/figures.h"

#include "sim/base/format.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

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

/// Three figures, a fourth where it makes the number exact.
double board_value(double value) {
  const double exact = rounded_to(value, 4);
  return std::fabs(value - exact) <= 1e-9 * std::fabs(value) ? exact : rounded_to(value, 3);
}

template <typename Round>
std::string number_text(double value, const Round& round) {
  constexpr double kLong = 1e6;
  if (value == std::floor(value) && std::fabs(value) < kLong) {
    return shortest(value);
  }
  double shown = round(value);
  int exponent = 0;
  while (std::fabs(value) >= kLong && std::fabs(shown) >= 1000) {
    shown = round(shown / 1000);
    exponent += 3;
  }
  return shortest(shown) + (exponent > 0 ? "e" + std::to_string(exponent) : "");
}

struct ByteUnit {
  double size;
  std::string_view name;
};
constexpr ByteUnit kByteUnits[] = {{1e12, " TB"}, {1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}};

template <typename Round>
std::string bytes_text(double bytes, const Round& round) {
  for (const ByteUnit& unit : kByteUnits) {
    if (rounded_to(bytes, 3) >= unit.size) {
      return shortest(round(bytes / unit.size)) + std::string(unit.name);
    }
  }
  return shortest(round(bytes)) + " B";
}

/// Reads an expression from its first sign to its last.
class Reckoning {
 public:
  explicit Reckoning(std::string_view rest) : rest_(rest) {}

  double sum() {
    double value = product();
    for (;;) {
      if (takes(" + ")) {
        value += product();
      } else if (takes(" - ")) {
        value -= product();
      } else {
        return value;
      }
    }
  }

 private:
  double product() {
    double value = factor();
    for (;;) {
      if (takes(" x ")) {
        value *= factor();
      } else if (takes(" / ") || takes("/")) {
        value /= factor();
      } else {
        return value;
      }
    }
  }

  double factor() {
    if (takes("(")) {
      const double value = sum();
      takes(")");
      return value;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    for (const ByteUnit& unit : kByteUnits) {
      value *= takes(unit.name) ? unit.size : 1;
    }
    return value;
  }

  bool takes(std::string_view what) {
    const bool found = rest_.starts_with(what);
    rest_.remove_prefix(found ? what.size() : 0);
    return found;
  }

  std::string_view rest_;
};

}  // namespace

std::string figure(double value) {
  return number_text(value, board_value);
}

std::string figure(std::int64_t value) {
  return figure(static_cast<double>(value));
}

std::string operand(double value, int digits) {
  return number_text(value, [digits](double exact) { return rounded_to(exact, digits); });
}

std::string size_text(double bytes) {
  return bytes_text(bytes, board_value);
}

std::string size_operand(double bytes) {
  return bytes_text(bytes, [](double exact) { return rounded_to(exact, 4); });
}

double reckoned(const std::string& expression) {
  return Reckoning(expression).sum();
}

double outcome(const std::string& expression, double value) {
  const double printed = reckoned(expression);
  const bool exact = std::fabs(printed - value) <= 1e-9 * std::fabs(value);
  return exact ? value : rounded_to(printed, 3);
}

std::string equation(const std::string& expression, double value) {
  return expression + " = " + figure(outcome(expression, value));
}

std::string size_equation(const std::string& expression, double bytes) {
  return expression + " = " + size_text(outcome(expression, bytes));
}

std::string percent_equation(const std::string& expression, double fraction, int decimals) {
  const double printed = reckoned(expression);
  const bool exact = std::fabs(printed - fraction) <= 1e-9 * std::fabs(fraction);
  return expression + " = " + percent(exact ? fraction : printed, decimals);
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
