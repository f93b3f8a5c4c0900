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

/// A number as it is printed, and half a unit of its last digit.
struct Printed {
  double value = 0, half_unit = 0;
};

/// Numbers with units, + - x / and parentheses; words after a number are passed over.
class Reckoner {
 public:
  explicit Reckoner(std::string text) : text_(std::move(text)) {}

  double sum() {
    double value = product();
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

  /// A number with its unit, the first thing of the text.
  Printed number() {
    const char* const begin = text_.c_str() + at_;
    char* end = nullptr;
    const double value = std::strtod(begin, &end);
    broken_ = broken_ || end == begin;
    const std::string written(begin, static_cast<std::size_t>(end - begin));
    at_ += written.size();
    const std::size_t e = std::min(written.find('e'), written.size());
    const std::size_t dot = written.find('.');
    const double decimals = dot < e ? static_cast<double>(e - dot - 1) : 0;
    const double power = e < written.size() ? std::atof(written.c_str() + e + 1) : 0;
    const auto digits = std::count_if(written.begin(),
                                      written.begin() + static_cast<std::ptrdiff_t>(e),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    rounded_ = rounded_ || (digits >= 4 && (dot < e || e < written.size()));
    const double size = unit_size(word());
    return {value * size, 0.5 * std::pow(10, power - decimals) * size};
  }

  bool rounded() const { return rounded_; }  ///< whether a number has four digits, maybe rounded
  bool broken() const { return broken_; }
  bool ended() const { return at_ == text_.size(); }

 private:
  double product() {
    double value = factor();
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

  double factor() {
    if (takes("(")) {
      const double value = sum();
      broken_ = broken_ || !takes(")");
      return value;
    }
    return number().value;
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
  bool broken_ = false, rounded_ = false;
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
  double reckoned = 0;
  bool rounded = false;
  for (std::size_t at = 0; at < parts.size(); ++at) {
    Reckoner reckoner(parts[at]);
    const Printed printed = at == 0 ? Printed{reckoner.sum(), 0} : reckoner.number();
    if (reckoner.broken() || (at == 0 && !reckoner.ended())) {
      return "cannot read \"" + parts[at] + "\" of: " + line;
    }
    if (at == 0) {
      reckoned = printed.value;
      rounded = reckoner.rounded();
      continue;
    }
    // Half a unit of the last digit; four digits are themselves right to 0.05 % at worst.
    const double error = std::fabs(printed.value - reckoned);
    const double slack = 1e-9 * std::fabs(reckoned);
    if (error > printed.half_unit + slack && !(rounded && error <= 0.0006 * std::fabs(reckoned))) {
      return parts.front() + " is " + std::to_string(reckoned) + " in: " + line;
    }
  }
  return parts.size() > 1 ? "" : "nothing to compare in: " + line;
}

}  // namespace foretrain::test
