#include "foretrain/schedule.h"
#include "sim/base/format.h"
#include "sim/base/wrapped.h"
#include "sim/schedule/picture_cells.h"

#include <algorithm>
#include <numeric>

namespace foretrain {
namespace {

constexpr const char* kIdleMark = "·";
constexpr const char* kMore = "─";  // the rest of an action longer than its name
constexpr std::size_t kMostRanks = 40;
constexpr std::size_t kRowsAtEachEnd = 12;  // of those with more ranks

std::string repeated(const char* text, std::int64_t times) {
  std::string line;
  for (std::int64_t i = 0; i < times; ++i) {
    line += text;
  }
  return line;
}

/// The makespan spread over a number of columns; an instant between two is drawn in the first.
struct Grid {
  Naming naming = Naming::kLetter;
  std::int64_t makespan = 1;
  std::int64_t columns = 0;
  std::int64_t column_of(Int128 ticks) const {
    return static_cast<std::int64_t>(ticks * columns / makespan);
  }
};

/// The rows of a picture: all ranks, or those at both ends.
std::vector<std::size_t> drawn_ranks(std::size_t ranks) {
  std::vector<std::size_t> drawn;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (ranks > kMostRanks && rank == kRowsAtEachEnd) {
      rank = ranks - kRowsAtEachEnd;
    }
    drawn.push_back(rank);
  }
  return drawn;
}

/// The longest time that all starts and ends are multiples of.
std::int64_t common_measure(const std::vector<PictureRow>& rows, std::int64_t makespan) {
  std::int64_t measure = makespan;
  for (const PictureRow& row : rows) {
    row.each(
        [&](const PictureBox& box) { measure = std::gcd(std::gcd(measure, box.start), box.end); });
  }
  return measure;
}

/// The narrowest grid on which every start and end is on a column and every name has room; 0 when
/// that is wider than `room`.
std::int64_t aligned_columns(const std::vector<PictureRow>& rows,
                             std::int64_t makespan,
                             Naming naming,
                             std::int64_t room) {
  const std::int64_t quantum = common_measure(rows, makespan);
  std::int64_t each = 1;
  for (const PictureRow& row : rows) {
    row.each([&](const PictureBox& box) {
      const std::int64_t quanta = (box.end - box.start) / quantum;
      const std::int64_t name = display_width(box.name(naming));
      each = std::max(each, (name + quanta - 1) / quanta);
    });
  }
  const Int128 columns = Int128{makespan / quantum} * each;
  return columns <= room ? static_cast<std::int64_t>(columns) : 0;
}

/// Whether every name has room on a grid.
bool names_fit(const std::vector<PictureRow>& rows, const Grid& grid) {
  bool fit = true;
  for (const PictureRow& row : rows) {
    row.each([&](const PictureBox& box) {
      const std::int64_t width = grid.column_of(box.end) - grid.column_of(box.start);
      fit = fit && width >= display_width(box.name(grid.naming));
    });
  }
  return fit;
}

/// A grid on which every name has room, or one for letters.
Grid choose_grid(const std::vector<PictureRow>& rows,
                 std::int64_t makespan,
                 const ScheduleSize& size,
                 std::int64_t room) {
  constexpr std::int64_t kShortestName = 2;
  const bool crowded = std::any_of(rows.begin(), rows.end(), [&](const PictureRow& row) {
    return row.boxes() > room / kShortestName;
  });
  for (const Naming naming : {Naming::kStage, Naming::kMicroBatch, Naming::kWithoutSlice}) {
    const bool says_more = (naming != Naming::kStage || size.vpp > 1) &&
                           (naming != Naming::kWithoutSlice || size.slices > 1);
    if (crowded || !says_more) {
      continue;
    }
    Grid grid{naming, makespan, aligned_columns(rows, makespan, naming, room)};
    if (grid.columns > 0) {
      return grid;
    }
    grid.columns = room;
    if (names_fit(rows, grid)) {
      return grid;
    }
  }
  const std::int64_t quanta = makespan / common_measure(rows, makespan);
  return {Naming::kLetter, makespan, quanta <= room ? room / quanta * quanta : room};
}

std::string named_row(const PictureRow& row, const Grid& grid) {
  std::string text;
  std::int64_t at = 0;
  row.each([&](const PictureBox& box) {
    const std::int64_t from = grid.column_of(box.start);
    const std::int64_t to = grid.column_of(box.end);
    const std::string name = box.name(grid.naming);
    text +=
        repeated(kIdleMark, from - at) + name + repeated(kMore, to - from - display_width(name));
    at = to;
  });
  return text + repeated(kIdleMark, grid.columns - at);
}

/// What one column of a coarse picture stands for: idle when mostly so, a kind that makes up three
/// quarters of the work, or a mixture, told apart when a fifth of it or more is idle.
std::string coarse_letter(const LetterShares& shares, Int128 whole) {
  const Int128 busy = std::accumulate(shares.begin(), shares.end(), Int128{0});
  if (2 * busy < whole) {
    return kIdleMark;
  }
  const auto most = std::max_element(shares.begin(), shares.end());
  if (4 * *most >= 3 * busy) {
    return std::string(1, kPictureLetters[static_cast<std::size_t>(most - shares.begin())]);
  }
  return 5 * busy > 4 * whole ? "x" : ":";
}

std::string coarse_row(const PictureRow& row, const Grid& grid) {
  // Time of each column by letter, in units of 1 / columns of a tick.
  std::vector<LetterShares> filled(static_cast<std::size_t>(grid.columns));
  row.each([&](const PictureBox& box) {
    const Int128 from = Int128{box.start} * grid.columns;
    const Int128 to = Int128{box.end} * grid.columns;
    for (Int128 column = from / grid.makespan; column * grid.makespan < to; ++column) {
      const Int128 left = std::max(from, column * grid.makespan);
      const Int128 right = std::min(to, (column + 1) * grid.makespan);
      filled[static_cast<std::size_t>(column)][box.letter()] += right - left;
    }
  });
  std::string text;
  for (const LetterShares& shares : filled) {
    text += coarse_letter(shares, grid.makespan);
  }
  return text;
}

/// Marks at the first step of 1, 2, 5, 10, ... ticks that leaves room between the numbers.
std::string axis(const Grid& grid, Duration unit) {
  const std::int64_t widest = display_width(exact_decimal(Duration{grid.makespan}, unit)) + 2;
  Int128 step = 1;
  for (int turn = 0; grid.column_of(step) < widest && step < grid.makespan; ++turn) {
    step = turn % 3 == 1 ? step / 2 * 5 : step * 2;
  }
  std::string line;
  for (Int128 mark = 0; mark < grid.makespan; mark += step) {
    const std::string text = exact_decimal(Duration{static_cast<std::int64_t>(mark)}, unit);
    if (grid.column_of(mark) + display_width(text) > grid.columns) {
      break;
    }
    line = pad(line, static_cast<int>(grid.column_of(mark))) + text;
  }
  return line;
}

}  // namespace

