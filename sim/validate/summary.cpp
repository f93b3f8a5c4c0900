#include "sim/validate/summary.h"

#include "sim/validate/rank_score.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace foretrain {
namespace {

using RowList = std::vector<const ValidatedRow*>;

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole);
}

RowList scored_rows(const ValidationResult& result) {
  RowList rows;
  for (const ValidatedRow& row : result.rows) {
    if (row.error()) {
      rows.push_back(&row);
    }
  }
  return rows;
}

void score_groups(const RowList& scored, ValidationResult& result) {
  std::map<std::tuple<std::string, std::string, std::string>, RowList> groups;
  std::map<std::string, RowList> sources;
  for (const ValidatedRow* row : scored) {
    groups[{row->source, row->gpu, row->dtype}].push_back(row);
    sources[row->source].push_back(row);
  }
  for (const auto& [key, rows] : groups) {
    const auto& [source, gpu, dtype] = key;
    result.groups.push_back({source, gpu, dtype, error_score(rows), rank_score(rows)});
  }
  ErrorScore& averaged = result.source_averaged;
  for (const auto& [source, rows] : sources) {
    result.sources.push_back({source, error_score(rows), rank_score(rows)});
    const ErrorScore& score = result.sources.back().error;
    averaged.mape += score.mape;
    averaged.median_ape += score.median_ape;
    averaged.bias += score.bias;
  }
  averaged.n = static_cast<std::int64_t>(sources.size());
  if (averaged.n > 0) {
    const auto count = static_cast<double>(averaged.n);
    averaged.mape /= count;
    averaged.median_ape /= count;
    averaged.bias /= count;
  }
}

void pick_worst(int worst, ValidationResult& result) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    if (result.rows[i].error()) {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::fabs(*result.rows[a].error()) > std::fabs(*result.rows[b].error());
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(std::max(worst, 0))));
  for (const std::size_t row : order) {
    result.worst.push_back({row, {}});
  }
}

void count_reasons(ValidationResult& result) {
  std::array<std::int64_t, kSkipReasons> counts{};
  for (const ValidatedRow& row : result.rows) {
    if (row.skipped) {
      ++counts[static_cast<std::size_t>(*row.skipped)];
    }
  }
  for (int reason = 0; reason < kSkipReasons; ++reason) {
    const std::int64_t rows = counts[static_cast<std::size_t>(reason)];
    if (rows > 0) {
      result.reasons.push_back({static_cast<SkipReason>(reason), rows});
    }
  }
  std::stable_sort(result.reasons.begin(),
                   result.reasons.end(),
                   [](const SkipCount& a, const SkipCount& b) { return a.rows > b.rows; });
}

void score_memory(ValidationResult& result) {
  for (const ValidatedRow& row : result.rows) {
    if (!row.fits_label || !row.simulated_s) {
      continue;
    }
    MemoryScore& score = result.memory ? *result.memory : result.memory.emplace();
    const bool fits = row.fits != Fit::kNo;
    ++score.n;
    score.right += fits == *row.fits_label ? 1 : 0;
    score.false_fit += fits && !*row.fits_label ? 1 : 0;
    score.false_oom += !fits && *row.fits_label ? 1 : 0;
    score.borderline += row.fits == Fit::kBorderline ? 1 : 0;
  }
}

}  // namespace

std::optional<double> ValidatedRow::error() const {
  return measured_s && simulated_s ? std::optional(*simulated_s / *measured_s - 1) : std::nullopt;
}

double ValidationResult::coverage() const {
  return share(simulated, static_cast<std::int64_t>(rows.size()));
}

double ValidationResult::coverage_of_complete() const {
  return share(complete_simulated, complete);
}

void summarise(int worst, ValidationResult& result) {
  RowList unassumed;
  const RowList scored = scored_rows(result);
  for (const ValidatedRow* row : scored) {
    if (row->assumed.empty()) {
      unassumed.push_back(row);
    }
  }
  for (const ValidatedRow& row : result.rows) {
    result.simulated += row.simulated_s ? 1 : 0;
    result.complete += row.complete ? 1 : 0;
    result.complete_simulated += row.complete && row.simulated_s ? 1 : 0;
  }
  result.overall = error_score(scored);
  result.nothing_assumed = error_score(unassumed);
  result.rank = rank_score(scored);
  score_groups(scored, result);
  pick_worst(worst, result);
  count_reasons(result);
  score_memory(result);
}

}  // namespace foretrain
