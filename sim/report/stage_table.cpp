#include "sim/base/format.h"
#include "sim/report/text_tables.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace foretrain {
namespace {

/// A longer table is cut to the stages that stand out, the others merged between them.
constexpr std::size_t kMostRows = 12;

/// A figure as printed and as compared.
struct Cell {
  double value = 0;
  std::string text;
};

struct Column {
  const char* title;
  Cell (*cell)(const StageReport& stage, Duration step);
  int dropped;  ///< 1: the first to go where the width is short; 0: never
};

Cell bytes_cell(std::int64_t bytes) {
  return {static_cast<double>(bytes), gigabytes(bytes)};
}

constexpr std::array<Column, 10> kColumns = {{
    {"layers",
     [](const StageReport& stage, Duration) {
       return Cell{static_cast<double>(stage.layers), std::to_string(stage.layers)};
     },
     4},
    {"busy",
     [](const StageReport& stage, Duration) {
       return Cell{seconds(stage.busy), human_time(stage.busy)};
     },
     0},
    {"idle",
     [](const StageReport& stage, Duration step) {
       const double share = step.count() > 0 ? seconds(stage.idle) / seconds(step) : 0.0;
       return Cell{share, percent(share, 0)};
     },
     0},
    {"in flight",
     [](const StageReport& stage, Duration) {
       return Cell{static_cast<double>(stage.in_flight_peak), std::to_string(stage.in_flight_peak)};
     },
     0},
    {"weights",
     [](const StageReport& stage, Duration) { return bytes_cell(stage.memory.weights); },
     3},
    {"grads",
     [](const StageReport& stage, Duration) { return bytes_cell(stage.memory.gradients); },
     2},
    {"optim",
     [](const StageReport& stage, Duration) { return bytes_cell(stage.memory.optimizer); },
     2},
    {"activ",
     [](const StageReport& stage, Duration) { return bytes_cell(stage.memory.activations); },
     3},
    {"other",
     [](const StageReport& stage, Duration) {
       return bytes_cell(stage.memory.logits + stage.memory.buffers);
     },
     1},
    {"peak GB",
     [](const StageReport& stage, Duration) { return bytes_cell(stage.memory.peak); },
     0},
}};
constexpr int kLastDropped = 4;
constexpr std::size_t kBusy = 1;

/// Consecutive stages on one line: per column the least and the greatest.
struct Row {
  std::size_t first = 0, last = 0;
  std::array<std::pair<Cell, Cell>, kColumns.size()> cells;
  bool slowest = false, most_memory = false;
};

Row row_of(const StageReport& stage, std::size_t index, Duration step) {
  Row row;
  row.first = row.last = index;
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    const Cell cell = kColumns[i].cell(stage, step);
    row.cells[i] = {cell, cell};
  }
  return row;
}

void merge(Row& row, const Row& next) {
  row.last = next.last;
  row.most_memory = row.most_memory || next.most_memory;
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    auto& [least, greatest] = row.cells[i];
    if (next.cells[i].first.value < least.value) {
      least = next.cells[i].first;
    }
    if (next.cells[i].second.value > greatest.value) {
      greatest = next.cells[i].second;
    }
  }
}

/// "36.9-49.7", "81.6-86.8 s"; one figure when both print alike.
std::string range_text(const std::pair<Cell, Cell>& range) {
  const std::string& least = range.first.text;
  const std::string& greatest = range.second.text;
  if (least == greatest) {
    return least;
  }
  const std::size_t unit = least.find(' ');
  const bool same_unit = unit != std::string::npos && greatest.ends_with(least.substr(unit));
  return (same_unit ? least.substr(0, unit) : least) + "-" + greatest;
}

bool prints_alike(const Row& a, const Row& b) {
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    if (range_text(a.cells[i]) != range_text(b.cells[i])) {
      return false;
    }
  }
  return true;
}

/// Marks the slowest row, unless another prints as slow.
void mark_slowest(std::vector<Row>& rows) {
  const auto slowest = std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.cells[kBusy].second.value < b.cells[kBusy].second.value;
  });
  const std::string& time = slowest->cells[kBusy].second.text;
  slowest->slowest = 1 == std::count_if(rows.begin(), rows.end(), [&time](const Row& row) {
                       return row.cells[kBusy].second.text == time;
                     });
}

