#include "sim/validate/published_row.h"

#include "sim/base/edit_distance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace foretrain {
namespace {

struct TextColumn {
  std::string_view name;
  std::string PublishedRow::*member;
};
constexpr TextColumn kTexts[] = {
    {"id", &PublishedRow::id},
    {"split", &PublishedRow::split},
    {"source", &PublishedRow::source},
    {"source_detail", &PublishedRow::source_detail},
    {"model", &PublishedRow::model},
    {"gpu", &PublishedRow::gpu},
    {"internode_bw_note", &PublishedRow::internode_bw_note},
    {"dtype", &PublishedRow::dtype},
    {"sharding", &PublishedRow::sharding},
    {"recompute", &PublishedRow::recompute},
    {"schedule", &PublishedRow::schedule},
    {"overlap_note", &PublishedRow::overlap_note},
    {"kernel", &PublishedRow::kernel},
    {"measured_metric", &PublishedRow::measured_metric},
    {"unit", &PublishedRow::unit},
    {"notes", &PublishedRow::notes},
};

struct CountColumn {
  std::string_view name;
  std::optional<std::int64_t> PublishedRow::*member;
  std::int64_t least = 1;
};
constexpr CountColumn kCounts[] = {
    {"layers", &PublishedRow::layers},
    {"hidden", &PublishedRow::hidden},
    {"heads", &PublishedRow::heads},
    {"kv_heads", &PublishedRow::kv_heads},
    {"ffn", &PublishedRow::ffn},
    {"vocab", &PublishedRow::vocab},
    {"seq", &PublishedRow::seq},
    {"experts", &PublishedRow::experts},
    {"topk", &PublishedRow::topk},
    {"gpus", &PublishedRow::gpus},
    {"gpus_per_node", &PublishedRow::gpus_per_node},
    {"tp", &PublishedRow::tp},
    {"cp", &PublishedRow::cp},
    {"pp", &PublishedRow::pp},
    {"vpp", &PublishedRow::vpp},
    {"ep", &PublishedRow::ep},
    {"dp", &PublishedRow::dp},
    {"sp", &PublishedRow::sp, 0},
    {"mbs", &PublishedRow::mbs},
    {"gbs", &PublishedRow::gbs},
};

struct NumberColumn {
  std::string_view name;
  std::optional<double> PublishedRow::*member;
};
constexpr NumberColumn kNumbers[] = {
    {"params_b", &PublishedRow::params_b},
    {"measured_value", &PublishedRow::measured_value},
    {"step_time_s", &PublishedRow::step_time_s},
    {"mfu", &PublishedRow::mfu},
};

constexpr std::string_view kRequired[] = {
    "id", "model", "layers", "hidden", "seq", "gpu", "gpus", "tp", "pp", "gbs"};
constexpr std::string_view kFits = "fits";

/// Integers are at most 2^53.
constexpr std::int64_t kMostCount = std::int64_t{1} << 53;

std::vector<std::string> known_columns() {
  std::vector<std::string> names{std::string(kFits)};
  for (const TextColumn& column : kTexts) {
    names.emplace_back(column.name);
  }
  for (const CountColumn& column : kCounts) {
    names.emplace_back(column.name);
  }
  for (const NumberColumn& column : kNumbers) {
    names.emplace_back(column.name);
  }
  return names;
}

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A column that is needed and absent, and one that a known name was likely meant by.
void check_columns(const CsvTable& table, std::vector<Diagnostic>& faults) {
  const std::vector<std::string> known = known_columns();
  std::vector<std::string> absent;
  for (const std::string& name : known) {
    if (!holds(table.columns, name)) {
      absent.push_back(name);
    }
  }
  for (const std::string& column : table.columns) {
    const std::string near = holds(known, column) ? "" : did_you_mean(column, absent);
    if (!near.empty()) {
      faults.push_back({"/1/" + column, "unknown column \"" + column + "\"", near});
    }
  }
  for (const std::string_view name : kRequired) {
    if (!holds(table.columns, name)) {
      faults.push_back({"/1",
                        "column \"" + std::string(name) + "\" is missing",
                        "scenarios/published/README.md lists the columns"});
    }
  }
}

/// Reads the fields of one row.
class RowReader {
 public:
  RowReader(const CsvTable& table, const CsvRow& row, std::vector<Diagnostic>& faults)
      : table_(table), row_(row), faults_(faults) {}

  std::string text(std::string_view column) const {
    const auto found = std::find(table_.columns.begin(), table_.columns.end(), column);
    return found == table_.columns.end()
               ? ""
               : row_.fields[static_cast<std::size_t>(found - table_.columns.begin())];
  }

  std::optional<std::int64_t> count(const CountColumn& column) {
    return number<std::int64_t>(
        column.name,
        "a whole number from " + std::to_string(column.least) + " to 2^53",
        [&column](std::int64_t value) { return value >= column.least && value <= kMostCount; });
  }

  std::optional<double> positive(std::string_view column) {
    return number<double>(column, "a positive number", [](double value) {
      return std::isfinite(value) && value > 0;
    });
  }

  std::optional<bool> yes_or_no(std::string_view column) {
    const std::string word = text(column);
    if (!word.empty() && word != "yes" && word != "no") {
      fault(column, word, "yes or no");
    }
    return word.empty() ? std::nullopt : std::optional(word == "yes");
  }

  void fault(std::string_view column, const std::string& field, const std::string& must_be) {
    faults_.push_back(
        {"/" + std::to_string(row_.line) + "/" + std::string(column),
         (field.empty() ? "is empty" : "\"" + field + "\" in line " + std::to_string(row_.line)) +
             "; must be " + must_be,
         ""});
  }

 private:
  template <typename Number, typename Good>
  std::optional<Number> number(std::string_view column,
                               const std::string& must_be,
                               const Good& good) {
    const std::string field = text(column);
    if (field.empty()) {
      return std::nullopt;
    }
    Number value{};
    const char* const end = field.data() + field.size();
    const auto [last, error] = std::from_chars(field.data(), end, value);
    if (error != std::errc{} || last != end || !good(value)) {
      fault(column, field, must_be);
      return std::nullopt;
    }
    return value;
  }

  const CsvTable& table_;
  const CsvRow& row_;
  std::vector<Diagnostic>& faults_;
};

}  // namespace

Expected<std::vector<PublishedRow>> published_rows(const CsvTable& table) {
  std::vector<Diagnostic> faults;
  check_columns(table, faults);
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  std::vector<PublishedRow> rows;
  std::map<std::string, std::int64_t> lines;
  for (const CsvRow& fields : table.rows) {
    RowReader reader(table, fields, faults);
    PublishedRow row;
    row.line = fields.line;
    for (const TextColumn& column : kTexts) {
      row.*column.member = reader.text(column.name);
    }
    for (const CountColumn& column : kCounts) {
      row.*column.member = reader.count(column);
    }
    for (const NumberColumn& column : kNumbers) {
      row.*column.member = reader.positive(column.name);
    }
    row.fits = reader.yes_or_no(kFits);
    const auto [first, fresh] = lines.emplace(row.id, row.line);
    if (row.id.empty()) {
      reader.fault("id", "", "a name of the row");
    } else if (!fresh) {
      reader.fault("id", row.id, "another than in line " + std::to_string(first->second));
    }
    rows.push_back(std::move(row));
  }
  if (!faults.empty()) {
    return refuse(std::move(faults));
  }
  return rows;
}

}  // namespace foretrain
