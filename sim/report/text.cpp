#include "foretrain/report.h"
#include "sim/base/format.h"
#include "sim/report/text_tables.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace foretrain {
namespace {

constexpr int kFactTitle = 11;  ///< "  step     "
constexpr int kFactFirst = 14;  ///< the one figure that matters

/// Three significant figures of a count: "2.66 M", "162", "15.6".
std::string human_count(double value) {
  static constexpr std::array<const char*, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  while (std::fabs(value) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  const double size = std::fabs(value);
  const bool whole = size >= 99.95 || (prefix == 0 && value == std::floor(value));
  const std::string number = fixed(value, whole ? 0 : size >= 9.995 ? 1 : 2);
  return prefix == 0 ? number : number + " " + kPrefixes[prefix];
}

/// "2.66 M tokens/s", "162 tokens/s".
std::string tokens(double per_second) {
  return human_count(per_second) + " tokens/s";
}

/// Splits a ready line at its middle dots, so that a long one can be broken there.
std::vector<std::string> split_items(const std::string& line) {
  static const std::string kDot = " · ";
  std::vector<std::string> items;
  std::size_t at = 0;
  for (std::size_t dot = line.find(kDot); dot != std::string::npos; dot = line.find(kDot, at)) {
    items.push_back(line.substr(at, dot - at));
    at = dot + kDot.size();
  }
  items.push_back(line.substr(at));
  return items;
}

/// Scenario, model and machine on a line, the layout below; run together where the first is too
/// long for one.
std::string header_lines(const StepReport& report, const TextStyle& style) {
  std::vector<std::string> items;
  for (const std::string* part : {&report.header.name,
                                  &report.header.model,
                                  &report.header.cluster,
                                  &report.header.precision}) {
    if (!part->empty()) {
      const std::vector<std::string> more = split_items(*part);
      items.insert(items.end(), more.begin(), more.end());
    }
  }
  std::string text = item_lines("", items, style);
  if (report.header.layout.empty()) {
    return text;
  }
  const std::vector<std::string> layout = split_items(report.header.layout);
  if (std::count(text.begin(), text.end(), '\n') < 2) {
    return text + item_lines("", layout, style);
  }
  items.insert(items.end(), layout.begin(), layout.end());
  return item_lines("", items, style);
}

std::string fact(const std::string& title, const std::string& first, const std::string& rest) {
  return "  " + pad(title, kFactTitle - 2) + pad(first, kFactFirst) + rest + "\n";
}

std::string mfu_line(const StepReport& report) {
  std::string rest = human_count(report.tflops_per_gpu) + " TFLOP/s per GPU of " +
                     human_count(report.peak_tflops) + " " + report.peak_precision + " (FLOPs " +
                     report.flops_convention + ", " + human_count(report.flops_per_token) +
                     "FLOP/token)";
  std::string text = fact("MFU", percent(report.mfu), rest);
  if (std::fabs(report.hfu - report.mfu) >= 0.0005) {
    text += fact("HFU", percent(report.hfu), "recomputed FLOPs counted as well");
  }
  return text;
}

std::string memory_line(const StepReport& report, const TextStyle& style) {
  const std::int64_t left = report.memory_capacity - report.memory_peak;
  std::string where = "on stage " + std::to_string(report.memory_peak_stage);
  const std::string used = gigabytes(report.memory_peak) + " GB";
  if (report.memory_capacity <= 0) {
    return fact("memory", used, where);
  }
  where = "of " + gigabytes(report.memory_capacity) + " GB, " + where;
  switch (report.fits) {
    case Fit::kYes:
      return fact("memory", used, where + "; fits, " + gigabytes(left) + " GB left");
    case Fit::kBorderline:
      return fact(
          "memory",
          used,
          where + "; borderline: the allocator may need the " + gigabytes(left) + " GB left");
    case Fit::kNo:
      return fact("memory",
                  used,
                  where + "; " +
                      paint(style,
                            Emphasis::kBad,
                            left < 0 ? "does not fit, " + gigabytes(-left) + " GB too much"
                                     : "does not fit beside the GPU's own context"));
  }
  return "";
}

std::string fact_lines(const StepReport& report, const TextStyle& style) {
  std::string text =
      fact("step",
           human_time(report.step_time),
           pad(tokens(report.tokens_per_s), 21) + tokens(report.tokens_per_s_per_gpu) + " per GPU");
  text += mfu_line(report);
  text += memory_line(report, style);
  text += fact("alone", human_time(report.isolated_step), "one step from a cold start to its end");
  return text;
}

std::string seconds_text(double value) {
  return human_time(Duration{static_cast<std::int64_t>(std::llround(value * 1e12))});
}

std::string steps_line(const StepReport& report, const TextStyle& style) {
  const StepStatistics& steps = report.steps;
  if (steps.n <= 1) {
    return "";
  }
  return item_lines("steps",
                    {with_commas(steps.n) + ": mean " + seconds_text(steps.mean_s),
                     "spread " + seconds_text(steps.stddev_s),
                     "p5 " + seconds_text(steps.p5_s),
                     "median " + seconds_text(steps.p50_s),
                     "p95 " + seconds_text(steps.p95_s),
                     "p99 " + seconds_text(steps.p99_s),
                     "longest " + seconds_text(steps.max_s)},
                    style);
}

std::string critical_path_line(const StepReport& report, const TextStyle& style) {
  std::vector<std::string> items;
  for (const PathShare& part : report.critical_path) {
    items.push_back(part.kind + " " + human_time(part.time) + " (" + percent(part.share) + ")");
  }
  return item_lines("longest path", items, style);
}

std::string simulated_line(const StepReport& report, const TextStyle& style) {
  const SimulationFacts& facts = report.simulation;
  const bool all = facts.ranks_simulated == facts.ranks_total;
  const std::string some =
      facts.ranks_simulated == 1 ? " ranks stands for all" : " ranks stand for all";
  std::vector<std::string> items = {facts.ranks_total == 1 ? "the only rank"
                                    : all ? "all " + with_commas(facts.ranks_total) + " ranks"
                                          : with_commas(facts.ranks_simulated) + " of " +
                                                with_commas(facts.ranks_total) + some +
                                                " (identical by symmetry)",
                                    with_commas(facts.tasks) + " " + plural("task", facts.tasks),
                                    fixed(facts.wall_s, 2) + " s"};
  if (facts.peak_rss_bytes > 0) {
    items.push_back(human_bytes(facts.peak_rss_bytes));
  }
  if (!facts.evaluator.empty()) {
    items.push_back(facts.evaluator);
  }
  items.push_back("seed " + std::to_string(facts.seed));
  items.push_back("v" + facts.version);
  return item_lines("simulated", items, style);
}

std::string deadlock_page(const StepReport& report, const TextStyle& style) {
  std::string text = header_lines(report, style) + "\n" +
                     paint(style, Emphasis::kBad, "deadlock: the step never ends") + "; " +
                     with_commas(static_cast<std::int64_t>(report.blocked.size())) +
                     (report.blocked.size() == 1 ? " task waits" : " tasks wait") + "\n";
  if (!report.deadlock_grid.empty()) {
    text += report.deadlock_grid + "\n\ntasks that wait, by rank\n";
  }
  int rank = 0;
  int task = 0;
  for (const BlockedLine& line : report.blocked) {
    rank = std::max(rank, display_width(line.rank));
    task = std::max(task, display_width(line.task));
  }
  constexpr std::size_t kShown = 40;
  for (std::size_t i = 0; i < std::min(kShown, report.blocked.size()); ++i) {
    const BlockedLine& line = report.blocked[i];
    text += "  " + pad(line.rank, rank) + "  " + pad(line.task, task) + "  waits for " +
            line.waiting_for + "\n";
  }
  if (report.blocked.size() > kShown) {
    text += "  and " + with_commas(static_cast<std::int64_t>(report.blocked.size() - kShown)) +
            " more (all in --json)\n";
  }
  return text;
}

/// A section after an empty line, or nothing.
std::string section(const std::string& lines) {
  return lines.empty() ? "" : "\n" + lines;
}

}  // namespace

std::string report_text(const StepReport& report, const TextStyle& style) {
  const std::string footer = item_lines("notes", report.notes, style) +
                             item_lines("assumed", report.assumed, style) +
                             simulated_line(report, style);
  if (report.deadlock) {
    return deadlock_page(report, style) + section(footer);
  }
  return header_lines(report, style) + "\n" + fact_lines(report, style) +
         section(breakdown_lines(report, style)) + section(stage_lines(report, style)) +
         section(network_lines(report, style)) + section(link_lines(report, style)) +
         section(straggler_lines(report, style)) + "\n" + critical_path_line(report, style) +
         steps_line(report, style) + footer;
}

}  // namespace foretrain
