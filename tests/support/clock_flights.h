#pragma once

#include "tests/flow/progressive_filling.h"

#include "foretrain/program.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace foretrain {

/// Transfers on the links of a program in real time: at each change all rates are found anew.
class ClockFlights {
 public:
  explicit ClockFlights(const Program& program) {
    for (const SharedLink& link : program.links) {
      capacities_.push_back(link.capacity);
    }
  }

  /// `alone`: ps at the path's limit.
  void add(std::size_t id, const SharedPath& path, std::int64_t begin, std::int64_t alone) {
    flights_.push_back({id,
                        {path.uses, static_cast<long double>(path.limit)},
                        begin,
                        static_cast<long double>(alone)});
  }

  bool empty() const { return flights_.empty(); }

  /// When one begins or ends next, rounded up to the picosecond.
  std::int64_t next() const { return rounded_up(next_change().at); }

  /// Moves on; calls ended(id, time) for each that ends.
  template <class Ended>
  void move(std::int64_t to, Ended ended) {
    const auto last = static_cast<long double>(to);
    while (!flights_.empty() && now_ < last) {
      const Change change = next_change();
      const long double until = std::min(change.at, last);
      const std::vector<long double> rate = rates();
      std::size_t running = 0;
      for (Flight& flight : flights_) {
        if (has_begun(flight)) {
          flight.left -= (until - now_) * rate[running++] / flight.wanted.limit;
        }
      }
      now_ = until;
      for (std::size_t f = change.ending.size(); f > 0 && change.at <= last; --f) {
        const std::size_t place = change.ending[f - 1];
        ended(flights_[place].id, rounded_up(change.at));
        flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(place));
      }
    }
    now_ = last;
  }

 private:
  struct Flight {
    std::size_t id = 0;
    filling::Wanted wanted;
    std::int64_t begin = 0;
    long double left = 0;
  };
  struct Change {
    long double at = HUGE_VALL;
    std::vector<std::size_t> ending;
  };

  /// A whole number of picoseconds may have a little more of rounding.
  static std::int64_t rounded_up(long double time) {
    return static_cast<std::int64_t>(std::ceil(time - 1e-3L));
  }
  bool has_begun(const Flight& flight) const {
    return static_cast<long double>(flight.begin) <= now_;
  }

  /// Of those that have begun, in order.
  std::vector<long double> rates() const {
    std::vector<filling::Wanted> wanted;
    for (const Flight& flight : flights_) {
      if (has_begun(flight)) {
        wanted.push_back(flight.wanted);
      }
    }
    return filling::rates(capacities_, wanted);
  }

  Change next_change() const {
    const std::vector<long double> rate = rates();
    constexpr long double kSame = 1e-9L;
    Change next;
    std::size_t running = 0;
    for (std::size_t f = 0; f < flights_.size(); ++f) {
      const Flight& flight = flights_[f];
      const bool runs = has_begun(flight);
      const long double at = runs ? now_ + flight.left * flight.wanted.limit / rate[running++]
                                  : static_cast<long double>(flight.begin);
      if (at < next.at - kSame) {
        next = {at, {}};
      }
      if (runs && at <= next.at + kSame) {
        next.ending.push_back(f);
      }
    }
    return next;
  }

  std::vector<double> capacities_;
  std::vector<Flight> flights_;
  long double now_ = 0;
};

}  // namespace foretrain
