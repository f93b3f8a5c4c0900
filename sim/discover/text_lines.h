#pragma once

#include "foretrain/diagnostic.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// The lines of a text, numbered from 1, without their ends (LF or CRLF).
class TextLines {
 public:
  explicit TextLines(std::string_view text) : rest_(text) {}
  /// The next line; false at the end.
  bool next(std::string_view& line);
  std::int64_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_ = 0;
};

/// Faults by line; a text of another kind has one in every line, so only the first are kept.
class LineFaults {
 public:
  void add(std::int64_t line, const std::string& message, const std::string& hint = "");
  bool none() const { return count_ == 0; }
  std::vector<Diagnostic> take();

 private:
  std::vector<Diagnostic> list_;
  std::int64_t count_ = 0;
};

/// Takes the next word, up to a space or tab; "" at the end.
std::string_view take_word(std::string_view& text);

/// A name from outside for our own output: no control characters, at most 64 bytes (the length of
/// an InfiniBand NodeDescription).
std::string clean_name(std::string_view name);

/// The same in quotes.
std::string quoted_name(std::string_view name);

/// A whole text as a number of at most nine digits.
std::optional<std::int32_t> whole_number_in(std::string_view text);

/// Order of names in which numbers count as numbers: n2 before n10.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace foretrain
