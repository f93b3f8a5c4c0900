#include "tests/plan/arithmetic.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>
#include <vector>

namespace foretrain::test {
namespace {

/// What a rounded number may stand for.
struct Interval {
  double low = 0, high = 0;
};

Interval operator+(Interval a, Interval b) {
  return {a.low + b.low, a.high + b.high};
}
Interval operator-(Interval a, Interval b) {
  return {a.low - b.high, a.high - b.low};
}
Interval operator*(Interval a, Interval b) {
  const double ends[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}
Interval operator/(Interval a, Interval b) {
  return a * Interval{1 / b.high, 1 / b.low};
}

/// Numbers with units, + - x / and parentheses; words after a number are passed over.
class Reckoner {
 public:
  explicit Reckoner(std::string text) : text_(std::move(text)) {}

  Interval sum() {
    Interval value = product();
    for (;;) {
      if (takes(" + ")) {
        value = value + product();
      } else if (takes(" - ")) {
        value = value - product();
      } else {
        return value;
      }
    }
  }

  /// A number with its unit, the first thing of the text. A whole number is exact unless it is what
  /// was reckoned.
  Interval number(bool result = false) {
    const char* const begin = text_.c_str() + at_;
    char* end = nullptr;
    const double value = std::strtod(begin, &end);
    broken_ = broken_ || end == begin;
    const std::string digits(begin, static_cast<std::size_t>(end - begin));
    at_ += digits.size();
    const bool exact = digits.find_first_of(".e") == std::string::npos;
    const std::string unit = word();
    // Three significant figures are right to half a unit of the third: at most 0.5 %.
    double error = exact && !result ? 0 : 0.005 * std::fabs(value);
    if (unit == "%") {  // these have fixed decimals
      const std::size_t dot = digits.find('.');
      error =
          0.5 *
          std::pow(10.0,
                   dot == std::string::npos ? 0.0 : -static_cast<double>(digits.size() - dot - 1));
    }
    const double size = unit_size(unit);
    return {(value - error) * size, (value + error) * size};
  }

  bool broken() const { return broken_; }
  bool ended() const { return at_ == text_.size(); }

 private:
  Interval product() {
    Interval value = factor();
    for (;;) {
      if (takes(" x ")) {
        value = value * factor();
      } else if (takes(" / ") || takes("/")) {
        value = value / factor();
      } else {
        return value;
      }
    }
  }

  Interval factor() {
    if (takes("(")) {
      const Interval value = sum();
      broken_ = broken_ || !takes(")");
      return value;
    }
    return number();
  }

  bool takes(std::string_view what) {
    if (text_.compare(at_, what.size(), what) != 0) {
      return false;
    }
    at_ += what.size();
    return true;
  }

  /// The word after a number, unless it is an operator.
  std::string word() {
    if (at_ + 1 >= text_.size() || text_[at_] != ' ') {
      return "";
    }
    std::size_t end = at_ + 1;
    while (end < text_.size() &&
           (std::isalpha(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '%')) {
      ++end;
    }
    const std::string found = text_.substr(at_ + 1, end - at_ - 1);
    if (found.empty() || found == "x") {
      return "";
    }
    at_ = end;
    return found;
  }

  static double unit_size(const std::string& unit) {
    static const std::map<std::string, double> kSizes = {
        {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"%", 0.01}};
    const auto found = kSizes.find(unit);
    return found == kSizes.end() ? 1 : found->second;
  }

  std::string text_;
  std::size_t at_ = 0;
  bool broken_ = false;
};

std::vector<std::string> parts_of(std::string line) {
  const std::size_t equals = line.find(" = ");
  const std::size_t label = line.rfind(": ", equals);
  if (label != std::string::npos) {
    line = line.substr(label + 2);
  }
  line = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  std::vector<std::string> parts;
  for (std::size_t end = line.find(" = "); end != std::string::npos; end = line.find(" = ")) {
    parts.push_back(line.substr(0, end));
    line = line.substr(end + 3);
  }
  parts.push_back(line);
  if (!parts.empty() && parts.front() == "m") {
    parts.erase(parts.begin());
  }
  return parts;
}

}  // namespace

std::string arithmetic_fault(const std::string& line) {
  if (line.find(" = ") == std::string::npos) {
    return "";
  }
  const std::vector<std::string> parts = parts_of(line);
  std::vector<Interval> values;
  for (std::size_t at = 0; at < parts.size(); ++at) {
    Reckoner reckoner(parts[at]);
    const bool last = at + 1 == parts.size();
    values.push_back(last ? reckoner.number(true) : reckoner.sum());
    if (reckoner.broken() || (!last && !reckoner.ended())) {
      return "cannot read \"" + parts[at] + "\" of: " + line;
    }
  }
  for (std::size_t at = 1; at < values.size(); ++at) {
    const Interval& a = values[at - 1];
    const Interval& b = values[at];
    const double slack = 1e-9 * std::fabs(b.high);
    if (a.low > b.high + slack || b.low > a.high + slack) {
      return parts[at - 1] + " is from " + std::to_string(a.low) + " to " + std::to_string(a.high) +
             " in: " + line;
    }
  }
  return values.size() > 1 ? "" : "nothing to compare in: " + line;
}

}  // namespace foretrain::test
