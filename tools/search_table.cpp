#include "tools/search_table.h"

#include "tools/estimate_numbers.h"

#include "sim/base/format.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace foretrain {
namespace {

struct SearchColumn {
  std::string group;  ///< stands above the first of its columns
  std::string heading;
  std::function<std::string(const RankedLayout&)> cell;
  bool only_if_unusual = false;  ///< left out where every row has the default's text
  int leaves = 0;                ///< where the page is too narrow, the lowest above 0 first
};

template <typename Cell>
std::function<std::string(const RankedLayout&)> of_simulation(const Cell& cell) {
  return [cell](const RankedLayout& row) { return row.simulated ? cell(*row.simulated) : "-"; };
}

std::string verdict(const SimulatedLayout& simulated) {
  return simulated.deadlock ? "deadlock" : std::string(to_string(simulated.fits));
}

void add_layout(std::vector<SearchColumn>& columns) {
  const auto degree = [&columns](const char* name, std::int64_t Layout::*member, int leaves) {
    columns.push_back(
        {"",
         name,
         [member](const RankedLayout& row) { return std::to_string(row.estimate.layout.*member); },
         leaves > 0,
         leaves});
  };
  degree("tp", &Layout::tp, 0);
  degree("cp", &Layout::cp, 0);
  degree("pp", &Layout::pp, 0);
  degree("dp", &Layout::dp, 0);
  degree("ep", &Layout::ep, 6);
  degree("vpp", &Layout::vpp, 5);
  degree("micro-batch", &Layout::micro_batch_size, 4);
  columns.push_back({"",
                     "sharding",
                     [](const RankedLayout& row) {
                       static constexpr const char* kNames[] = {"none", "zero1", "zero2", "zero3"};
                       return std::string(
                           kNames[static_cast<std::size_t>(row.estimate.layout.sharding)]);
                     },
                     true,
                     3});
  columns.push_back({"",
                     "schedule",
                     [](const RankedLayout& row) { return row.estimate.layout.schedule; },
                     true,
                     2});
  columns.push_back(
      {"", "order", [](const RankedLayout& row) { return row.estimate.layout.order; }, true, 1});
}

void add_estimate(bool simulated, std::vector<SearchColumn>& columns) {
  const char* const group = "closed form";
  if (simulated) {
    columns.push_back(
        {group, "rank", [](const RankedLayout& row) { return with_commas(row.closed_form_rank); }});
  }
  columns.push_back(
      {group, "MFU", [](const RankedLayout& row) { return percent(row.estimate.mfu); }});
  columns.push_back({group, "step", [](const RankedLayout& row) {
                       return seconds_text(row.estimate.step_time_s);
                     }});
  columns.push_back({group, "memory", [](const RankedLayout& row) {
                       return gigabytes_text(row.estimate.memory.total());
                     }});
  columns.push_back({group, "left", [](const RankedLayout& row) {
                       return gigabytes_text(row.estimate.memory_limit -
                                             row.estimate.memory.total());
                     }});
}

void add_simulation(std::vector<SearchColumn>& columns) {
  const char* const group = "simulated";
  columns.push_back(
      {group, "MFU", of_simulation([](const SimulatedLayout& s) { return percent(s.mfu); })});
  columns.push_back({group, "step", of_simulation([](const SimulatedLayout& s) {
                       return seconds_text(s.step_time_s);
                     })});
  columns.push_back({group, "memory", of_simulation([](const SimulatedLayout& s) {
                       return gigabytes_text(static_cast<double>(s.memory_bytes));
                     })});
  columns.push_back({group, "fits", of_simulation(verdict)});
}

std::vector<SearchColumn> columns_of(bool simulated) {
  std::vector<SearchColumn> columns;
  columns.push_back({"", "rank", [](const RankedLayout& row) { return with_commas(row.rank); }});
  add_layout(columns);
  add_estimate(simulated, columns);
  if (simulated) {
    add_simulation(columns);
  }
  return columns;
}

bool is_shown(const SearchColumn& column, const std::vector<const RankedLayout*>& rows) {
  const std::string usual = column.cell(RankedLayout{});
  return !column.only_if_unusual ||
         std::any_of(rows.begin(), rows.end(), [&](const RankedLayout* row) {
           return column.cell(*row) != usual;
         });
}

/// Columns of space between columns, and before a group of them.
struct TableGaps {
  int column = 2, group = 4;
};

/// A group begins with its name above.
std::vector<std::string> lines_of(const std::vector<SearchColumn>& columns,
                                  const std::vector<const RankedLayout*>& rows,
                                  TableGaps gaps) {
  std::vector<std::string> lines(rows.size() + 2);
  std::string group;
  for (const SearchColumn& column : columns) {
    std::vector<std::string> cells = {column.heading};
    int width = display_width(column.heading);
    for (const RankedLayout* row : rows) {
      cells.push_back(column.cell(*row));
      width = std::max(width, display_width(cells.back()));
    }
    const bool begins = column.group != group;
    const int space = lines[1].empty() ? 0 : begins ? gaps.group : gaps.column;
    if (begins) {
      group = column.group;
      lines[0] = pad(lines[0], display_width(lines[1]) + space) + group;
    }
    for (std::size_t line = 0; line < cells.size(); ++line) {
      lines[line + 1] +=
          std::string(static_cast<std::size_t>(space), ' ') + pad(cells[line], width, true);
    }
  }
  return lines;
}

/// The table as wide as it may be, or as narrow as it can.
std::vector<std::string> fitted(const std::vector<SearchColumn>& columns,
                                const std::vector<const RankedLayout*>& rows,
                                int width) {
  std::vector<std::string> lines;
  for (const TableGaps gaps :
       {TableGaps{2, 4}, TableGaps{2, 3}, TableGaps{2, 2}, TableGaps{1, 3}, TableGaps{1, 2}}) {
    lines = lines_of(columns, rows, gaps);
    if (display_width(lines[1]) <= width) {
      break;
    }
  }
  return lines;
}

/// Takes out the column that leaves first; nothing where all must stay.
std::optional<SearchColumn> take_out(std::vector<SearchColumn>& columns) {
  auto first = columns.end();
  for (auto at = columns.begin(); at != columns.end(); ++at) {
    if (at->leaves > 0 && (first == columns.end() || at->leaves < first->leaves)) {
      first = at;
    }
  }
  if (first == columns.end()) {
    return std::nullopt;
  }
  SearchColumn column = *first;
  columns.erase(first);
  return column;
}

/// What the columns that left would say: once where every row says the same.
std::string below(const std::vector<SearchColumn>& left,
                  const std::vector<const RankedLayout*>& rows) {
  std::string of_all;
  std::vector<std::string> of_row(rows.size());
  const auto add = [](const SearchColumn& column, const RankedLayout& row, std::string& text) {
    text += (text.empty() ? "" : " · ") + column.heading + " " + column.cell(row);
  };
  for (const SearchColumn& column : left) {
    const std::string one = column.cell(*rows.front());
    if (std::all_of(rows.begin(), rows.end(), [&](const RankedLayout* row) {
          return column.cell(*row) == one;
        })) {
      add(column, *rows.front(), of_all);
      continue;
    }
    for (std::size_t row = 0; row < rows.size(); ++row) {
      add(column, *rows[row], of_row[row]);
    }
  }
  std::string text = of_all.empty() ? "" : " all  " + of_all + "\n";
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!of_row[row].empty()) {
      text += pad(with_commas(rows[row]->rank), 4, true) + "  " + of_row[row] + "\n";
    }
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string search_table(const std::vector<const RankedLayout*>& rows, bool simulated, int width) {
  std::vector<SearchColumn> columns = columns_of(simulated);
  columns.erase(std::remove_if(columns.begin(),
                               columns.end(),
                               [&](const SearchColumn& column) { return !is_shown(column, rows); }),
                columns.end());
  std::vector<SearchColumn> left;
  std::vector<std::string> lines = fitted(columns, rows, width);
  while (display_width(lines[1]) > width) {
    std::optional<SearchColumn> column = take_out(columns);
    if (!column) {
      break;
    }
    left.insert(left.begin(), *std::move(column));
    lines = fitted(columns, rows, width);
  }
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text + below(left, rows);
}

}  // namespace foretrain
