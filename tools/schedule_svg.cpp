#include "tools/schedule_svg.h"

#include "tools/svg_marks.h"

#include "sim/base/format.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace foretrain {
namespace {

constexpr double kLeft = 80;  // pixels, of the rows
constexpr double kTop = 64;
constexpr double kPlot = 1480;  // width of the whole makespan
constexpr double kGap = 4;      // between rows
constexpr double kDigit = 7.5;  // width of one digit of a label
constexpr std::size_t kMostTooltips = 20'000;
constexpr std::size_t kMostRows = 40;
constexpr std::size_t kRowsAtEachEnd = 12;  // of those with more ranks
constexpr std::size_t kColumns = 370;       // of a row whose boxes are too narrow to see

/// 1 for the first chunk, darker for later ones.
double shade_of(std::int32_t chunk, std::int32_t chunks) {
  return chunks > 1 ? 1.0 - 0.35 * chunk / (chunks - 1) : 1.0;
}

/// What of all a picture may show a schedule has.
struct Occurring {
  std::array<bool, 4> kinds{};
  bool overlapped = false;
  std::size_t boxes = 0, longest = 0;  ///< of all ranks, and of one
};

Occurring occurring_in(const Schedule& schedule) {
  Occurring found;
  for (const std::vector<Action>& list : schedule.ranks) {
    for (const Action& action : list) {
      found.kinds[static_cast<std::size_t>(action.kind)] = true;
      found.overlapped = found.overlapped || action.overlapped;
    }
    found.boxes += list.size();
    found.longest = std::max(found.longest, list.size());
  }
  return found;
}

/// Draws one schedule; pixels are doubles, times stay whole ticks until here.
class Drawing {
 public:
  Drawing(const Schedule& schedule, const ScheduleTiming& timing, const TypedCosts& costs)
      : schedule_(schedule),
        timing_(timing),
        costs_(costs),
        found_(occurring_in(schedule)),
        coarse_(found_.longest > 2 * kColumns) {
    const std::size_t ranks = schedule.ranks.size();
    const bool cut = ranks > kMostRows;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      rank = cut && rank == kRowsAtEachEnd ? ranks - kRowsAtEachEnd : rank;
      rows_.push_back(rank);
    }
    row_height_ = rows_.size() > 16 ? 24 : 30;
    bottom_ = kTop + row_height_ * static_cast<double>(rows_.size() + (cut ? 1 : 0));
  }

