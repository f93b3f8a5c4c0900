#include "foretrain/schedule.h"
#include "sim/base/format.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace foretrain {
namespace {

constexpr const char* kIdle = "·";
constexpr const char* kMore = "─";  // the rest of an action longer than its name
constexpr char kMixed = 'x';
constexpr std::size_t kMostRows = 64;
constexpr std::array<char, 4> kLetters = {'F', 'B', 'I', 'W'};

std::string repeated(const char* text, std::int64_t times) {
  std::string line;
  for (std::int64_t i = 0; i < times; ++i) {
    line += text;
  }
  return line;
}

/// What a cell says, from the most to the least.
enum class Naming { kStage, kMicroBatch, kLetter };

std::string cell_name(const Action& action, Naming naming) {
  const std::string text = to_string(action);
  return naming == Naming::kStage ? text : text.substr(text.find_first_of("FBIW"));
}

std::int64_t ticks_of(Instant at) {
  return at.time_since_epoch().count();
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

template <typename Visit>
void each_action(const Schedule& schedule, const ScheduleTiming& timing, const Visit& visit) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      visit(
          schedule.ranks[rank][i], ticks_of(timing.start[rank][i]), ticks_of(timing.end[rank][i]));
    }
  }
}

/// The narrowest grid on which every start and end is on a column and every name has room; 0 when
/// that is wider than `room`.
std::int64_t aligned_columns(const Schedule& schedule,
                             const ScheduleTiming& timing,
                             Naming naming,
                             std::int64_t room) {
  std::int64_t quantum = timing.makespan.count();
  each_action(schedule, timing, [&](const Action&, std::int64_t start, std::int64_t end) {
    quantum = std::gcd(std::gcd(quantum, start), end);
  });
  std::int64_t each = 1;
  each_action(schedule, timing, [&](const Action& action, std::int64_t start, std::int64_t end) {
    const std::int64_t quanta = (end - start) / quantum;
    const std::int64_t name = display_width(cell_name(action, naming));
    each = quanta > 0 ? std::max(each, (name + quanta - 1) / quanta) : each;
  });
  const Int128 columns = Int128{timing.makespan.count() / quantum} * each;
  return columns <= room ? static_cast<std::int64_t>(columns) : 0;
}

/// A grid on which every name has room, or one for letters.
Grid choose_grid(const Schedule& schedule, const ScheduleTiming& timing, std::int64_t room) {
  const bool chunks = schedule.size.vpp > 1;
  for (const Naming naming : {Naming::kStage, Naming::kMicroBatch}) {
    if (naming == Naming::kStage && !chunks) {
      continue;
    }
    Grid grid{naming, timing.makespan.count(), aligned_columns(schedule, timing, naming, room)};
    if (grid.columns > 0) {
      return grid;
    }
    grid.columns = room;
    bool fits = true;
    each_action(schedule, timing, [&](const Action& action, std::int64_t start, std::int64_t end) {
      const std::int64_t width = grid.column_of(end) - grid.column_of(start);
      fits = fits && (start == end || width >= display_width(cell_name(action, naming)));
    });
    if (fits) {
      return grid;
    }
  }
  return {Naming::kLetter, timing.makespan.count(), room};
}

std::string named_row(const Schedule& schedule,
                      const ScheduleTiming& timing,
                      std::size_t rank,
                      const Grid& grid) {
  std::string row;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
    const std::int64_t from = grid.column_of(ticks_of(timing.start[rank][i]));
    const std::int64_t to = grid.column_of(ticks_of(timing.end[rank][i]));
    if (to == from) {
      continue;  // takes no time, so has no width
    }
    const std::string name = cell_name(schedule.ranks[rank][i], grid.naming);
    row += repeated(kIdle, from - at) + name + repeated(kMore, to - from - display_width(name));
    at = to;
  }
  return row + repeated(kIdle, grid.columns - at);
}

/// What one column of a coarse picture stands for: idle when mostly so, a kind that makes up three
/// quarters of the work, or both.
std::string coarse_letter(const std::array<Int128, 4>& shares, Int128 whole) {
  const Int128 busy = std::accumulate(shares.begin(), shares.end(), Int128{0});
  if (2 * busy < whole) {
    return kIdle;
  }
  const auto most = std::max_element(shares.begin(), shares.end());
  const auto kind = static_cast<std::size_t>(most - shares.begin());
  return std::string(1, 4 * *most >= 3 * busy ? kLetters[kind] : kMixed);
}

std::string coarse_row(const Schedule& schedule,
                       const ScheduleTiming& timing,
                       std::size_t rank,
                       const Grid& grid) {
  // Time of each column by kind, in units of 1 / columns of a tick.
  std::vector<std::array<Int128, 4>> filled(static_cast<std::size_t>(grid.columns));
  for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
    const auto kind = static_cast<std::size_t>(schedule.ranks[rank][i].kind);
    const Int128 from = Int128{ticks_of(timing.start[rank][i])} * grid.columns;
    const Int128 to = Int128{ticks_of(timing.end[rank][i])} * grid.columns;
    for (Int128 column = from / grid.makespan; column * grid.makespan < to; ++column) {
      const Int128 left = std::max(from, column * grid.makespan);
      const Int128 right = std::min(to, (column + 1) * grid.makespan);
      filled[static_cast<std::size_t>(column)][kind] += right - left;
    }
  }
  std::string row;
  for (const std::array<Int128, 4>& shares : filled) {
    row += coarse_letter(shares, grid.makespan);
  }
  return row;
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

std::string legend(const Schedule& schedule, Naming naming) {
  const std::string rest = "B backward, dots idle";
  switch (naming) {
    case Naming::kStage:
      return "2F0: stage 2, forward of micro-batch 0; " + rest;
    case Naming::kMicroBatch:
      return "F0: forward of micro-batch 0; " + rest +
             (schedule.size.vpp > 1 ? "; stages left out for room" : "");
    case Naming::kLetter:
      break;
  }
  return "too wide to number: columns of mostly F forward, B backward, x both, dots idle";
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
  const Grid grid = choose_grid(schedule, timing, room);
  std::string text = pad("time", margin) + axis(grid, scale.unit) + "\n";
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (ranks > kMostRows && rank == kMostRows / 2) {
      text += pad("  ...", margin) + std::to_string(ranks - kMostRows) + " " +
              plural("rank", static_cast<std::int64_t>(ranks - kMostRows)) + " not drawn\n";
      rank = ranks - kMostRows / 2;
    }
    text += pad(pad(std::to_string(rank), margin - 2, true), margin) +
            (grid.naming == Naming::kLetter ? coarse_row(schedule, timing, rank, grid)
                                            : named_row(schedule, timing, rank, grid)) +
            "\n";
  }
  return text + pad("", margin) + legend(schedule, grid.naming) + "\n";
}

}  // namespace foretrain