std::string exact_decimal(Duration ticks, Duration unit) {
  const std::int64_t whole = ticks.count() / unit.count();
  std::int64_t rest = ticks.count() % unit.count();
  std::string text = (ticks.count() < 0 && whole == 0 ? "-" : "") + std::to_string(whole);
  rest = rest < 0 ? -rest : rest;
  if (rest != 0) {
    text += '.';
    for (std::int64_t place = unit.count() / 10; rest != 0; place /= 10) {
      text += static_cast<char>('0' + rest / place);
      rest %= place;
    }
  }
  return text;
}

std::string schedule_picture(const Schedule& schedule,
                             const ScheduleTiming& timing,
                             const PictureScale& scale) {
  if (timing.makespan == Duration{}) {
    return "nothing takes time\n";
  }
  const std::size_t ranks = schedule.ranks.size();
  const int margin = std::max(6, static_cast<int>(std::to_string(ranks).size()) + 4);
  const std::int64_t room = std::max(10, scale.width - margin);
  const std::vector<std::size_t> drawn = drawn_ranks(ranks);
  std::vector<PictureRow> rows;
  for (const std::size_t rank : drawn) {
    rows.emplace_back(schedule.ranks[rank], timing.start[rank], timing.end[rank]);
  }
  const Grid grid = choose_grid(rows, timing.makespan.count(), schedule.size, room);
  std::string text = pad("time", margin) + axis(grid, scale.unit) + "\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && drawn[i] != drawn[i - 1] + 1) {
      const auto left_out = static_cast<std::int64_t>(drawn[i] - drawn[i - 1] - 1);
      text += pad("  ...", margin) + std::to_string(left_out) + " " + plural("rank", left_out) +
              " not drawn\n";
    }
    text +=
        pad(pad(std::to_string(drawn[i]), margin - 2, true), margin) +
        (grid.naming == Naming::kLetter ? coarse_row(rows[i], grid) : named_row(rows[i], grid)) +
        "\n";
  }
  const std::string blank(static_cast<std::size_t>(margin), ' ');
  return text + wrapped(blank, picture_legend(schedule, grid.naming), margin, scale.width);
}

}  // namespace foretrain
