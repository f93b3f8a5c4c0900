#include "sim/validate/csv.h"

#include "sim/base/format.h"

#include <algorithm>
#include <utility>

namespace foretrain {
namespace {

std::string line_pointer(std::int64_t line) {
  return "/" + std::to_string(line);
}

/// One pass over the text.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {}

  std::vector<CsvRow> rows() {
    std::vector<CsvRow> rows;
    while (at_ < text_.size()) {
      CsvRow row = next_row();
      const bool blank = row.fields.size() == 1 && row.fields.front().empty();
      if (!blank) {
        rows.push_back(std::move(row));
      }
    }
    return rows;
  }
  std::vector<Diagnostic> faults() { return std::move(faults_); }

 private:
  CsvRow next_row() {
    CsvRow row{line_, {}};
    do {
      row.fields.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted() : bare());
    } while (at_ < text_.size() && text_[at_] == ',' && ++at_);
    if (at_ < text_.size()) {  // the line break that ended the field
      ++at_;
      ++line_;
      if (at_ == text_.size()) {
        return row;
      }
    }
    return row;
  }

  /// Up to a comma or the end of the line; the carriage return before it does not count.
  std::string bare() {
    const std::size_t from = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') {
      ++at_;
    }
    std::string field(text_.substr(from, at_ - from));
    const bool ends_line = at_ == text_.size() || text_[at_] == '\n';
    if (ends_line && !field.empty() && field.back() == '\r') {
      field.pop_back();
    }
    if (field.find('"') != std::string::npos) {
      faults_.push_back({line_pointer(line_),
                         "a quote inside a field that does not begin with one",
                         "put the whole field in quotes, and double the quotes inside"});
    }
    return field;
  }

  std::string quoted() {
    const std::int64_t first_line = line_;
    std::string field;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] != '"') {
        line_ += text_[at_] == '\n' ? 1 : 0;
        field += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        field += text_[++at_];
      } else {
        ++at_;
        after_quote();
        return field;
      }
    }
    faults_.push_back({line_pointer(first_line), "a quoted field never ends", "close its quote"});
    return field;
  }

  /// Nothing may stand between a closing quote and the comma or the end of the line.
  void after_quote() {
    const std::size_t from = at_;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') {
      ++at_;
    }
    const std::string_view rest = text_.substr(from, at_ - from);
    if (!rest.empty() && rest != "\r") {
      faults_.push_back({line_pointer(line_),
                         "text after the closing quote of a field",
                         "double the quotes inside a field"});
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  std::vector<Diagnostic> faults_;
};

void check_header(const CsvRow& header, std::vector<Diagnostic>& faults) {
  for (std::size_t i = 0; i < header.fields.size(); ++i) {
    const std::string& name = header.fields[i];
    const auto here = header.fields.begin() + static_cast<std::ptrdiff_t>(i);
    if (name.empty()) {
      faults.push_back({line_pointer(header.line),
                        "column " + std::to_string(i + 1) + " has no name",
                        "name every column in the first line"});
    } else if (std::find(header.fields.begin(), here, name) != here) {
      faults.push_back({line_pointer(header.line), "column \"" + name + "\" stands twice", ""});
    }
  }
}

}  // namespace

Expected<CsvTable> parse_csv(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  CsvReader reader(text);
  CsvTable table;
  table.rows = reader.rows();
  std::vector<Diagnostic> faults = reader.faults();
  if (table.rows.empty()) {
    return refuse({"", "the table is empty", "its first line names the columns"});
  }
  check_header(table.rows.front(), faults);
  table.columns = std::move(table.rows.front().fields);
  table.rows.erase(table.rows.begin());
  for (const CsvRow& row : table.rows) {
    if (row.fields.size() != table.columns.size()) {
      const auto count = static_cast<std::int64_t>(row.fields.size());
      faults.push_back({line_pointer(row.line),
                        std::to_string(count) + " " + plural("field", count) + ", the header has " +
                            std::to_string(table.columns.size()),
                        "a field that holds a comma goes in quotes"});
    }
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return table;
}

}  // namespace foretrain
