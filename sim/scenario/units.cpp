#include "foretrain/quantity.h"
#include "sim/base/edit_distance.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace foretrain {
namespace {

/// One unit: `multiplier / divisor` of the quantity's own unit (ps, B, B/s, FLOP/s).
struct Unit {
  std::string_view name;
  std::int64_t multiplier = 1;
  std::int64_t divisor = 1;
};

constexpr std::int64_t kKilo = 1000;
constexpr std::int64_t kMega = 1000 * kKilo;
constexpr std::int64_t kGiga = 1000 * kMega;
constexpr std::int64_t kTera = 1000 * kGiga;
constexpr std::int64_t kPeta = 1000 * kTera;
constexpr std::int64_t kExa = 1000 * kPeta;
constexpr std::int64_t kKibi = 1024;
constexpr std::int64_t kMebi = 1024 * kKibi;
constexpr std::int64_t kGibi = 1024 * kMebi;
constexpr std::int64_t kTebi = 1024 * kGibi;
constexpr std::int64_t kPebi = 1024 * kTebi;

constexpr std::array kTimeUnits = {
    Unit{"ps", 1},
    Unit{"ns", kKilo},
    Unit{"us", kMega},
    Unit{"\xC2\xB5s", kMega},  // micro sign
    Unit{"\xCE\xBCs", kMega},  // Greek mu
    Unit{"ms", kGiga},
    Unit{"s", kTera},
    Unit{"min", 60 * kTera},
    Unit{"h", 3600 * kTera},
    Unit{"d", 86400 * kTera},
};

constexpr std::array kByteUnits = {
    Unit{"B", 1},
    Unit{"kB", kKilo},
    Unit{"MB", kMega},
    Unit{"GB", kGiga},
    Unit{"TB", kTera},
    Unit{"PB", kPeta},
    Unit{"KiB", kKibi},
    Unit{"MiB", kMebi},
    Unit{"GiB", kGibi},
    Unit{"TiB", kTebi},
    Unit{"PiB", kPebi},
};

constexpr std::array kBandwidthUnits = {
    Unit{"B/s", 1},           Unit{"kB/s", kKilo},      Unit{"MB/s", kMega},
    Unit{"GB/s", kGiga},      Unit{"TB/s", kTera},      Unit{"PB/s", kPeta},
    Unit{"KiB/s", kKibi},     Unit{"MiB/s", kMebi},     Unit{"GiB/s", kGibi},
    Unit{"TiB/s", kTebi},     Unit{"b/s", 1, 8},        Unit{"kb/s", kKilo, 8},
    Unit{"Mb/s", kMega, 8},   Unit{"Gb/s", kGiga, 8},   Unit{"Tb/s", kTera, 8},
    Unit{"kbit/s", kKilo, 8}, Unit{"Mbit/s", kMega, 8}, Unit{"Gbit/s", kGiga, 8},
    Unit{"Tbit/s", kTera, 8},
};

constexpr std::array kFlopUnits = {
    Unit{"FLOP/s", 1},
    Unit{"MFLOP/s", kMega},
    Unit{"GFLOP/s", kGiga},
    Unit{"TFLOP/s", kTera},
    Unit{"PFLOP/s", kPeta},
    Unit{"EFLOP/s", kExa},
};

/// A kind of quantity: its units, largest value and an example for hints.
struct Quantity {
  std::string_view noun;
  std::string_view example;
  std::span<const Unit> units;
  std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  std::string_view range = "";
};

constexpr std::int64_t kLargestInteger = std::int64_t{1} << 53;
constexpr Quantity kTime = {"a time", "\"5 us\"", kTimeUnits};
constexpr Quantity kSize = {
    "a size", "\"80 GB\"", kByteUnits, kLargestInteger, "whole bytes, at most 2^53"};
constexpr Quantity kRate = {"a bandwidth", "\"400 Gb/s\" or \"50 GB/s\"", kBandwidthUnits};
constexpr Quantity kFlops = {"a FLOP rate", "\"989 TFLOP/s\"", kFlopUnits};

/// digits * 10^exponent, exactly.
struct Decimal {
  Int128 digits = 0;
  int exponent = 0;
};

constexpr std::size_t kMostDigits = 17;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Reads an unsigned decimal from the front of `text` and removes it.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal number;
  std::size_t count = 0;
  bool any = false;
  bool point = false;
  std::size_t at = 0;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    any = true;
    count += (number.digits != 0 || text[at] != '0') ? 1 : 0;
    if (count > kMostDigits) {
      return std::nullopt;
    }
    number.digits = number.digits * 10 + (text[at] - '0');
    number.exponent -= point ? 1 : 0;
  }
  if (!any || (point && text[at - 1] == '.')) {
    return std::nullopt;
  }
  if (at + 1 < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t digit = at + 1;
    const bool minus = text[digit] == '-';
    digit += (minus || text[digit] == '+') ? 1 : 0;
    int exponent = 0;
    const std::size_t first = digit;
    for (; digit < text.size() && is_digit(text[digit]) && digit - first < 4; ++digit) {
      exponent = exponent * 10 + (text[digit] - '0');
    }
    if (digit > first) {
      number.exponent += minus ? -exponent : exponent;
      at = digit;
    }
  }
  text.remove_prefix(at);
  return number;
}

