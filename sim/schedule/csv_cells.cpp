#include "sim/schedule/csv_cells.h"

#include <algorithm>

namespace foretrain {

bool CsvCells::next_row(std::vector<std::string_view>& row) {
  row.clear();
  unquoted_.clear();
  if (rest_.empty()) {
    return false;
  }
  line_ = next_line_;
  bool more = true;
  while (more) {
    row.push_back(next_cell());
    more = !rest_.empty() && rest_.front() == ',';
    if (!rest_.empty()) {
      const bool pair = rest_.starts_with("\r\n");
      next_line_ += more ? 0 : 1;
      rest_.remove_prefix(pair ? 2 : 1);
    }
  }
  return true;
}

/// Leaves `rest_` at the separator behind the cell.
std::string_view CsvCells::next_cell() {
  const std::size_t first = std::min(rest_.find_first_not_of(" \t"), rest_.size());
  if (first < rest_.size() && rest_[first] == '"') {
    rest_.remove_prefix(first + 1);
    return quoted_cell();
  }
  const std::size_t end = std::min(rest_.find_first_of(",\n\r"), rest_.size());
  const std::string_view cell = rest_.substr(0, end);
  rest_.remove_prefix(end);
  return cell;
}

std::string_view CsvCells::quoted_cell() {
  const std::size_t opened = next_line_;
  std::string& cell = unquoted_.emplace_back();
  while (true) {
    const std::size_t end = rest_.find('"');
    if (end == std::string_view::npos) {
      open_quote_ = opened;
      rest_ = {};
      return cell;
    }
    const std::string_view part = rest_.substr(0, end);
    next_line_ += static_cast<std::size_t>(std::count(part.begin(), part.end(), '\n'));
    cell += part;
    rest_.remove_prefix(end + 1);
    if (!rest_.starts_with('"')) {
      break;
    }
    cell += '"';
    rest_.remove_prefix(1);
  }
  const std::size_t after = std::min(rest_.find_first_of(",\n\r"), rest_.size());
  cell += rest_.substr(0, after);
  rest_.remove_prefix(after);
  return cell;
}

}  // namespace foretrain
