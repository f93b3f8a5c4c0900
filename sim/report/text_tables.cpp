#include "sim/report/text_tables.h"

#include "sim/base/format.h"
#include "sim/base/wrapped.h"

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

/// Whether a part is the communication of a group of one rank, or of no group at all.
bool alone(const StepReport& report, std::string_view key) {
  constexpr std::array<std::string_view, 5> kGroups = {"tp", "cp", "ep", "pp", "dp"};
  return std::find(kGroups.begin(), kGroups.end(), key) != kGroups.end() &&
         std::none_of(report.network.begin(), report.network.end(), [&](const NetworkReport& row) {
           return row.group == key && row.size > 1;
         });
}

/// "0.000 s" and "0.0 %": nothing of a part would be seen in its line.
bool prints_as_zero(Duration part, Duration whole) {
  return time_like(part, whole).starts_with("0.000 ") && percent(share_of(part, whole)) == "0.0 %";
}

}  // namespace

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
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  std::string text = title.empty() ? "" : paint(style, Emphasis::kTitle, pad(title, indent));
  int column = indent;
  const int between = display_width(separator);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const int width = display_width(items[i]);
    if (i > 0 && column + between + width > style.width) {
      text += "\n" + margin;
      column = indent;
    } else if (i > 0) {
      text += separator;
      column += between;
    }
    if (indent + width > style.width) {
      const std::string lines = wrapped(margin, items[i], indent, style.width);
      text += lines.substr(margin.size(), lines.size() - margin.size() - 1);
      column = style.width;
    } else {
      text += items[i];
      column += width;
    }
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
    const bool asked = part.member == &Breakdown::straggler && !report.stragglers.empty();
    const double share = share_of(time, report.step_time);
    const bool nothing =
        time.count() == 0 || (alone(report, part.key) && prints_as_zero(time, report.step_time));
    if (nothing && !asked) {
      continue;
    }
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
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
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

std::string link_lines(const StepReport& report, const TextStyle& style) {
  if (report.busiest_links.empty()) {
    return "";
  }
  int width = 16;
  for (const LinkReport& link : report.busiest_links) {
    width = std::max(width, display_width(link.id) + 4);
  }
  std::string text = paint(style,
                           Emphasis::kTitle,
                           pad("busiest links", width) + pad("used", 8, true) +
                               pad("a step", 11, true) + pad("of", 11, true)) +
                     "  carries\n";
  for (const LinkReport& link : report.busiest_links) {
    text += pad("  " + link.id, width) + pad(percent(link.utilisation), 8, true) +
            pad(human_bytes(std::llround(link.bytes)), 11, true) +
            pad(human_rate(link.bandwidth), 11, true) + "  " + link.carries +
            (link.alike > 1 ? " · " + with_commas(link.alike) + " such links" : "") + "\n";
  }
  return text;
}

std::string straggler_lines(const StepReport& report, const TextStyle& style) {
  if (report.stragglers.empty()) {
    return "";
  }
  std::string text;
  if (report.stragglers.size() == 1) {
    const StragglerCost& only = report.stragglers[0];
    text = paint(style, Emphasis::kTitle, "stragglers cost ") + human_time(only.cost) + " of " +
           human_time(report.step_time) + " (" + percent(only.share) + ")\n";
  } else {
    text =
        paint(style, Emphasis::kTitle, "stragglers") + " (the step less the step without each)\n";
  }
  int width = 0;
  for (const StragglerCost& row : report.stragglers) {
    width = std::max(width, display_width(row.cause));
  }
  for (const StragglerCost& row : report.stragglers) {
    text += "  " + pad(row.cause, width) + pad(human_time(row.cost), 11, true) +
            pad(percent(row.share), 9, true) + "\n";
  }
  std::vector<std::string> waits = {"every rank " + human_time(report.breakdown.straggler) +
                                    " on average"};
  std::string late;
  for (const NetworkReport& network : report.network) {
    if (network.wait.count() > 0) {
      late += (late.empty() ? "" : ", ") + network.group + " " + human_time(network.wait);
    }
  }
  if (!late.empty()) {
    waits.push_back("for late members, whatever the cause: " + late);
  }
  return text + item_lines("  who waits", waits, style);
}

}  // namespace foretrain
