#include "tools/counts.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

namespace foretrain {
namespace {

/// The number a text begins with, and what follows it, spaces left out.
std::optional<std::pair<double, std::string_view>> number_and_rest(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value)) {
    return std::nullopt;
  }
  std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (rest.starts_with(' ')) {
    rest.remove_prefix(1);
  }
  return std::pair{value, rest};
}

}  // namespace

std::optional<double> parse_count(const std::string& text) {
  constexpr std::pair<std::string_view, double> kSuffixes[] = {
      {"", 1}, {"k", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}};
  const auto read = number_and_rest(text);
  for (const auto& [suffix, size] : kSuffixes) {
    if (read && read->second == suffix) {
      return read->first * size;
    }
  }
  return std::nullopt;
}

std::optional<double> parse_share(const std::string& text) {
  const auto read = number_and_rest(text);
  if (!read || (!read->second.empty() && read->second != "%")) {
    return std::nullopt;
  }
  return read->second == "%" ? read->first / 100 : read->first;
}

}  // namespace foretrain
