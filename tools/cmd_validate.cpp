#include "tools/commands.h"
#include "tools/output.h"
#include "tools/progress_line.h"
#include "tools/validate_output.h"

#include "foretrain/validate.h"

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace foretrain {
namespace {

struct ValidateLine {
  std::string table, split, json;
  int threads = 0;
};

void add_options(CLI::App& app, ValidateLine& line) {
  std::string names;
  for (const std::string& name : published_tables()) {
    names += (names.empty() ? "" : ", ") + name;
  }
  app.add_option("table",
                 line.table,
                 "path of a CSV file, or a table by name" + (names.empty() ? "" : ": " + names))
      ->type_name("CSV")
      ->required()
      ->check(not_empty());
  app.add_option("--split", line.split, "only rows of this split; all rows otherwise")
      ->type_name("NAME")
      ->check(not_empty());
  app.add_option("--threads", line.threads, "0: one per core; never changes the result")
      ->check(whole_number(0, 1024));
  add_json_option(app, line.json);
}

/// The line of progress is gone before anything is printed.
Expected<ValidationResult> validate_with_progress(const ValidateLine& line) {
  ProgressLine progress;
  ValidateOptions options;
  options.split = line.split;
  options.threads = line.threads;
  options.progress = [&progress](int done, int total) { progress.tell(done, total); };
  return validate_table(line.table, options);
}

}  // namespace

int cmd_validate(int argc, char** argv) {
  CLI::App app{"Simulates every row of a table of published steps; the error by source."};
  ValidateLine line;
  add_options(app, line);
  if (const std::optional<int> over = parse_options(app, argc, argv)) {
    return *over;
  }
  if (const std::optional<int> over =
          refuse_overwriting("validate", {{"json", line.json}}, {line.table})) {
    return *over;
  }
  const Expected<ValidationResult> result = validate_with_progress(line);
  if (!result) {
    return report_faults(result.error(), line.table, line.json);
  }
  if (!line.json.empty()) {
    const int status = write_json(line.json, validation_json(*result));
    if (status != kExitDone || line.json == "-") {
      return status;
    }
  }
  return write_output("-", validation_text(line.table, *result, page_width()));
}

}  // namespace foretrain
