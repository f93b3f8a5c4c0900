#include "foretrain/validate.h"

#include "sim/base/data_directory.h"
#include "sim/base/edit_distance.h"
#include "sim/scenario/json_value.h"
#include "sim/search/parallel.h"
#include "sim/validate/csv.h"
#include "sim/validate/row_run.h"
#include "sim/validate/summary.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <utility>

namespace foretrain {
namespace {

constexpr std::string_view kTables = "scenarios/published";

/// The rows of a split; faults name the splits there are.
Expected<std::vector<PublishedRow>> rows_of_split(std::vector<PublishedRow> rows,
                                                  const std::string& split) {
  if (split.empty()) {
    return rows;
  }
  std::vector<PublishedRow> chosen;
  std::vector<std::string> splits;
  for (PublishedRow& row : rows) {
    if (std::find(splits.begin(), splits.end(), row.split) == splits.end()) {
      splits.push_back(row.split);
    }
    if (row.split == split) {
      chosen.push_back(std::move(row));
    }
  }
  if (!chosen.empty()) {
    return chosen;
  }
  std::string known;
  for (const std::string& name : splits) {
    known += name.empty() ? "" : (known.empty() ? "" : ", ") + name;
  }
  return refuse({"/split",
                 "no row is of the split \"" + split + "\"",
                 known.empty() ? "the table has none; leave --split out" : "known: " + known});
}

Expected<std::string> find_table(const std::string& name_or_path) {
  if (looks_like_path(name_or_path)) {
    return name_or_path;
  }
  const std::vector<std::string> names = published_tables();
  if (std::find(names.begin(), names.end(), name_or_path) == names.end()) {
    std::string known;
    for (const std::string& name : names) {
      known += (known.empty() ? "" : ", ") + name;
    }
    const std::string near = did_you_mean(name_or_path, names);
    return refuse(
        {"",
         "unknown table \"" + name_or_path + "\"",
         (near.empty() ? "" : near + " ") + "known: " + known + "; a path has a / or .csv"});
  }
  return (data_directory() / kTables / (name_or_path + ".csv")).string();
}

ValidationResult run_rows(const std::vector<PublishedRow>& rows, const ValidateOptions& options) {
  std::mutex telling;
  int done = 0;
  const auto total = static_cast<int>(rows.size()) + options.worst;
  const auto tell = [&] {
    const std::lock_guard lock(telling);
    if (options.progress) {
      options.progress(done, total);
    }
    ++done;
  };
  const auto at = [](std::int64_t number) { return static_cast<std::size_t>(number); };
  std::vector<RowOutcome> outcomes(rows.size());
  for_each_number(options.threads, static_cast<std::int64_t>(rows.size()), [&](std::int64_t i) {
    tell();
    outcomes[at(i)] = run_row(rows[at(i)]);
  });
  ValidationResult result;
  for (RowOutcome& outcome : outcomes) {
    result.rows.push_back(std::move(outcome.row));
  }
  summarise(options.worst, result);
  const auto worst = static_cast<std::int64_t>(result.worst.size());
  for_each_number(options.threads, worst, [&](std::int64_t i) {
    tell();
    WorstRow& row = result.worst[at(i)];
    row.terms = largest_terms(*outcomes[row.row].scenario);
  });
  return result;
}

}  // namespace

std::string_view to_string(SkipReason reason) {
  constexpr std::array<std::string_view, kSkipReasons> kPhrases = {
      "no measured step time",
      "configuration incomplete",
      "illegal layout as published",
      "hardware not modelled",
      "model not simulated",
      "precision not simulated",
      "schedule not simulated",
      "parallelism not simulated",
  };
  return kPhrases[static_cast<std::size_t>(reason)];
}

std::vector<std::string> published_tables() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(data_directory() / kTables, error)) {
    if (entry.path().extension() == ".csv") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Expected<ValidationResult> validate_text(const std::string& csv, const ValidateOptions& options) {
  const Expected<CsvTable> table = parse_csv(csv);
  if (!table) {
    return tl::unexpected(table.error());
  }
  Expected<std::vector<PublishedRow>> all = published_rows(*table);
  if (!all) {
    return tl::unexpected(std::move(all.error()));
  }
  const Expected<std::vector<PublishedRow>> rows = rows_of_split(*std::move(all), options.split);
  if (!rows) {
    return tl::unexpected(rows.error());
  }
  return run_rows(*rows, options);
}

Expected<ValidationResult> validate_table(const std::string& name_or_path,
                                          const ValidateOptions& options) {
  const Expected<std::string> path = find_table(name_or_path);
  if (!path) {
    return tl::unexpected(path.error());
  }
  const Expected<std::string> text = read_text_file(*path);
  if (!text) {
    return tl::unexpected(text.error());
  }
  return validate_text(*text, options);
}

}  // namespace foretrain