/// Joins neighbours: those that print alike; when `all`, also those that differ, except the ends
/// and what is marked. A stage with a name keeps its line.
std::vector<Row> joined(const std::vector<Row>& rows, const StepReport& report, bool all) {
  const auto lone = [&](const Row& row) {
    const StageReport& stage = report.stages[row.first];
    return stage.embedding || stage.head ||
           (all && (row.slowest || row.most_memory || row.first == 0 ||
                    row.last + 1 == report.stages.size()));
  };
  std::vector<Row> result;
  for (const Row& row : rows) {
    const bool join = !result.empty() && !lone(row) && !lone(result.back()) &&
                      (all || prints_alike(result.back(), row));
    if (join) {
      merge(result.back(), row);
    } else {
      result.push_back(row);
    }
  }
  return result;
}

std::vector<Row> stage_rows(const StepReport& report) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    rows.push_back(row_of(report.stages[i], i, report.step_time));
    rows.back().most_memory = report.stages[i].pp_rank == report.memory_peak_stage;
  }
  if (rows.size() < 2) {
    rows[0].most_memory = false;
    return rows;
  }
  std::vector<Row> alike = joined(rows, report, false);
  mark_slowest(alike);
  return alike.size() <= kMostRows ? alike : joined(alike, report, true);
}

std::string name_of(const Row& row, const StepReport& report, int digits) {
  const StageReport& first = report.stages[row.first];
  const std::string name = pad(std::to_string(first.pp_rank), digits, true);
  if (row.last != row.first) {
    return name + " .. " + std::to_string(report.stages[row.last].pp_rank);
  }
  return name + (first.embedding && first.head ? (report.stages.size() > 1 ? " (ends)" : " (all)")
                 : first.embedding             ? " (embed)"
                 : first.head                  ? " (head)"
                                               : "");
}

std::string mark_of(const Row& row) {
  if (row.most_memory && row.slowest) {
    return " ◀ both";
  }
  return row.most_memory ? " ◀ most" : row.slowest ? " ◀ slowest" : "";
}

/// Rows of texts, the titles first; columns that `dropped` counts as gone are left out.
std::vector<std::vector<std::string>> table_of(const std::vector<Row>& rows,
                                               const StepReport& report,
                                               int dropped) {
  const int digits = 1 + static_cast<int>(std::to_string(report.stages.back().pp_rank).size());
  std::vector<std::vector<std::string>> table(rows.size() + 1);
  table[0].push_back("stages");
  for (std::size_t r = 0; r < rows.size(); ++r) {
    table[r + 1].push_back(name_of(rows[r], report, digits));
  }
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    if (kColumns[i].dropped == 0 || kColumns[i].dropped > dropped) {
      table[0].push_back(kColumns[i].title);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        table[r + 1].push_back(range_text(rows[r].cells[i]));
      }
    }
  }
  return table;
}

std::vector<int> widths_of(const std::vector<std::vector<std::string>>& table, int gap) {
  std::vector<int> widths(table[0].size());
  for (const std::vector<std::string>& line : table) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(line[i]) + (i > 0 ? gap : 0));
    }
  }
  return widths;
}

}  // namespace

std::string stage_lines(const StepReport& report, const TextStyle& style) {
  if (report.stages.empty()) {
    return "";
  }
  const std::vector<Row> rows = stage_rows(report);
  int mark = 0;
  for (const Row& row : rows) {
    mark = std::max(mark, display_width(mark_of(row)));
  }
  std::vector<std::vector<std::string>> table;
  std::vector<int> widths;
  // Wide gaps where they fit, then narrow ones, then fewer columns.
  for (int narrower = 0; narrower <= kLastDropped + 1; ++narrower) {
    table = table_of(rows, report, std::max(0, narrower - 1));
    widths = widths_of(table, narrower == 0 ? 2 : 1);
    int total = mark;
    for (const int width : widths) {
      total += width;
    }
    if (total <= style.width) {
      break;
    }
  }
  std::string text;
  for (std::size_t r = 0; r < table.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < table[r].size(); ++i) {
      line += pad(table[r][i], widths[i], i > 0);
    }
    text += (r == 0 ? paint(style, Emphasis::kTitle, line) : line + mark_of(rows[r - 1])) + "\n";
  }
  return text;
}

}  // namespace foretrain
