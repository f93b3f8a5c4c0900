#pragma once

#include "foretrain/diagnostic.h"
#include "foretrain/report.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// A table of published training steps, each simulated or skipped with a reason, and the error.
namespace foretrain {

/// Why a row is not simulated; numbers and names stand in its detail.
enum class SkipReason {
  kNoMeasurement,
  kIncomplete,
  kIllegal,
  kHardware,
  kModel,
  kPrecision,
  kSchedule,
  kParallelism,
};
inline constexpr int kSkipReasons = 8;
std::string_view to_string(SkipReason reason);

/// A part of a simulated step.
struct StepTerm {
  std::string part;  ///< as people read it, e.g. "tensor comm"
  double time_s = 0, share = 0;
};

struct ValidatedRow {
  std::string id, split;
  std::string source;      ///< a short name for a source that is known, else as the table has it
  std::string gpu, dtype;  ///< as simulated, e.g. "H100", "fp8 delayed"
  bool complete = false;   ///< layers, hidden size, GPUs, degrees, batch and a measured step
  std::optional<double> measured_s;   ///< step, as published or derived (MODEL: validation)
  std::optional<double> simulated_s;  ///< nothing: skipped
  std::optional<SkipReason> skipped;
  std::string detail;                ///< of the skip
  std::vector<std::string> assumed;  ///< what the table leaves out and a rule supplies
  std::optional<bool> fits_label;    ///< the table's verdict on memory
  Fit fits = Fit::kYes;              ///< ours; borderline is a yes
  std::int64_t memory_peak = 0, memory_capacity = 0;  ///< bytes, of the heaviest stage; of a GPU
  std::string sweep;                                  ///< rows of one sweep differ in layout only
  std::string layout;  ///< degrees, batch, sharding, schedule and recomputation in words

  /// simulated / measured - 1, where both are known.
  std::optional<double> error() const;
};

/// How far off, over rows with an error. Fractions, not percent.
struct ErrorScore {
  std::int64_t n = 0;
  double mape = 0;        ///< mean of |error|
  double median_ape = 0;  ///< median of |error|
  double bias = 0;        ///< mean error, signed
};

/// How well layouts are ordered. A sweep: at least three rows of one source with the same model,
/// GPUs, sequence, batch, precision and software, and more than one layout. Nothing where there is
/// none.
struct RankScore {
  std::int64_t sweeps = 0;
  std::optional<double> kendall_tau;  ///< tau-b of step times, mean over sweeps weighted by pairs
  /// Measured step of the row simulated fastest over the fastest measured one, less 1; mean over
  /// sweeps.
  std::optional<double> mean_regret;
};

/// Rows of one source, GPU and precision.
struct ValidationGroup {
  std::string source, gpu, dtype;
  ErrorScore error;
  RankScore rank;
};

/// A source's rows, whatever the GPU and precision.
struct SourceScore {
  std::string source;
  ErrorScore error;
  RankScore rank;
};

/// A row far off, with the largest parts of its simulated step.
struct WorstRow {
  std::size_t row = 0;  ///< index into rows
  std::vector<StepTerm> terms;
};

/// Verdicts on memory against the table's. Right: the point estimate agrees with the label.
struct MemoryScore {
  std::int64_t n = 0, right = 0;
  std::int64_t false_fit = 0;   ///< we say it fits, it ran out of memory
  std::int64_t false_oom = 0;   ///< we say it does not, it ran
  std::int64_t borderline = 0;  ///< fits, but the allocator may need more than is left
};

struct SkipCount {
  SkipReason reason = SkipReason::kIncomplete;
  std::int64_t rows = 0;
};

struct ValidationResult {
  std::vector<ValidatedRow> rows;  ///< in the table's order
  std::vector<ValidationGroup> groups;
  std::vector<SourceScore> sources;
  ErrorScore overall;
  ErrorScore source_averaged;      ///< n: sources; mape, median and bias: means of theirs
  ErrorScore nothing_assumed;      ///< rows in which no rule supplied anything
  RankScore rank;                  ///< over all sweeps
  std::vector<WorstRow> worst;     ///< largest |error| first
  std::vector<SkipCount> reasons;  ///< those that occur, most rows first
  std::optional<MemoryScore> memory;
  std::int64_t simulated = 0;
  std::int64_t complete = 0, complete_simulated = 0;

  std::int64_t skipped() const { return static_cast<std::int64_t>(rows.size()) - simulated; }
  /// Shares of rows that are simulated: of all, and of the complete ones. 1 of none.
  double coverage() const;
  double coverage_of_complete() const;
};

struct ValidateOptions {
  std::string split;  ///< only rows of this split; empty: all
  int threads = 0;    ///< 0: all cores; never changes the result
  int worst = 10;
  /// Called, where set, from one thread at a time as rows end.
  std::function<void(int done, int total)> progress;
};

/// `name_or_path`: a table of scenarios/published/ by its name, or a path. The columns are those of
/// scenarios/published/README.md; one that is absent counts as published nowhere. Faults: the
/// table's (pointer /LINE/COLUMN), all at once; a split that no row has; kFile.
Expected<ValidationResult> validate_table(const std::string& name_or_path,
                                          const ValidateOptions& options = {});

/// The same of a table's text.
Expected<ValidationResult> validate_text(const std::string& csv, const ValidateOptions& options);

/// Names of the tables in scenarios/published/.
std::vector<std::string> published_tables();

}  // namespace foretrain
