#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace foretrain {

/// Rows of comma-separated cells (RFC 4180): quoted cells, doubled quotes; lines end in LF, CRLF or
/// CR.
class CsvCells {
 public:
  /// Views into `text`, which must outlive the reader.
  explicit CsvCells(std::string_view text) : rest_(text) {}

  /// The next row, valid until the one after it; false at the end. A blank line is one empty cell.
  bool next_row(std::vector<std::string_view>& row);
  std::size_t line() const { return line_; }  ///< on which the last row began, from 1
  /// Line of a quote that the text never closes; 0: none.
  std::size_t open_quote() const { return open_quote_; }

 private:
  std::string_view next_cell();
  std::string_view quoted_cell();

  std::string_view rest_;
  std::deque<std::string> unquoted_;  ///< cells of the row that are no part of the text
  std::size_t line_ = 0, next_line_ = 1, open_quote_ = 0;
};

}  // namespace foretrain
