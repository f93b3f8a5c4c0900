#include "tools/schedule_svg.h"

#include "sim/base/format.h"

#include <algorithm>
#include <array>

namespace foretrain {
namespace {

constexpr double kLeft = 80;  // pixels, of the rows
constexpr double kTop = 64;
constexpr double kRow = 30;
constexpr double kPlot = 1480;  // width of the whole makespan
constexpr double kDigit = 7.5;  // width of one digit of a label
constexpr std::size_t kMostTooltips = 20'000;

struct Colour {
  int red, green, blue;
};
constexpr std::array<Colour, 4> kColours = {
    {{120, 170, 226}, {142, 198, 122}, {142, 198, 122}, {236, 186, 96}}};

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return safe;
}

/// 1 for the first chunk, darker for later ones.
double shade_of(std::int32_t chunk, std::int32_t chunks) {
  return chunks > 1 ? 1.0 - 0.45 * chunk / (chunks - 1) : 1.0;
}

std::string colour(ActionKind kind, double shade) {
  const Colour& base = kColours[static_cast<std::size_t>(kind)];
  const auto part = [&](int value) { return std::to_string(static_cast<int>(value * shade)); };
  return "rgb(" + part(base.red) + "," + part(base.green) + "," + part(base.blue) + ")";
}

std::string attribute(const char* name, double value) {
  return " " + std::string(name) + "=\"" + fixed(value, 2) + "\"";
}

std::string label(double x, double y, const char* kind, const std::string& text) {
  return "<text class=\"" + std::string(kind) + "\"" + attribute("x", x) + attribute("y", y) + ">" +
         text + "</text>\n";
}

/// Draws one schedule; pixels are doubles, times stay whole ticks until here.
class Drawing {
 public:
  Drawing(const Schedule& schedule, const ScheduleTiming& timing, const TypedCosts& costs)
      : schedule_(schedule), timing_(timing), costs_(costs) {
    std::size_t actions = 0;
    for (const std::vector<Action>& list : schedule.ranks) {
      actions += list.size();
    }
    tooltips_ = actions <= kMostTooltips;
  }

  std::string svg() const {
    const double height = kTop + kRow * static_cast<double>(schedule_.ranks.size()) + 64;
    const double width = kLeft + kPlot + 24;
    std::string text =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + fixed(width, 0) + " " +
        fixed(height, 0) +
        "\" font-family=\"sans-serif\">\n"
        "<style>.rank{font-size:14px;text-anchor:end}.number{font-size:12px;"
        "text-anchor:middle}.light{fill:#fff}.axis{font-size:12px;fill:#555;text-anchor:middle}"
        ".title{font-size:20px}.note{font-size:14px;fill:#333}"
        "rect{stroke:#fff;stroke-width:0.5}</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    text += label(kLeft, 36, "title", title());
    for (std::size_t rank = 0; rank < schedule_.ranks.size(); ++rank) {
      text += row(rank);
    }
    return text + axis() + legend(height) + "</svg>\n";
  }

 private:
  double x(Duration at) const {
    const double all = static_cast<double>(std::max<std::int64_t>(1, timing_.makespan.count()));
    return kLeft + kPlot * static_cast<double>(at.count()) / all;
  }

  std::string title() const {
    const ScheduleSize& size = schedule_.size;
    return escaped(schedule_.name) + ": " + std::to_string(size.pp) + " pipeline ranks, " +
           (size.vpp > 1 ? std::to_string(size.vpp) + " chunks each, " : "") +
           std::to_string(size.micro_batches) + " " + plural("micro-batch", size.micro_batches);
  }

  std::string row(std::size_t rank) const {
    const double y = kTop + kRow * static_cast<double>(rank);
    std::string text = label(kLeft - 10, y + 20, "rank", "rank " + std::to_string(rank));
    text += "<rect" + attribute("x", kLeft) + attribute("y", y) + attribute("width", kPlot) +
            attribute("height", kRow - 4) + " fill=\"#f0f0f0\"/>\n";
    for (std::size_t i = 0; i < schedule_.ranks[rank].size(); ++i) {
      text += cell(schedule_.ranks[rank][i],
                   timing_.start[rank][i].time_since_epoch(),
                   timing_.end[rank][i].time_since_epoch(),
                   y);
    }
    return text;
  }

  std::string cell(const Action& action, Duration start, Duration end, double y) const {
    const double width = x(end) - x(start);
    const double shade = shade_of(action.stage / schedule_.size.pp, schedule_.size.vpp);
    std::string text = "<rect" + attribute("x", x(start)) + attribute("y", y) +
                       attribute("width", width) + attribute("height", kRow - 4) + " fill=\"" +
                       colour(action.kind, shade) + "\">";
    if (tooltips_) {
      text += "<title>" + to_string(action) + ": " + costs_.printed(start) + " to " +
              costs_.printed(end) + "</title>";
    }
    text += "</rect>\n";
    const std::string number = std::to_string(action.micro_batch);
    if (width > kDigit * static_cast<double>(number.size()) + 2) {
      text += label(x(start) + width / 2, y + 18, shade > 0.7 ? "number" : "number light", number);
    }
    return text;
  }

  /// Marks at 1, 2 or 5 x 10^n ticks, at most twenty of them.
  std::string axis() const {
    const std::int64_t all = timing_.makespan.count();
    std::int64_t step = 1;
    for (int turn = 0; all / step > 20; ++turn) {
      step = turn % 3 == 1 ? step / 2 * 5 : step * 2;
    }
    const double y = kTop + kRow * static_cast<double>(schedule_.ranks.size());
    std::string text;
    for (std::int64_t mark = 0; mark <= all; mark += step) {
      text += "<line stroke=\"#bbb\"" + attribute("x1", x(Duration{mark})) +
              attribute("x2", x(Duration{mark})) + attribute("y1", y) + attribute("y2", y + 5) +
              "/>\n";
      text += label(x(Duration{mark}), y + 18, "axis", costs_.printed(Duration{mark}));
      if (mark > all - step) {
        break;
      }
    }
    return text;
  }

  std::string legend(double height) const {
    const double busy = static_cast<double>(timing_.busy.front().count());
    const double all = static_cast<double>(std::max<std::int64_t>(1, timing_.makespan.count()));
    const double y = height - 16;
    const auto square = [&](double at, ActionKind kind) {
      return "<rect" + attribute("x", at) + attribute("y", y - 12) +
             " width=\"14\" height=\"14\" fill=\"" + colour(kind, 1) + "\"/>\n";
    };
    return square(kLeft, ActionKind::kForward) + label(kLeft + 20, y, "note", "forward") +
           square(kLeft + 100, ActionKind::kBackward) + label(kLeft + 120, y, "note", "backward") +
           label(kLeft + 220,
                 y,
                 "note",
                 "makespan " + costs_.printed(timing_.makespan) +
                     ", bubble on rank 0: " + costs_.printed(timing_.bubble.front()) + " (" +
                     percent(1 - busy / all) + "), numbers are micro-batches" +
                     (schedule_.size.vpp > 1 ? ", darker is a later chunk" : ""));
  }

  const Schedule& schedule_;
  const ScheduleTiming& timing_;
  const TypedCosts& costs_;
  bool tooltips_ = true;
};

}  // namespace

std::string schedule_svg(const Schedule& schedule,
                         const ScheduleTiming& timing,
                         const TypedCosts& costs) {
  return Drawing(schedule, timing, costs).svg();
}

}  // namespace foretrain
