#include "sim/discover/text_lines.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr std::int64_t kMostFaults = 40;
constexpr std::size_t kLongestName = 64;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

/// Takes the digits a text begins with, without leading zeros.
std::string_view take_digits(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && is_digit(text[end])) {
    ++end;
  }
  std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  while (digits.size() > 1 && digits.front() == '0') {
    digits.remove_prefix(1);
  }
  return digits;
}

}  // namespace

bool TextLines::next(std::string_view& line) {
  if (rest_.empty()) {
    return false;
  }
  const std::size_t end = std::min(rest_.find('\n'), rest_.size());
  line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  ++number_;
  return true;
}

void LineFaults::add(std::int64_t line, const std::string& message, const std::string& hint) {
  if (++count_ <= kMostFaults) {
    list_.push_back({"", "line " + std::to_string(line) + ": " + message, hint});
  }
}

std::vector<Diagnostic> LineFaults::take() {
  if (count_ > kMostFaults) {
    list_.push_back({"", "and " + std::to_string(count_ - kMostFaults) + " more faults", ""});
  }
  return std::move(list_);
}

std::string_view take_word(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  std::size_t end = 0;
  while (end < text.size() && !is_blank(text[end])) {
    ++end;
  }
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::string clean_name(std::string_view name) {
  std::string clean(name.substr(0, kLongestName));
  for (char& c : clean) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20U || code >= 0x7FU || c == '"' || c == '\\') {
      c = '?';
    }
  }
  return clean;
}

std::string quoted_name(std::string_view name) {
  return "\"" + clean_name(name) + (name.size() > kLongestName ? "..." : "") + "\"";
}

std::optional<std::int32_t> whole_number_in(std::string_view text) {
  if (text.empty() || text.size() > 9 || !std::all_of(text.begin(), text.end(), is_digit)) {
    return std::nullopt;
  }
  std::int32_t value = 0;
  for (const char c : text) {
    value = value * 10 + (c - '0');
  }
  return value;
}

bool natural_less(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view left = take_digits(a);
      const std::string_view right = take_digits(b);
      if (left.size() != right.size()) {
        return left.size() < right.size();
      }
      if (left != right) {
        return left < right;
      }
    } else {
      if (a.front() != b.front()) {
        return a.front() < b.front();
      }
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.empty() != b.empty() ? a.empty() : whole_a < whole_b;
}

}  // namespace foretrain
