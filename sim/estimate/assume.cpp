#include "foretrain/estimate.h"
#include "foretrain/quantity.h"
#include "sim/base/edit_distance.h"

#include <charconv>
#include <cmath>
#include <optional>

namespace foretrain {
namespace {

constexpr std::string_view kShardingNames[] = {"none", "zero1", "zero2", "zero3"};
constexpr std::int64_t kMostCount = 1'000'000;

std::optional<double> plain_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional<double>(value) : std::nullopt;
}

/// A plain number is in SI units.
Expected<double> quantity(AssumptionUnit unit, std::string_view text) {
  if (const std::optional<double> plain = plain_number(text)) {
    return *plain;
  }
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  switch (unit) {
    case AssumptionUnit::kBytes:
      return parse_bytes(text).map([&](Bytes size) { return real(size.value); });
    case AssumptionUnit::kBandwidth:
      return parse_bandwidth(text).map([&](Bandwidth rate) { return real(rate.bytes_per_second); });
    case AssumptionUnit::kFlopRate:
      return parse_flop_rate(text).map([&](FlopRate rate) { return real(rate.flops_per_second); });
    case AssumptionUnit::kNumber:
      break;
  }
  return refuse({"", "\"" + std::string(text) + "\" is not a number", "e.g. 0.6"});
}

/// How a quantity with a unit is written, after a range of plain numbers.
std::string example(AssumptionUnit unit) {
  switch (unit) {
    case AssumptionUnit::kBytes:
      return ", e.g. \"80 GB\" or 80e9";
    case AssumptionUnit::kBandwidth:
      return ", e.g. \"450 GB/s\" or 450e9";
    case AssumptionUnit::kFlopRate:
      return ", e.g. \"989 TFLOP/s\" or 989e12";
    case AssumptionUnit::kNumber:
      break;
  }
  return "";
}

std::string plain(double value) {
  char buffer[32];
  const auto result = std::to_chars(std::begin(buffer), std::end(buffer), value);
  return std::string(std::begin(buffer), result.ptr);
}

tl::unexpected<Faults> fault(std::string_view key, std::string message, std::string hint) {
  return refuse({"/assume/" + std::string(key), std::move(message), std::move(hint)});
}

Expected<bool> set_sharding(std::string_view value, Layout& layout) {
  for (std::size_t index = 0; index < std::size(kShardingNames); ++index) {
    if (kShardingNames[index] == value) {
      layout.sharding = static_cast<Sharding>(index);
      return true;
    }
  }
  return fault(
      "sharding", "unknown sharding \"" + std::string(value) + "\"", "none, zero1, zero2 or zero3");
}

Expected<bool> set_count(std::string_view key,
                         std::string_view value,
                         std::int64_t least,
                         std::int64_t& target) {
  const std::optional<double> number = plain_number(value);
  if (!number || *number != std::floor(*number) || *number < static_cast<double>(least) ||
      *number > static_cast<double>(kMostCount)) {
    return fault(key,
                 "\"" + std::string(value) + "\" is not a whole number from " +
                     std::to_string(least) + " to " + std::to_string(kMostCount),
                 "");
  }
  target = static_cast<std::int64_t>(*number);
  return true;
}

Expected<bool> set_row(const AssumptionRow& row, std::string_view value, Assumptions& assumptions) {
  if (!row.used_by(assumptions.form)) {
    const ClosedForm other =
        row.used_by(ClosedForm::kChapter) ? ClosedForm::kChapter : ClosedForm::kWorkshop;
    return fault(row.key,
                 "not used by the " + std::string(to_string(assumptions.form)) + "'s rules",
                 "leave it out, or take those of the " + std::string(to_string(other)));
  }
  if (row.experts && !assumptions.has_experts) {
    return fault(row.key, "the model has no experts", "leave it out");
  }
  const Expected<double> number = quantity(row.unit, value);
  if (!number) {
    const Diagnostic& why = number.error().list.front();
    return fault(row.key, why.message, why.hint);
  }
  if (*number < row.least || *number > row.most) {
    return fault(row.key,
                 plain(*number) + " is out of range",
                 plain(row.least) + " to " + plain(row.most) + example(row.unit));
  }
  assumptions.*row.member = *number;
  return true;
}

tl::unexpected<Faults> unknown_key(std::string_view key) {
  std::vector<std::string> known = {"sharding", "vpp", "recompute_layers"};
  for (const AssumptionRow& row : assumption_rows()) {
    known.emplace_back(row.key);
  }
  const std::string near = did_you_mean(key, known);
  return fault(
      key, "unknown assumption", near.empty() ? "foretrain estimate --help lists them" : near);
}

}  // namespace

Expected<bool> assume(std::string_view key_value, Assumptions& assumptions, Layout& layout) {
  const std::size_t equals = key_value.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return refuse(
        {"/assume", "\"" + std::string(key_value) + "\" is not KEY=VALUE", "e.g. efficiency=0.55"});
  }
  const std::string_view key = key_value.substr(0, equals);
  const std::string_view value = key_value.substr(equals + 1);
  if (key == "sharding") {
    return set_sharding(value, layout);
  }
  if (key == "vpp") {
    return set_count(key, value, 1, layout.vpp);
  }
  if (key == "recompute_layers") {
    if (value == "as_needed") {
      if (assumptions.form == ClosedForm::kWorkshop) {
        return fault(key, "the workshop's rules recompute a number of layers", "e.g. 8");
      }
      layout.recompute_layers = kRecomputeAsNeeded;
      return true;
    }
    return set_count(key, value, 0, layout.recompute_layers);
  }
  for (const AssumptionRow& row : assumption_rows()) {
    if (row.key == key) {
      return set_row(row, value, assumptions);
    }
  }
  return unknown_key(key);
}

}  // namespace foretrain
