#include "tools/schedule_costs.h"

#include "foretrain/quantity.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>

namespace foretrain {
namespace {

constexpr int kMostDigits = 18;  // of a number held exactly in 64 bits
constexpr int kPicosecond = 12;  // decimals of a second

/// mantissa / 10^decimals, of a second when there is a unit.
struct Cost {
  std::int64_t mantissa = 0;
  int decimals = 0;
  std::string unit;
};

struct Named {
  const char* name;
  Cost cost;
};

std::int64_t power_of_ten(int exponent) {
  std::int64_t power = 1;
  for (int i = 0; i < exponent; ++i) {
    power *= 10;
  }
  return power;
}

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
std::optional<Cost> parse_number(std::string_view text, bool& too_long) {
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
    return Cost{};
  }
  digits.append(static_cast<std::size_t>(std::max(0, -decimals)), '0');
  decimals = std::max(0, decimals);
  too_long = digits.size() > kMostDigits || decimals > kMostDigits;
  Cost cost{0, decimals, ""};
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

void read_cost(const char* name,
               const std::optional<std::string>& text,
               std::vector<Named>& costs,
               std::vector<Diagnostic>& faults) {
  if (!text) {
    return;
  }
  const std::string pointer = "/" + std::string(name);
  bool too_long = false;
  if (const std::optional<Cost> number = parse_number(*text, too_long)) {
    if (too_long) {
      faults.push_back({pointer,
                        *text + " has more digits than can be held exactly",
                        "at most " + std::to_string(kMostDigits) + " digits"});
    }
    costs.push_back({name, *number});
    return;
  }
  const Expected<Duration> time = parse_duration(*text);
  if (!time) {
    for (const Diagnostic& fault : time.error().list) {
      faults.push_back({pointer, fault.message, "a bare number (1, 2.5) or a time (3.3 us)"});
    }
  } else if (*time < Duration{}) {
    faults.push_back({pointer, *text + " is negative", ""});
  } else {
    costs.push_back({name, {time->count(), kPicosecond, unit_of(*text)}});
  }
}

/// Either every cost has a unit or none has; a bare 0 goes with both.
void check_units(const CostOptions& options,
                 const std::vector<Named>& costs,
                 std::vector<Diagnostic>& faults) {
  const auto with_unit = std::find_if(
      costs.begin(), costs.end(), [](const Named& named) { return !named.cost.unit.empty(); });
  if (with_unit == costs.end()) {
    return;
  }
  const std::string because = std::string("--") + with_unit->name + " has one";
  for (const Named& named : costs) {
    if (named.cost.unit.empty() && named.cost.mantissa != 0) {
      faults.push_back({"/" + std::string(named.name), "needs a unit of time, as " + because, ""});
    }
  }
  if (!options.forward) {
    faults.push_back({"/forward", "needed: its default 1 has no unit, and " + because, ""});
  }
  if (!options.backward && !(options.dgrad && options.wgrad)) {
    faults.push_back({"/backward", "needed: its default 2 has no unit, and " + because, ""});
  }
}

/// The printed unit: the first one typed. Sets ticks to the finest digit of all costs.
void choose_units(const std::vector<Named>& costs, TypedCosts& typed, int& decimals) {
  struct Scale {
    const char* name;
    int decimals;
  };
  static constexpr std::array<Scale, 4> kScales = {{{"ms", 3}, {"us", 6}, {"ns", 9}, {"ps", 12}}};
  for (const Named& named : costs) {
    decimals = std::max(decimals, named.cost.decimals);
  }
  typed.unit = typed.second_or_one = Duration{power_of_ten(decimals)};
  for (const Named& named : costs) {
    if (named.cost.unit.empty()) {
      continue;
    }
    typed.suffix = " s";
    for (const Scale& scale : kScales) {
      if (named.cost.unit == scale.name) {
        typed.suffix = std::string(" ") + scale.name;
        typed.unit = Duration{power_of_ten(decimals - scale.decimals)};
      }
    }
    return;
  }
}

/// Finds a cost by name and brings it to ticks of 10^-decimals.
Duration ticks_of(const std::vector<Named>& costs,
                  std::string_view name,
                  std::int64_t otherwise,
                  int decimals,
                  std::vector<Diagnostic>& faults) {
  Cost cost{otherwise, 0, ""};
  for (const Named& named : costs) {
    cost = named.name == name ? named.cost : cost;
  }
  const Int128 ticks = Int128{cost.mantissa} * power_of_ten(decimals - cost.decimals);
  if (ticks > Int128{std::numeric_limits<std::int64_t>::max() / 4}) {
    faults.push_back({"/" + std::string(name),
                      "the costs together span more digits than can be held exactly",
                      "round the finest of them"});
    return Duration{};
  }
  return Duration{static_cast<std::int64_t>(ticks)};
}

}  // namespace

Expected<TypedCosts> read_costs(const CostOptions& options) {
  std::vector<Named> costs;
  std::vector<Diagnostic> faults;
  read_cost("forward", options.forward, costs, faults);
  read_cost("backward", options.backward, costs, faults);
  read_cost("dgrad", options.dgrad, costs, faults);
  read_cost("wgrad", options.wgrad, costs, faults);
  read_cost("overlapped", options.overlapped, costs, faults);
  read_cost("p2p", options.p2p, costs, faults);
  check_units(options, costs, faults);
  const bool halves = options.dgrad && options.wgrad;
  if (!options.backward && !halves && (options.dgrad || options.wgrad)) {
    const std::string missing = options.dgrad ? "wgrad" : "dgrad";
    faults.push_back({"/" + missing, "needed: a backward is dgrad + wgrad", "or give --backward"});
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  TypedCosts typed;
  int decimals = 0;
  choose_units(costs, typed, decimals);
  const auto ticks = [&](std::string_view name, std::int64_t otherwise) {
    return ticks_of(costs, name, otherwise, decimals, faults);
  };
  typed.ticks.stages.front().forward = ticks("forward", 1);
  typed.ticks.stages.front().backward =
      options.backward || !halves ? ticks("backward", 2) : ticks("dgrad", 0) + ticks("wgrad", 0);
  typed.ticks.p2p = ticks("p2p", 0);
  if (options.backward && options.dgrad) {
    typed.unused.push_back("dgrad");
  }
  if (options.backward && options.wgrad) {
    typed.unused.push_back("wgrad");
  }
  if (options.overlapped) {
    typed.unused.push_back("overlapped");
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return typed;
}

}  // namespace foretrain
