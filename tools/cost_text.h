#pragma once

#include "foretrain/diagnostic.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Costs as people type them: exact decimals, with or without a unit of time.
namespace foretrain {

constexpr int kMostDigits = 18;  ///< of a number held exactly in 64 bits

/// mantissa / 10^decimals, of a second when there is a unit; never negative.
struct TypedCost {
  std::int64_t mantissa = 0;
  int decimals = 0;
  std::string unit;
};

/// An option's value: one cost, or one per virtual stage, separated by commas.
struct CostOption {
  std::string name;  ///< without dashes
  std::vector<TypedCost> values;
  bool given() const { return !values.empty(); }
};

std::int64_t power_of_ten(int exponent);

/// Adds a fault for each value that is no cost (pointer /name); an unset text gives no values.
CostOption read_cost_option(const char* name,
                            const std::optional<std::string>& text,
                            std::vector<Diagnostic>& faults);

}  // namespace foretrain
