#include "sim/report/text_tables.h"

#include "sim/base/format.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace foretrain {
namespace {

double share_of(Duration part, Duration whole) {
  return whole.count() > 0 ? seconds(part) / seconds(whole) : 0.0;
}

/// All parts in the unit of the whole, three decimals, so that a column can be compared by eye.
std::string time_like(Duration part, Duration whole) {
  struct Unit {
    double picoseconds;
    const char* name;
  };
  static constexpr std::array<Unit, 4> kUnits = {
      {{1e12, " s"}, {1e9, " ms"}, {1e6, " us"}, {1e3, " ns"}}};
  for (const Unit& unit : kUnits) {
    if (static_cast<double>(whole.count()) >= 0.9995 * unit.picoseconds) {
      return fixed(static_cast<double>(part.count()) / unit.picoseconds, 3) + unit.name;
    }
  }
  return human_time(part);
}

/// What the network section knows about a part of the breakdown, in a few words.
std::string communication_note(const StepReport& report, std::string_view key) {
  for (const NetworkReport& network : report.network) {
    if (network.group != key) {
      continue;
    }
    std::string note;
    if (network.hidden.count() > 0) {
      note = "exposed of " + time_like(network.exposed + network.hidden, report.step_time);
    }
    if (network.bus_bandwidth > 0) {
      note += (note.empty() ? "" : ", ") + human_rate(network.bus_bandwidth);
    }
    return note;
  }
  return "";
}

/// One row of the stages table, as printed; stages that print alike share a row.
struct StageRow {
  std::int32_t first = 0, last = 0;
  std::vector<std::string> cells;
  bool slowest = false, most_memory = false;
};

constexpr std::array<int, 11> kStageWidths = {12, 6, 9, 7, 11, 8, 7, 7, 7, 7, 8};

std::vector<std::string> stage_cells(const StageReport& stage, Duration step) {
  const StageMemory& memory = stage.memory;
  return {std::to_string(stage.layers),
          human_time(stage.busy),
          percent(share_of(stage.idle, step), 0),
          std::to_string(stage.in_flight_peak),
          gigabytes(memory.weights),
          gigabytes(memory.gradients),
          gigabytes(memory.optimizer),
          gigabytes(memory.activations),
          gigabytes(memory.logits + memory.buffers),
          gigabytes(memory.peak)};
}

std::vector<StageRow> stage_rows(const StepReport& report) {
  std::vector<StageRow> rows;
  const StageReport* previous = nullptr;
  for (const StageReport& stage : report.stages) {
    std::vector<std::string> cells = stage_cells(stage, report.step_time);
    const bool same = previous != nullptr && rows.back().cells == cells &&
                      previous->embedding == stage.embedding && previous->head == stage.head;
    if (same) {
      rows.back().last = stage.pp_rank;
    } else {
      rows.push_back({stage.pp_rank, stage.pp_rank, std::move(cells), false, false});
    }
    previous = &stage;
  }
  return rows;
}

void mark_rows(const StepReport& report, std::vector<StageRow>& rows) {
  if (rows.size() < 2) {
    return;
  }
  const auto slowest = std::max_element(
      report.stages.begin(), report.stages.end(), [](const StageReport& a, const StageReport& b) {
        return a.busy < b.busy;
      });
  const auto busy = [](const StageRow& row) -> const std::string& { return row.cells[1]; };
  const bool all_as_busy = std::all_of(
      rows.begin(), rows.end(), [&](const StageRow& row) { return busy(row) == busy(rows[0]); });
  for (StageRow& row : rows) {
    const auto holds = [&](std::int32_t stage) { return row.first <= stage && stage <= row.last; };
    row.most_memory = holds(report.memory_peak_stage);
    row.slowest = !all_as_busy && holds(slowest->pp_rank);
  }
}

std::string row_name(const StageRow& row, const StepReport& report, int digits) {
  std::string name = pad(std::to_string(row.first), digits, true);
  if (row.last != row.first) {
    return name + " .. " + std::to_string(row.last);
  }
  for (const StageReport& stage : report.stages) {
    if (stage.pp_rank == row.first && (stage.embedding || stage.head)) {
      name += !stage.head ? " (embed)" : stage.embedding ? " (all)" : " (head)";
    }
  }
  return name;
}

std::string row_mark(const StageRow& row) {
  if (row.most_memory && row.slowest) {
    return " ◀ both";
  }
  return row.most_memory ? " ◀ most" : row.slowest ? " ◀ slowest" : "";
}

}  // namespace

std::string bar(double columns) {
  static constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<int>(std::lround(std::max(0.0, columns) * 8));
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) {
    text += "█";
  }
  return text + kEighths[static_cast<std::size_t>(eighths % 8)];
}

std::string paint(const TextStyle& style, Emphasis emphasis, const std::string& text) {
  if (!style.color || emphasis == Emphasis::kNone) {
    return text;
  }
  return (emphasis == Emphasis::kTitle ? "\x1b[1m" : "\x1b[1;31m") + text + "\x1b[0m";
}

