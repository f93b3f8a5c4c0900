#include "tools/compare_output.h"

#include "sim/base/format.h"
#include "sim/base/wrapped.h"

#include <algorithm>
#include <functional>

namespace foretrain {
namespace {

struct CompareColumn {
  std::string heading;
  std::function<std::string(const ComparedRow&)> cell;
  bool right = true;
};

std::string memory_cell(const ComparedRow& row) {
  const StepReport& report = row.simulation->report;
  return human_bytes(report.memory_peak) +
         (report.stages.size() > 1 ? " stage " + std::to_string(report.memory_peak_stage) : "");
}

/// Layers of each virtual stage, equal neighbours counted: "7 + 14x8 + 7".
std::string split_text(const std::vector<std::int64_t>& layers) {
  std::string text;
  for (std::size_t at = 0; at < layers.size();) {
    std::size_t end = at;
    while (end < layers.size() && layers[end] == layers[at]) {
      ++end;
    }
    text += (text.empty() ? "" : " + ") + (end - at > 1 ? std::to_string(end - at) + "x" : "") +
            std::to_string(layers[at]);
    at = end;
  }
  return text;
}

/// The splits that were chosen and are not the scenario's own.
std::string chosen_splits(const std::vector<ComparedRow>& rows) {
  std::string text;
  for (const ComparedRow& row : rows) {
    const bool stated =
        std::any_of(row.settings.begin(), row.settings.end(), [](const std::string& setting) {
          return setting.starts_with("parallelism.layers_per_stage=");
        });
    if (row.scenario && stated) {
      text += (text.empty() ? "" : " · ") + row.label + " " +
              split_text(row.scenario->parallelism.layers_per_stage);
    }
  }
  return text;
}

std::vector<CompareColumn> columns_of() {
  const auto of = [](auto figure) {
    return [figure](const ComparedRow& row) { return figure(row.simulation->report); };
  };
  std::vector<CompareColumn> columns = {
      {"step", of([](const StepReport& r) { return human_time(r.step_time); })},
      {"MFU", of([](const StepReport& r) { return percent(r.mfu); })},
      {"bubble", of([](const StepReport& r) { return percent(figures_of(r).bubble_share); })},
      {"span",
       [](const ComparedRow& row) { return row.span_share ? percent(*row.span_share) : "-"; }},
      {"exposed comm",
       of([](const StepReport& r) { return human_time(figures_of(r).exposed_comm); })},
      {"peak memory", memory_cell, false},
      {"fits", of([](const StepReport& r) { return std::string(to_string(r.fits)); }), false}};
  return columns;
}

/// The table's cells of one column, its heading first.
std::vector<std::string> cells_of(const CompareColumn& column,
                                  const std::vector<ComparedRow>& rows) {
  std::vector<std::string> cells = {column.heading};
  int width = display_width(column.heading);
  for (const ComparedRow& row : rows) {
    cells.push_back(ended(row) ? column.cell(row) : "");
    width = std::max(width, display_width(cells.back()));
  }
  for (std::string& cell : cells) {
    cell = pad(cell, width, column.right);
  }
  return cells;
}

std::string trimmed(const std::string& text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

/// What stands in a row that has no figures.
std::string words_of(const ComparedRow& row) {
  if (!row.simulation) {
    if (row.faults.list.empty()) {
      return "refused";
    }
    const Diagnostic& fault = row.faults.list.front();
    const auto more = static_cast<std::int64_t>(row.faults.list.size()) - 1;
    return "refused: " + fault.message + (fault.hint.empty() ? "" : "; " + fault.hint) +
           (more > 0 ? " (and " + std::to_string(more) + " more)" : "");
  }
  const StepReport& report = row.simulation->report;
  if (report.blocked.empty()) {
    return "deadlock";
  }
  const BlockedLine& line = report.blocked.front();
  return "deadlock: rank " + line.rank + " at " + line.task + " waits for " + line.waiting_for;
}

int label_width(const std::vector<ComparedRow>& rows) {
  int width = 0;
  for (const ComparedRow& row : rows) {
    width = std::max(width, display_width(row.label));
  }
  return width;
}

/// The heading and every row's figures, behind so many columns.
std::vector<std::string> figures(const std::vector<ComparedRow>& rows, int indent, int gap) {
  std::vector<std::string> lines(rows.size() + 1, pad("", indent));
  for (const CompareColumn& column : columns_of()) {
    const std::vector<std::string> cells = cells_of(column, rows);
    for (std::size_t line = 0; line < lines.size(); ++line) {
      lines[line] += pad("", gap) + cells[line];
    }
  }
  return lines;
}

/// The widest words for the fastest row that a line leaves room for.
std::string mark_of(int line, int width) {
  for (const char* const words : {"  ◀ fastest that fits", "  ◀ fastest", " ◀"}) {
    if (line + display_width(words) <= width) {
      return words;
    }
  }
  return "";
}

std::string table(const std::vector<ComparedRow>& rows, int width) {
  constexpr int kMark = 2;
  constexpr int kIndent = 2;
  const ComparedRow* const best = fastest(rows);
  const int label = label_width(rows);
  std::vector<std::string> lines = figures(rows, kIndent + label, 2);
  if (display_width(lines.front()) + kMark > width) {
    lines = figures(rows, kIndent + label, 1);
  }
  const bool apart = display_width(lines.front()) + kMark > width;  // labels on lines of their own
  if (apart) {
    lines = figures(rows, kIndent, 2);
  }
  const std::string mark = mark_of(display_width(lines.front()), width);
  std::string text = trimmed(lines.front()) + "\n";
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const ComparedRow& row = rows[at];
    const std::string first = pad("", kIndent) + row.label;
    if (!ended(row)) {
      const int hang = apart ? 2 * kIndent : kIndent + label + 2;
      text += wrapped(pad(first, hang), words_of(row), hang, width);
      continue;
    }
    const std::string line = &row == best ? lines[at + 1] + mark : trimmed(lines[at + 1]);
    text += apart ? first + "\n" + line + "\n"
                  : pad(first, kIndent + label) +
                        line.substr(static_cast<std::size_t>(kIndent + label)) + "\n";
  }
  return text;
}

/// What all rows share, in two lines; nothing where they are of different scenarios.
std::string header(const std::vector<ComparedRow>& rows, int width) {
  const ComparedRow* first = nullptr;
  for (const ComparedRow& row : rows) {
    if (!row.scenario) {
      continue;
    }
    first = first == nullptr ? &row : first;
    if (row.scenario->name != first->scenario->name ||
        row.simulation->report.header.cluster != first->simulation->report.header.cluster) {
      return "";
    }
  }
  if (first == nullptr || first->simulation->report.header.model.empty()) {
    return "";
  }
  const ReportHeader& shown = first->simulation->report.header;
  const Parallelism& degrees = first->scenario->parallelism;
  const std::int64_t count = first->scenario->micro_batches();
  const auto degree = [](const char* name, std::int64_t value) {
    return std::string(name) + " " + std::to_string(value) + " · ";
  };
  const std::string layout =
      shown.precision + " · " + degree("tp", degrees.tp) + degree("cp", degrees.cp) +
      (degrees.ep > 1 ? degree("ep", degrees.ep) : "") + degree("pp", degrees.pp) +
      degree("dp", degrees.dp) + std::to_string(count) + " " + plural("micro-batch", count) +
      " of " + std::to_string(first->scenario->training.micro_batch_size);
  return wrapped("", shown.name + " · " + shown.model + " · " + shown.cluster, 0, width) +
         wrapped("", layout, 0, width) + "\n";
}

}  // namespace

std::string compare_text(const std::vector<ComparedRow>& rows, const ComparePage& page) {
  constexpr int kLabel = 8;
  std::string text = header(rows, page.width) + table(rows, page.width) + "\n";
  const auto add = [&](const std::string& label, const std::string& words) {
    text += words.empty() ? "" : wrapped(pad(label, kLabel), words, kLabel, page.width);
  };
  std::string label = "why";
  for (const std::string& why : compare_why(rows, page.baseline)) {
    add(label, why);
    label.clear();
  }
  add("layers", chosen_splits(rows));
  add("span",
      "idle between a rank's first and last action, the worst rank's, of the makespan of the "
      "schedule's actions alone: what is left of the bubble where no step waits for all ranks (no "
      "barrier before the optimizer)");
  add("next", page.next_command);
  return text;
}

}  // namespace foretrain
