#pragma once

#include "foretrain/flow.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

/// A second implementation of max-min sharing, straight from its definition: everything grows
/// together, step by step, in long double, over all transfers and all links.
namespace foretrain::filling {

struct Wanted {
  std::vector<LinkUse> uses;
  long double limit = 0;
};

inline std::vector<long double> rates(const std::vector<double>& capacities,
                                      const std::vector<Wanted>& transfers) {
  std::vector<long double> rate(transfers.size(), 0);
  std::vector<bool> stopped(transfers.size(), false);
  for (std::size_t left = transfers.size(); left > 0;) {
    // How much further the rest can grow before something is full.
    long double step = std::numeric_limits<long double>::infinity();
    std::vector<long double> room(capacities.begin(), capacities.end());
    std::vector<long double> growing(capacities.size(), 0);
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      for (const LinkUse& use : transfers[t].uses) {
        const auto weight = static_cast<long double>(use.weight);
        room[use.link] -= weight * rate[t];
        growing[use.link] += stopped[t] ? 0 : weight;
      }
      if (!stopped[t]) {
        step = std::min(step, transfers[t].limit - rate[t]);
      }
    }
    for (std::size_t link = 0; link < capacities.size(); ++link) {
      if (growing[link] > 0) {
        step = std::min(step, std::max(room[link], 0.0L) / growing[link]);
      }
    }
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      rate[t] += stopped[t] ? 0 : step;
    }
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      bool stops = rate[t] >= transfers[t].limit * (1 - 1e-15L);
      for (const LinkUse& use : transfers[t].uses) {
        stops = stops || room[use.link] - step * growing[use.link] <=
                             1e-15L * static_cast<long double>(capacities[use.link]);
      }
      if (stops && !stopped[t]) {
        stopped[t] = true;
        --left;
      }
    }
  }
  return rate;
}

struct Timed {
  Wanted wanted;
  std::int64_t start = 0;  ///< ps
  std::int64_t alone = 0;  ///< ps at the limit
};

/// When each ends, in ps and fractions of them.
inline std::vector<long double> ends(const std::vector<double>& capacities,
                                     const std::vector<Timed>& all) {
  std::vector<long double> end(all.size(), -1), left;
  for (const Timed& one : all) {
    left.push_back(static_cast<long double>(one.alone));
  }
  long double now = 0;
  for (std::size_t open = all.size(); open > 0;) {
    std::vector<std::size_t> running;
    std::vector<Wanted> wanted;
    long double next = std::numeric_limits<long double>::infinity();
    for (std::size_t t = 0; t < all.size(); ++t) {
      if (end[t] < 0 && static_cast<long double>(all[t].start) <= now) {
        running.push_back(t);
        wanted.push_back(all[t].wanted);
      } else if (end[t] < 0) {
        next = std::min(next, static_cast<long double>(all[t].start));
      }
    }
    const std::vector<long double> rate = rates(capacities, wanted);
    for (std::size_t i = 0; i < running.size(); ++i) {
      next = std::min(next, now + left[running[i]] * wanted[i].limit / rate[i]);
    }
    for (std::size_t i = 0; i < running.size(); ++i) {
      long double& rest = left[running[i]];
      rest -= (next - now) * rate[i] / wanted[i].limit;
      if (rest <= 1e-9L) {
        end[running[i]] = next;
        --open;
      }
    }
    now = next;
  }
  return end;
}

}  // namespace foretrain::filling
