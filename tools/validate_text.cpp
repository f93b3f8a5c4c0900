#include "tools/validate_output.h"

#include "sim/base/format.h"
#include "sim/base/wrapped.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace foretrain {
namespace {

constexpr int kLabel = 17;

std::string signed_percent(double fraction) {
  return (fraction < 0 ? "" : "+") + percent(fraction);
}

std::string seconds_text_of(double time_s) {
  return fixed(time_s, time_s < 1 ? 4 : time_s < 100 ? 3 : 1) + " s";
}

std::string count_of(const std::string& noun, std::int64_t count) {
  return with_commas(count) + " " + plural(noun, count);
}

std::string dotted(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " · ") + word;
  }
  return text;
}

std::string line(const std::string& label, const std::string& text, int width) {
  return wrapped(pad(label, kLabel), text, kLabel, width);
}

std::string error_words(const ErrorScore& score) {
  return percent(score.mape) + ", median " + percent(score.median_ape) + ", bias " +
         signed_percent(score.bias);
}

std::string rank_words(const RankScore& rank) {
  return "tau " + (rank.kendall_tau ? fixed(*rank.kendall_tau, 2) : "-") + ", regret " +
         (rank.mean_regret ? percent(*rank.mean_regret) : "-");
}

std::string summary(const std::string& table, const ValidationResult& result, int width) {
  std::string text = table + ": " + count_of("row", static_cast<std::int64_t>(result.rows.size())) +
                     " · " + with_commas(result.simulated) + " simulated, " +
                     with_commas(result.skipped()) + " skipped\n\n";
  if (result.overall.n > 0) {
    text += line("error of a step",
                 error_words(result.overall) + " (" + count_of("step", result.overall.n) + ")",
                 width);
    text += line("mean of sources",
                 error_words(result.source_averaged) + " (" +
                     count_of("source", result.source_averaged.n) + ")",
                 width);
  }
  if (result.nothing_assumed.n > 0) {
    text += line("nothing assumed",
                 error_words(result.nothing_assumed) + " (" +
                     count_of("step", result.nothing_assumed.n) + ")",
                 width);
  }
  if (result.rank.sweeps > 0) {
    text += line("order of layouts",
                 rank_words(result.rank) + " (" + count_of("sweep", result.rank.sweeps) + ")",
                 width);
  }
  if (const auto& memory = result.memory) {
    text +=
        line("memory",
             percent(static_cast<double>(memory->right) / static_cast<double>(memory->n)) + " of " +
                 count_of("verdict", memory->n) + " right · " + with_commas(memory->false_fit) +
                 " said to fit that ran out · " + with_commas(memory->false_oom) +
                 " said not to fit that ran · " + with_commas(memory->borderline) + " borderline",
             width);
  }
  std::string coverage = percent(result.coverage()) + " of all rows";
  if (result.complete > 0) {
    coverage += ", " + percent(result.coverage_of_complete()) + " of the " +
                with_commas(result.complete) + " that publish layout, batch and step";
  }
  return text + line("simulated", coverage, width);
}

struct TextCell {
  std::string heading;
  int width;
  bool right;
};
constexpr int kErrorColumn = 8;
const std::vector<TextCell>& group_columns() {
  static const std::vector<TextCell> kPageColumns = {{"source", 20, false},
                                                     {"GPU", 12, false},
                                                     {"precision", 11, false},
                                                     {"n", 4, true},
                                                     {"MAPE", kErrorColumn, true},
                                                     {"median", kErrorColumn, true},
                                                     {"bias", kErrorColumn, true},
                                                     {"tau", 6, true},
                                                     {"regret", kErrorColumn, true}};
  return kPageColumns;
}

std::string table_row(const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const TextCell& column = group_columns()[i];
    text += (i == 0 ? "" : " ") + pad(cells[i], column.width, column.right);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

/// A source's own name may be a sentence.
std::string clipped(const std::string& text, int width) {
  std::string cut = text;
  while (display_width(cut) > width) {
    cut.pop_back();
    while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xC0U) == 0x80U) {
      cut.pop_back();
    }
  }
  return cut;
}

std::string groups(const ValidationResult& result) {
  if (result.groups.empty()) {
    return "";
  }
  std::vector<std::string> headings;
  for (const TextCell& column : group_columns()) {
    headings.push_back(column.heading);
  }
  std::string text = "\n" + table_row(headings);
  std::string above;
  for (const ValidationGroup& group : result.groups) {
    const RankScore& rank = group.rank;
    text += table_row({group.source == above ? "" : clipped(group.source, 20),
                       clipped(group.gpu, 12),
                       clipped(group.dtype, 11),
                       with_commas(group.error.n),
                       percent(group.error.mape),
                       percent(group.error.median_ape),
                       signed_percent(group.error.bias),
                       rank.kendall_tau ? fixed(*rank.kendall_tau, 2) : "-",
                       rank.mean_regret ? percent(*rank.mean_regret) : "-"});
    above = group.source;
  }
  return text;
}

/// The layout and what is assumed stand below the last of neighbours that share them.
std::string worst(const ValidationResult& result, int width) {
  constexpr int kMargin = 13;
  if (result.worst.empty()) {
    return "";
  }
  std::string text = "\nfurthest off\n";
  for (std::size_t i = 0; i < result.worst.size(); ++i) {
    const ValidatedRow& row = result.rows[result.worst[i].row];
    std::string terms;
    for (const StepTerm& term : result.worst[i].terms) {
      terms += " · " + term.part + " " + percent(term.share, 0);
    }
    text += wrapped("  " + pad(signed_percent(*row.error()), 9, true) + "  ",
                    row.id + ": " + seconds_text_of(*row.simulated_s) + " for " +
                        seconds_text_of(*row.measured_s) + terms,
                    kMargin,
                    width);
    const ValidatedRow* const next =
        i + 1 < result.worst.size() ? &result.rows[result.worst[i + 1].row] : nullptr;
    if (next != nullptr && next->layout == row.layout && next->assumed == row.assumed) {
      continue;
    }
    const std::string margin(kMargin, ' ');
    text += wrapped(margin, row.layout, kMargin, width);
    if (!row.assumed.empty()) {
      text += wrapped(margin + "assumed ", dotted(row.assumed), kMargin, width);
    }
  }
  return text;
}

/// The details of a reason, the most frequent first.
std::string details_of(SkipReason reason, const ValidationResult& result) {
  constexpr std::size_t kShown = 3;
  std::map<std::string, std::int64_t> counts;
  for (const ValidatedRow& row : result.rows) {
    if (row.skipped == reason) {
      ++counts[row.detail];
    }
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second > b.second;
  });
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(sorted.size(), kShown); ++i) {
    words.push_back(sorted[i].first +
                    (sorted.size() > 1 ? " (" + with_commas(sorted[i].second) + ")" : ""));
  }
  return dotted(words) + (sorted.size() > kShown ? " · ..." : "");
}

std::string reasons(const ValidationResult& result, int width) {
  if (result.reasons.empty()) {
    return "";
  }
  std::string text = "\nskipped\n";
  for (const SkipCount& count : result.reasons) {
    text += wrapped("  " + pad(with_commas(count.rows), 5, true) + "  ",
                    std::string(to_string(count.reason)) + ": " + details_of(count.reason, result),
                    9,
                    width);
  }
  return text;
}

}  // namespace

std::string validation_text(const std::string& table, const ValidationResult& result, int width) {
  return summary(table, result, width) + groups(result) + worst(result, width) +
         reasons(result, width);
}

}  // namespace foretrain
