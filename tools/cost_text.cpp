#include "tools/cost_text.h"

#include "foretrain/quantity.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace foretrain {
namespace {

constexpr int kPicosecond = 12;  // decimals of a second

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Cuts "e3" off a number; nothing when the exponent is no whole number or out of reach.
std::optional<int> take_exponent(std::string_view& text) {
  const std::size_t at = text.find_first_of("eE");
  if (at == std::string_view::npos) {
    return 0;
  }
  std::string_view digits = text.substr(at + 1);
  text = text.substr(0, at);
  if (digits.starts_with('+')) {
    digits.remove_prefix(1);
  }
  int exponent = 0;
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  const bool whole = error == std::errc{} && stop == digits.data() + digits.size();
  return whole && exponent >= -100 && exponent <= 100 ? std::optional<int>(exponent) : std::nullopt;
}

/// 12, 2.5, .1, 1e-3: an exact decimal. Sets `too_long` for a number of more digits than fit.
std::optional<TypedCost> parse_number(std::string_view text, bool& too_long) {
  const std::optional<int> exponent = take_exponent(text);
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  const std::string_view fraction = point < text.size() ? text.substr(point + 1) : "";
  if (!exponent || whole.size() + fraction.size() == 0 || !all_digits(whole) ||
      !all_digits(fraction)) {
    return std::nullopt;
  }
  std::string digits = std::string(whole) + std::string(fraction);
  int decimals = static_cast<int>(fraction.size()) - *exponent;
  while (digits.size() > 1 && digits.back() == '0' && decimals > 0) {
    digits.pop_back();
    --decimals;
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) {
    return TypedCost{};
  }
  digits.append(static_cast<std::size_t>(std::max(0, -decimals)), '0');
  decimals = std::max(0, decimals);
  too_long = digits.size() > kMostDigits || decimals > kMostDigits;
  TypedCost cost{0, decimals, ""};
  if (!too_long) {
    std::from_chars(digits.data(), digits.data() + digits.size(), cost.mantissa);
  }
  return cost;
}

std::string unit_of(std::string_view text) {
  std::size_t at = text.size();
  while (at > 0 && std::isdigit(static_cast<unsigned char>(text[at - 1])) == 0 &&
         text[at - 1] != ' ' && text[at - 1] != '.') {
    --at;
  }
  return std::string(text.substr(at));
}

/// One cost; a fault with an empty pointer when it is none.
Expected<TypedCost> parse_cost(std::string_view text) {
  constexpr const char* kForm = "a bare number (1, 2.5) or a time (3.3 us), 0 or more";
  if (text.empty()) {
    return refuse({"", "is empty", kForm});
  }
  if (text.front() == '-') {
    return refuse({"", std::string(text) + " is negative", kForm});
  }
  bool too_long = false;
  if (const std::optional<TypedCost> number = parse_number(text, too_long)) {
    if (too_long) {
      return refuse({"",
                     std::string(text) + " has more digits than can be held exactly",
                     "at most " + std::to_string(kMostDigits) + " digits"});
    }
    return *number;
  }
  const Expected<Duration> time = parse_duration(text);
  if (!time) {
    return refuse({"", time.error().list.front().message, kForm});
  }
  return TypedCost{time->count(), kPicosecond, unit_of(text)};
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos
             ? std::string_view{}
             : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

}  // namespace

std::int64_t power_of_ten(int exponent) {
  std::int64_t power = 1;
  for (int i = 0; i < exponent; ++i) {
    power *= 10;
  }
  return power;
}

CostOption read_cost_option(const char* name,
                            const std::optional<std::string>& text,
                            std::vector<Diagnostic>& faults) {
  constexpr std::size_t kMostFaults = 5;
  CostOption option{name, {}};
  if (!text) {
    return option;
  }
  const bool several = text->find(',') != std::string::npos;
  std::string_view rest = *text;
  std::size_t wrong = 0;
  for (bool more = true; more;) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const Expected<TypedCost> cost = parse_cost(trimmed(rest.substr(0, end)));
    if (!cost && ++wrong <= kMostFaults) {
      const Diagnostic& fault = cost.error().list.front();
      const std::string where =
          several ? "value " + std::to_string(option.values.size() + 1) + ": " : "";
      faults.push_back({"/" + option.name, where + fault.message, fault.hint});
    }
    option.values.push_back(cost.value_or(TypedCost{}));
    more = end < rest.size();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (wrong > kMostFaults) {
    faults.push_back(
        {"/" + option.name, "and " + std::to_string(wrong - kMostFaults) + " more values", ""});
  }
  return option;
}

}  // namespace foretrain