  std::string svg() const {
    const double height = bottom_ + 78;
    const double width = kLeft + kPlot + 24;
    std::string text =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + fixed(width, 0) + " " +
        fixed(height, 0) +
        "\" font-family=\"sans-serif\">\n"
        "<style>.rank{font-size:14px;text-anchor:end}.number{font-size:12px;"
        "text-anchor:middle}.half{font-size:10px;text-anchor:middle}.light{fill:#fff}"
        ".axis{font-size:12px;fill:#555;text-anchor:middle}"
        ".title{font-size:20px}.note{font-size:14px;fill:#333}"
        ".copy{stroke:#333;stroke-width:2;fill:none}"
        ".pair{stroke:#333;stroke-width:1;fill:none}"
        "rect{stroke:#fff;stroke-width:0.5}.share{shape-rendering:crispEdges}</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    text += svg_label(kLeft, 36, "title", title());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      text += row(i);
    }
    return text + axis() + legend() + svg_label(kLeft, bottom_ + 64, "note", figures()) +
           "</svg>\n";
  }

 private:
  double x(Duration at) const {
    const double all = static_cast<double>(std::max<std::int64_t>(1, timing_.makespan.count()));
    return kLeft + kPlot * static_cast<double>(at.count()) / all;
  }

  std::string title() const {
    const ScheduleSize& size = schedule_.size;
    return schedule_.name + ": " + std::to_string(size.pp) + " pipeline " +
           plural("rank", size.pp) + ", " +
           (size.vpp > 1 ? std::to_string(size.vpp) + " chunks each, " : "") +
           std::to_string(size.micro_batches) + " " + plural("micro-batch", size.micro_batches) +
           (size.slices > 1 ? " of " + std::to_string(size.slices) + " slices" : "") +
           (schedule_.copies() > 1 ? ", 2 copies of the model" : "");
  }

  std::string row(std::size_t i) const {
    const std::size_t rank = rows_[i];
    const bool after_gap = i > 0 && rank != rows_[i - 1] + 1;
    const bool behind_gap = rank != rows_[0] + i;
    const double y = kTop + row_height_ * static_cast<double>(i + (behind_gap ? 1 : 0));
    const double height = row_height_ - kGap;
    std::string text;
    if (after_gap) {
      const auto left_out = static_cast<std::int64_t>(rank - rows_[i - 1] - 1);
      text += svg_label(kLeft,
                        y - row_height_ + height / 2 + 4,
                        "note",
                        std::to_string(left_out) + " " + plural("rank", left_out) + " not drawn");
    }
    text += svg_label(kLeft - 10, y + height / 2 + 5, "rank", "rank " + std::to_string(rank)) +
            svg_rectangle({kLeft, y, kPlot, height}, "#f0f0f0", "");
    return text + (coarse_ ? shares(rank, y, height) : boxes(rank, y, height));
  }

  bool in_one_piece(std::size_t rank, std::size_t i) const {
    return schedule_.ranks[rank][i].overlapped &&
           timing_.start[rank][i] == timing_.start[rank][i + 1] &&
           timing_.end[rank][i] == timing_.end[rank][i + 1];
  }

  std::string boxes(std::size_t rank, double y, double height) const {
    const std::vector<Action>& list = schedule_.ranks[rank];
    std::string text;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Duration start = timing_.start[rank][i].time_since_epoch();
      const Duration end = timing_.end[rank][i].time_since_epoch();
      const SvgBox box{x(start), y, x(end) - x(start), height};
      const bool pair = in_one_piece(rank, i);
      std::string tooltip;
      if (found_.boxes <= kMostTooltips) {
        tooltip = unit_text({&list[i], pair ? std::size_t{2} : std::size_t{1}}) + ": " +
                  costs_.printed(start) + " to " + costs_.printed(end);
      }
      if (!pair) {
        Action alone = list[i];
        alone.overlapped = false;
        text += action(alone, box, "number", tooltip);
        continue;
      }
      const SvgBox upper{box.x, box.y, box.width, height / 2};
      const SvgBox lower{box.x, box.y + height / 2, box.width, height / 2};
      text += action(list[i], upper, "half", tooltip) + action(list[i + 1], lower, "half", tooltip);
      text += "<rect class=\"pair\"" + svg_attribute("x", box.x) + svg_attribute("y", box.y) +
              svg_attribute("width", box.width) + svg_attribute("height", height) + "/>\n";
      ++i;
    }
    return text;
  }

  std::string action(const Action& action,
                     const SvgBox& box,
                     const std::string& style,
                     const std::string& tooltip) const {
    const double shade = shade_of(action.stage / schedule_.size.pp, schedule_.size.vpp);
    std::string text = svg_rectangle(box, kind_colour(action.kind, shade), tooltip);
    text += action.copy == 1 && box.width > 2 ? svg_copy_mark(box) : "";
    const auto fits = [&](const std::string& label) {
      return box.width > kDigit * static_cast<double>(label.size()) + 2;
    };
    std::string number = std::to_string(action.micro_batch);
    const std::string sliced = number + "." + std::to_string(action.slice);
    number = action.slice >= 0 && fits(sliced) ? sliced : number;
    if (fits(number)) {
      text += svg_label(box.x + box.width / 2,
                        box.y + box.height / 2 + (style == "half" ? 3.5 : 4.5),
                        style + (shade > 0.7 ? "" : " light"),
                        number);
    }
    return text;
  }

  /// Boxes too narrow to see: each column shows what shares of its time each kind takes.
  std::string shares(std::size_t rank, double y, double height) const {
    using Shares = std::array<double, 4>;
    std::vector<Shares> columns(kColumns);
    const std::vector<Action>& list = schedule_.ranks[rank];
    const double scale = static_cast<double>(kColumns) / kPlot;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const double from = (x(timing_.start[rank][i].time_since_epoch()) - kLeft) * scale;
      const double to = (x(timing_.end[rank][i].time_since_epoch()) - kLeft) * scale;
      const bool half = in_one_piece(rank, i) || (i > 0 && in_one_piece(rank, i - 1));
      for (auto c = static_cast<std::size_t>(from); c < kColumns && static_cast<double>(c) < to;
           ++c) {
        const auto left = static_cast<double>(c);
        const double part = std::min(to, left + 1) - std::max(from, left);
        columns[c][static_cast<std::size_t>(list[i].kind)] += half ? part / 2 : part;
      }
    }
    std::string text;
    const double width = kPlot / static_cast<double>(kColumns);
    for (std::size_t c = 0; c < kColumns; ++c) {
      double base = y + height;
      for (std::size_t kind = 0; kind < columns[c].size(); ++kind) {
        const double tall = columns[c][kind] * height;
        if (tall >= 0.05) {
          base -= tall;
          text += "<path class=\"share\" fill=\"" + kind_colour(static_cast<ActionKind>(kind)) +
                  "\" d=\"M" + fixed(kLeft + static_cast<double>(c) * width, 0) + " " +
                  fixed(base, 1) + "h" + fixed(width, 0) + "v" + fixed(tall, 1) + "h-" +
                  fixed(width, 0) + "z\"/>\n";
        }
      }
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
    std::string text;
    for (std::int64_t mark = 0; mark <= all; mark += step) {
      const double at = x(Duration{mark});
      text += "<line stroke=\"#bbb\"" + svg_attribute("x1", at) + svg_attribute("x2", at) +
              svg_attribute("y1", bottom_) + svg_attribute("y2", bottom_ + 5) + "/>\n";
      text += svg_label(at, bottom_ + 18, "axis", costs_.printed(Duration{mark}));
      if (mark > all - step) {
        break;
      }
    }
    return text;
  }

  /// Only what occurs.
  std::string legend() const {
    const double y = bottom_ + 42;
    double at = kLeft;
    std::string text;
    const auto entry = [&](const std::string& sign, const std::string& words) {
      text += sign + svg_label(at + 20, y, "note", words);
      at += 50 + 7.2 * static_cast<double>(words.size());
    };
    const auto square = [&](double height, ActionKind kind) {
      return svg_rectangle({at, y - 12, 14, height}, kind_colour(kind), "");
    };
    for (std::size_t kind = 0; kind < found_.kinds.size(); ++kind) {
      if (found_.kinds[kind]) {
        entry(square(14, static_cast<ActionKind>(kind)), kind_words(static_cast<ActionKind>(kind)));
      }
    }
    if (found_.overlapped && !coarse_ && !costs_.ticks.sequential) {
      const ActionKind lower = found_.kinds[1] ? ActionKind::kBackward : ActionKind::kInputGradient;
      entry(square(14, lower) + square(7, ActionKind::kForward) + "<rect class=\"pair\"" +
                svg_attribute("x", at) + svg_attribute("y", y - 12) +
                " width=\"14\" height=\"14\"/>\n",
            "one overlapped unit");
    }
    if (schedule_.copies() > 1 && !coarse_) {
      entry(svg_copy_mark({at, y - 12, 14, 12}), "second copy of the model");
    }
    if (schedule_.size.vpp > 1 && !coarse_) {
      entry("", "darker: a later chunk");
    }
    return text;
  }

  std::string figures() const {
    const auto sum = [](const std::vector<Duration>& values) {
      return std::accumulate(values.begin(), values.end(), 0.0, [](double all, Duration value) {
        return all + static_cast<double>(value.count());
      });
    };
    const double idle = sum(timing_.bubble);
    const double all = idle + sum(timing_.busy);
    const auto [least, most] = std::minmax_element(timing_.bubble.begin(), timing_.bubble.end());
    return "makespan " + costs_.printed(timing_.makespan) + ", bubble " +
           (*least == *most ? "" : costs_.printed(*least) + " to ") + costs_.printed(*most) +
           " a rank (" + percent(all > 0 ? idle / all : 0) + " of the time)" + numbers_text();
  }

  const char* numbers_text() const {
    if (coarse_) {
      return "; columns show shares of time";
    }
    if (static_cast<double>(found_.longest) * kDigit > kPlot) {
      return "";  // most boxes are narrower than a digit
    }
    return schedule_.size.slices > 1 ? "; numbers are micro-batch.slice"
                                     : "; numbers are micro-batches";
  }

  const Schedule& schedule_;
  const ScheduleTiming& timing_;
  const TypedCosts& costs_;
  Occurring found_;
  bool coarse_ = false;
  std::vector<std::size_t> rows_;
  double row_height_ = 30, bottom_ = 0;
};

}  // namespace

std::string schedule_svg(const Schedule& schedule,
                         const ScheduleTiming& timing,
                         const TypedCosts& costs) {
  return Drawing(schedule, timing, costs).svg();
}

}  // namespace foretrain
