#include "sim/base/check.h"
#include "sim/flow/fair_share_state.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace foretrain {
namespace {

/// What rounding of doubles may leave between equal rates; far below what is promised (1e-9).
constexpr double kRounding = 1e-12;

bool above(double rate, double other) {
  return rate > other * (1.0 + kRounding);
}

}  // namespace

FairShare::State::State(std::vector<double> capacities) {
  for (const double capacity : capacities) {
    FORETRAIN_CHECK(capacity > 0, "a link of capacity %g", capacity);
    links.emplace_back().capacity = capacity;
  }
}

std::int32_t FairShare::State::start(std::span<const LinkUse> uses, double limit) {
  FORETRAIN_CHECK(limit > 0, "a transfer of limit %g", limit);
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::int32_t>(sharers.size()));
    sharers.emplace_back();
    standings.emplace_back();
  }
  const std::int32_t number = unused_.back();
  unused_.pop_back();
  Sharer& sharer = sharers[static_cast<std::size_t>(number)];
  sharer.uses.assign(uses.begin(), uses.end());
  sharer.places.clear();
  sharer.limit = limit;
  sharer.runs = true;
  standings[static_cast<std::size_t>(number)] = {};
  for (std::size_t use = 0; use < uses.size(); ++use) {
    Shared& link = links[static_cast<std::size_t>(uses[use].link)];
    sharer.places.push_back(static_cast<std::int32_t>(link.entries.size()));
    link.entries.push_back({uses[use].weight, number, static_cast<std::int32_t>(use)});
  }
  begun_.push_back(number);
  return number;
}

void FairShare::State::end(std::int32_t number) {
  Sharer& sharer = sharers[static_cast<std::size_t>(number)];
  FORETRAIN_CHECK(sharer.runs, "transfer %d does not run", number);
  for (std::size_t use = 0; use < sharer.uses.size(); ++use) {
    const std::int32_t link = sharer.uses[use].link;
    std::vector<Entry>& entries = links[static_cast<std::size_t>(link)].entries;
    const Entry last = entries.back();
    entries.pop_back();
    const auto place = static_cast<std::size_t>(sharer.places[use]);
    if (place < entries.size()) {
      entries[place] = last;
      sharers[static_cast<std::size_t>(last.sharer)].places[static_cast<std::size_t>(last.use)] =
          sharer.places[use];
    }
    touch(link);
  }
  sharer.runs = false;
  std::erase(begun_, number);
  unused_.push_back(number);
}

void FairShare::State::touch(std::int32_t link) {
  Shared& shared = links[static_cast<std::size_t>(link)];
  if (!shared.touched) {
    shared.touched = true;
    touched_.push_back(link);
  }
}

void FairShare::State::open(std::int32_t number) {
  Standing& standing = standings[static_cast<std::size_t>(number)];
  if (standing.open) {
    return;
  }
  standing.open = true;
  open_.push_back(number);
  before_.push_back(standing.rate);
  for (const LinkUse& use : sharers[static_cast<std::size_t>(number)].uses) {
    touch(use.link);
  }
}

void FairShare::State::admit(std::int32_t number) {
  const Shared& link = links[static_cast<std::size_t>(number)];
  double used = 0;
  double fastest = 0;
  double held = std::numeric_limits<double>::infinity();  // the slowest open one that ends here
  for (const Entry& entry : link.entries) {
    const Standing& one = standings[static_cast<std::size_t>(entry.sharer)];
    used += one.rate * entry.weight;
    fastest = std::max(fastest, one.rate);
    if (one.open && one.bottleneck == number) {
      held = std::min(held, one.rate);
    }
  }
  const bool has_room = used < link.capacity * (1.0 - kRounding);
  for (const Entry& entry : link.entries) {
    const Standing& one = standings[static_cast<std::size_t>(entry.sharer)];
    const bool lost = one.bottleneck == number && (has_room || above(fastest, one.rate));
    if (!one.open && (lost || above(one.rate, held))) {
      open(entry.sharer);
    }
  }
}

void FairShare::State::freeze(std::int32_t number, double level, std::int32_t bottleneck) {
  Standing& standing = standings[static_cast<std::size_t>(number)];
  standing.frozen = true;
  standing.rate = level;
  standing.bottleneck = bottleneck;
  for (const LinkUse& use : sharers[static_cast<std::size_t>(number)].uses) {
    Shared& link = links[static_cast<std::size_t>(use.link)];
    link.free -= use.weight * level;
    link.weight -= use.weight;
    --link.growing;
  }
}

