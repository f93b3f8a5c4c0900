#include "foretrain/schedule.h"
#include "sim/base/format.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace foretrain {
namespace {

constexpr const char* kIdle = "·";
constexpr const char* kMore = "─";  // the rest of an action longer than its name
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

/// Columns per tick as a fraction: a whole number of columns per `quantum` ticks.
struct Grid {
  Naming naming = Naming::kLetter;
  std::int64_t quantum = 1;
  std::int64_t columns = 0;  ///< per quantum; 0: names do not fit
  std::int64_t column_of(std::int64_t ticks) const { return ticks / quantum * columns; }
};

std::int64_t ticks_of(Instant at) {
  return at.time_since_epoch().count();
}

/// The finest grid on which every action starts and ends on a column and has room for its name.
Grid named_grid(const Schedule& schedule,
                const ScheduleTiming& timing,
                Naming naming,
                std::int64_t room) {
  Grid grid{.naming = naming};
  std::int64_t divisor = timing.makespan.count();
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      divisor = std::gcd(divisor, ticks_of(timing.start[rank][i]));
      divisor = std::gcd(divisor, ticks_of(timing.end[rank][i]));
    }
  }
  grid.quantum = std::max<std::int64_t>(divisor, 1);
  std::int64_t columns = 1;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      const std::int64_t quanta =
          (timing.end[rank][i] - timing.start[rank][i]).count() / grid.quantum;
      const std::int64_t name = display_width(cell_name(schedule.ranks[rank][i], grid.naming));
      columns = quanta > 0 ? std::max(columns, (name + quanta - 1) / quanta) : columns;
    }
  }
  const Int128 total = Int128{timing.makespan.count() / grid.quantum} * columns;
  grid.columns = total > 0 && total <= room ? columns : 0;
  return grid;
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
  return row + repeated(kIdle, grid.column_of(timing.makespan.count()) - at);
}

/// One letter per column: the kind that fills most of it, idle included.
std::string coarse_row(const Schedule& schedule,
                       const ScheduleTiming& timing,
                       std::size_t rank,
                       std::int64_t columns) {
  const std::int64_t makespan = timing.makespan.count();
  // Share of each column by kind, in units of 1 / columns of a tick.
  std::vector<std::array<Int128, 4>> filled(static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
    const auto kind = static_cast<std::size_t>(schedule.ranks[rank][i].kind);
    const Int128 from = Int128{ticks_of(timing.start[rank][i])} * columns;
    const Int128 to = Int128{ticks_of(timing.end[rank][i])} * columns;
    for (Int128 column = from / makespan; column * makespan < to; ++column) {
      const Int128 left = std::max(from, column * makespan);
      const Int128 right = std::min(to, (column + 1) * makespan);
      filled[static_cast<std::size_t>(column)][kind] += right - left;
    }
  }
  std::string row;
  for (const std::array<Int128, 4>& shares : filled) {
    const auto most = std::max_element(shares.begin(), shares.end());
    const Int128 idle = makespan - std::accumulate(shares.begin(), shares.end(), Int128{0});
    row += idle > *most ? std::string(kIdle)
                        : std::string(1, kLetters[static_cast<std::size_t>(most - shares.begin())]);
  }
  return row;
}

/// Marks at the first step of 1, 2, 5, 10, ... ticks that leaves room between the numbers.
std::string axis(Duration makespan, Duration unit, std::int64_t columns) {
  const std::int64_t total = makespan.count();
  const auto column_of = [&](Int128 ticks) {
    return static_cast<std::int64_t>(ticks * columns / total);
  };
  const std::int64_t widest = display_width(exact_decimal(makespan, unit)) + 2;
  Int128 step = 1;
  for (Int128 decade = 1; column_of(step) < widest && step < total; decade *= 10) {
    for (const int factor : {1, 2, 5}) {
      step = decade * factor;
      if (column_of(step) >= widest || step >= total) {
        break;
      }
    }
  }
  std::string line;
  for (Int128 mark = 0; mark < total; mark += step) {
    const std::string text = exact_decimal(Duration{static_cast<std::int64_t>(mark)}, unit);
    if (column_of(mark) + display_width(text) > columns) {
      break;
    }
    line = pad(line, static_cast<int>(column_of(mark))) + text;
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
  Grid grid;
  if (schedule.size.vpp > 1) {
    grid = named_grid(schedule, timing, Naming::kStage, room);
  }
  if (grid.columns == 0) {
    grid = named_grid(schedule, timing, Naming::kMicroBatch, room);
  }
  const bool named = grid.columns > 0;
  const std::int64_t columns = named ? grid.column_of(timing.makespan.count()) : room;
  std::string text = pad("time", margin) + axis(timing.makespan, scale.unit, columns) + "\n";
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (ranks > kMostRows && rank == kMostRows / 2) {
      text += pad("  ...", margin) + std::to_string(ranks - kMostRows) + " ranks not drawn\n";
      rank = ranks - kMostRows / 2;
    }
    text += pad(pad(std::to_string(rank), margin - 2, true), margin) +
            (named ? named_row(schedule, timing, rank, grid)
                   : coarse_row(schedule, timing, rank, columns)) +
            "\n";
  }
  if (named && grid.naming == Naming::kMicroBatch && schedule.size.vpp > 1) {
    text += pad("", margin) + "stages left out for room: a rank's chunks look alike\n";
  }
  if (!named) {
    text += pad("", margin) +
            "too wide to name micro-batches: a letter is what fills most of its column\n";
  }
  return text;
}

}  // namespace foretrain