/// The number in the quantity's own unit, to the nearest integer; nothing when it does not fit or
/// when a value above zero would vanish.
std::optional<std::int64_t> scale(Decimal number, const Unit& unit, std::int64_t largest) {
  if (number.digits == 0) {
    return 0;
  }
  const Int128 limit = static_cast<Int128>(largest) * unit.divisor;
  Int128 value = number.digits * unit.multiplier;
  for (; number.exponent > 0; --number.exponent) {
    if (value > limit) {
      return std::nullopt;
    }
    value *= 10;
  }
  Int128 divisor = unit.divisor;
  for (; number.exponent < 0; ++number.exponent) {
    if (divisor > 2 * value) {
      return std::nullopt;
    }
    divisor *= 10;
  }
  const Int128 result = (2 * value + divisor) / (2 * divisor);
  if (result == 0 || result > largest) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(result);
}

std::string example_hint(const Quantity& quantity) {
  return "write it with its unit, e.g. " + std::string(quantity.example);
}

tl::unexpected<Faults> refuse_unit(std::string_view unit, const Quantity& quantity) {
  std::vector<std::string> names;
  std::string same_letters;
  for (const Unit& candidate : quantity.units) {
    names.emplace_back(candidate.name);
    if (edit_distance(unit, candidate.name) == 0) {
      same_letters += (same_letters.empty() ? "" : " or ") + std::string("\"") +
                      std::string(candidate.name) + "\"";
    }
  }
  std::string hint = same_letters.empty() ? did_you_mean(unit, names)
                                          : "case matters: did you mean " + same_letters + "?";
  if (hint.empty()) {
    hint = example_hint(quantity);
  }
  return refuse(Diagnostic{
      "", "\"" + std::string(unit) + "\" is no unit of " + std::string(quantity.noun), hint});
}

tl::unexpected<Faults> refuse_range(const std::string& quoted, const Quantity& quantity) {
  return refuse(Diagnostic{"",
                           quoted + " is out of the range of " + std::string(quantity.noun),
                           std::string(quantity.range)});
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  return text;
}

Expected<std::int64_t> parse(std::string_view text, const Quantity& quantity) {
  const std::string quoted = "\"" + std::string(text.substr(0, 60)) + "\"";
  const std::string noun(quantity.noun);
  std::string_view rest = trimmed(text);
  if (!rest.empty() && rest.front() == '-') {
    return refuse(Diagnostic{"", quoted + ": " + noun + " cannot be negative", ""});
  }
  const std::optional<Decimal> number = take_decimal(rest);
  if (!number) {
    const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    return end > kMostDigits
               ? refuse_range(quoted, quantity)
               : refuse(Diagnostic{"", quoted + " is not " + noun, example_hint(quantity)});
  }
  rest = trimmed(rest);
  if (rest.empty()) {
    return refuse(Diagnostic{"", quoted + " has no unit", example_hint(quantity)});
  }
  for (const Unit& unit : quantity.units) {
    if (unit.name == rest) {
      const std::optional<std::int64_t> value = scale(*number, unit, quantity.largest);
      if (!value) {
        return refuse_range(quoted, quantity);
      }
      return *value;
    }
  }
  return refuse_unit(rest.substr(0, 40), quantity);
}

}  // namespace

Expected<Duration> parse_duration(std::string_view text) {
  return parse(text, kTime).map([](std::int64_t value) { return Duration{value}; });
}

Expected<Bytes> parse_bytes(std::string_view text) {
  return parse(text, kSize).map([](std::int64_t value) { return Bytes{value}; });
}

Expected<Bytes> parse_size(std::string_view text) {
  const std::string_view bare = trimmed(text);
  if (!bare.empty() && bare.find_first_not_of("0123456789") == std::string_view::npos) {
    return parse_bytes(std::string(bare) + " B");
  }
  return parse_bytes(text);
}

Expected<Bandwidth> parse_bandwidth(std::string_view text) {
  return parse(text, kRate).map([](std::int64_t value) { return Bandwidth{value}; });
}

Expected<FlopRate> parse_flop_rate(std::string_view text) {
  return parse(text, kFlops).map([](std::int64_t value) { return FlopRate{value}; });
}

}  // namespace foretrain