void FairShare::State::freeze_link(std::int32_t number, double level) {
  for (const Entry& entry : links[static_cast<std::size_t>(number)].entries) {
    const Standing& standing = standings[static_cast<std::size_t>(entry.sharer)];
    if (standing.open && !standing.frozen) {
      freeze(entry.sharer, level, number);
    }
  }
}

/// What the links have left for the open ones.
void FairShare::State::clear_links() {
  levels_.clear();
  for (const std::int32_t number : touched_) {
    Shared& link = links[static_cast<std::size_t>(number)];
    link.free = link.capacity;
    link.weight = 0;
    link.growing = 0;
    for (const Entry& entry : link.entries) {
      const Standing& standing = standings[static_cast<std::size_t>(entry.sharer)];
      if (standing.open) {
        link.weight += entry.weight;
        ++link.growing;
      } else {
        link.free -= entry.weight * standing.rate;
      }
    }
    if (link.growing > 0) {
      levels_.emplace_back(link.level(), number);
    }
  }
  std::make_heap(levels_.begin(), levels_.end(), std::greater<>());
}

/// Progressive filling of the open ones. A link's level only rises as others freeze below it, so a
/// level that is out of date when its turn comes goes back with today's.
void FairShare::State::solve() {
  clear_links();
  limits_.clear();
  for (const std::int32_t number : open_) {
    standings[static_cast<std::size_t>(number)].frozen = false;
    limits_.emplace_back(sharers[static_cast<std::size_t>(number)].limit, number);
  }
  std::sort(limits_.begin(), limits_.end());
  std::size_t next_limit = 0;
  while (next_limit < limits_.size()) {
    const auto [limit, number] = limits_[next_limit];
    if (standings[static_cast<std::size_t>(number)].frozen) {
      ++next_limit;
      continue;
    }
    if (levels_.empty() || limit <= levels_.front().first) {
      freeze(number, limit, kLimit);
      ++next_limit;
      continue;
    }
    std::pop_heap(levels_.begin(), levels_.end(), std::greater<>());
    const auto [level, link] = levels_.back();
    levels_.pop_back();
    const Shared& shared = links[static_cast<std::size_t>(link)];
    if (shared.growing == 0) {
      continue;
    }
    if (shared.level() > level) {
      levels_.emplace_back(shared.level(), link);
      std::push_heap(levels_.begin(), levels_.end(), std::greater<>());
    } else {
      freeze_link(link, level);
    }
  }
}

void FairShare::State::share() {
  for (const std::int32_t number : begun_) {
    open(number);
  }
  begun_.clear();
  for (std::size_t solved = open_.size() + 1; solved != open_.size();) {
    solved = open_.size();
    solve();
    // Touching only appends, so those opened now are seen in the next round.
    const std::size_t links_seen = touched_.size();
    for (std::size_t at = 0; at < links_seen; ++at) {
      admit(touched_[at]);
    }
  }
  changed.clear();
  for (std::size_t at = 0; at < open_.size(); ++at) {
    Standing& standing = standings[static_cast<std::size_t>(open_[at])];
    standing.open = false;
    if (standing.rate != before_[at]) {
      changed.push_back(open_[at]);
    }
  }
  std::sort(changed.begin(), changed.end());
  for (const std::int32_t link : touched_) {
    links[static_cast<std::size_t>(link)].touched = false;
  }
  open_.clear();
  before_.clear();
  touched_.clear();
}

FairShare::FairShare(std::vector<double> capacities)
    : state_(std::make_unique<State>(std::move(capacities))) {}
FairShare::~FairShare() = default;
FairShare::FairShare(FairShare&&) noexcept = default;
FairShare& FairShare::operator=(FairShare&&) noexcept = default;

std::int32_t FairShare::start(std::span<const LinkUse> uses, double limit) {
  return state_->start(uses, limit);
}

void FairShare::end(std::int32_t transfer) {
  state_->end(transfer);
}

std::span<const std::int32_t> FairShare::share() {
  state_->share();
  return state_->changed;
}

double FairShare::rate(std::int32_t transfer) const {
  return state_->standings[static_cast<std::size_t>(transfer)].rate;
}

}  // namespace foretrain