std::string item_lines(const std::string& title,
                       const std::vector<std::string>& items,
                       const TextStyle& style,
                       const std::string& separator) {
  if (items.empty()) {
    return "";
  }
  constexpr int kTitleWidth = 13;
  const int indent = title.empty() ? 0 : kTitleWidth;
  std::string text = title.empty() ? "" : paint(style, Emphasis::kTitle, pad(title, indent));
  int column = indent;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = items[i] + (i + 1 < items.size() ? separator : "");
    const int needed = display_width(items[i]) + (i + 1 < items.size() ? 2 : 0);
    if (column > indent && column + needed > style.width) {
      text.erase(text.find_last_not_of(' ') + 1);
      text += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      column = indent;
    }
    text += item;
    column += display_width(item);
  }
  return text + "\n";
}

std::string gigabytes(std::int64_t bytes) {
  const double value = static_cast<double>(bytes) / 1e9;
  return fixed(value, bytes != 0 && value < 0.995 ? 2 : 1);
}

std::string breakdown_lines(const StepReport& report, const TextStyle& style) {
  constexpr double kFullBar = 38;
  struct Line {
    std::string head, bar, note;
  };
  std::vector<Line> lines;
  int note_column = 0;
  for (const BreakdownPart& part : breakdown_parts()) {
    const Duration time = report.breakdown.*part.member;
    if (time.count() == 0) {
      continue;
    }
    const double share = share_of(time, report.step_time);
    Line line{pad("  " + std::string(part.label), 17) +
                  pad(time_like(time, report.step_time), 11, true) + pad(percent(share), 9, true) +
                  "  ",
              bar(kFullBar * share),
              communication_note(report, part.key)};
    note_column = std::max(note_column, line.note.empty() ? 0 : display_width(line.bar));
    lines.push_back(std::move(line));
  }
  if (lines.empty()) {
    return "";
  }
  std::string text = paint(style, Emphasis::kTitle, "where the step goes") + " (mean over ranks)\n";
  for (const Line& line : lines) {
    text += line.head + (line.note.empty() ? line.bar : pad(line.bar, note_column + 2) + line.note);
    text += "\n";
  }
  return text;
}

std::string stage_lines(const StepReport& report, const TextStyle& style) {
  std::vector<StageRow> rows = stage_rows(report);
  if (rows.empty()) {
    return "";
  }
  mark_rows(report, rows);
  static const std::array<const char*, 11> kTitles = {"stages",
                                                      "layers",
                                                      "busy",
                                                      "idle",
                                                      "in flight",
                                                      "weights",
                                                      "grads",
                                                      "optim",
                                                      "activ",
                                                      "other",
                                                      "peak GB"};
  std::string title;
  for (std::size_t i = 0; i < kTitles.size(); ++i) {
    title += pad(kTitles[i], kStageWidths[i], i > 0);
  }
  std::string text = paint(style, Emphasis::kTitle, title) + "\n";
  const int digits = 1 + static_cast<int>(std::to_string(rows.back().last).size());
  for (const StageRow& row : rows) {
    text += pad(row_name(row, report, digits), kStageWidths[0]);
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      text += pad(row.cells[i], kStageWidths[i + 1], true);
    }
    text += row_mark(row) + "\n";
  }
  return text;
}

std::string network_lines(const StepReport& report, const TextStyle& style) {
  if (report.network.empty()) {
    return "";
  }
  std::string text = paint(style,
                           Emphasis::kTitle,
                           pad("network", 12) + pad("size", 6, true) + pad("exposed", 10, true) +
                               pad("hidden", 10, true) + pad("waiting", 10, true) +
                               pad("sent/rank", 11, true) + pad("bus rate", 11, true)) +
                     "  over\n";
  for (const NetworkReport& row : report.network) {
    text += pad("  " + row.group, 12) + pad(with_commas(row.size), 6, true) +
            pad(human_time(row.exposed), 10, true) + pad(human_time(row.hidden), 10, true) +
            pad(human_time(row.wait), 10, true) + pad(human_bytes(row.bytes), 11, true) +
            pad(row.bus_bandwidth > 0 ? human_rate(row.bus_bandwidth) : "-", 11, true) + "  " +
            (row.limiting_link.empty() ? (row.inside_node ? "inside a node" : "between nodes")
                                       : row.limiting_link) +
            "\n";
  }
  return text;
}

std::string straggler_lines(const StepReport& report, const TextStyle& style) {
  if (report.stragglers.empty()) {
    return "";
  }
  const Duration total = report.breakdown.straggler;
  std::string text = paint(style, Emphasis::kTitle, "stragglers cost ") + human_time(total) +
                     " of " + human_time(report.step_time) + " (" +
                     percent(share_of(total, report.step_time)) + ")\n";
  int width = 0;
  for (const StragglerCost& row : report.stragglers) {
    width = std::max(width, display_width(row.cause));
  }
  for (const StragglerCost& row : report.stragglers) {
    text += "  " + pad(row.cause, width) + pad(human_time(row.cost), 11, true) +
            pad(percent(row.share), 9, true) + "\n";
  }
  return text;
}

}  // namespace foretrain
