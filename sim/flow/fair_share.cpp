#include "sim/base/check.h"
#include "sim/flow/fair_share_state.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace foretrain {
namespace {

/// What rounding of doubles may leave between equal rates; far below what is promised (1e-9).
constexpr double kRounding = 1e-12;
/// A sum that changed so often is summed anew, before its rounding counts.
constexpr std::int32_t kMostChanges = 64;

bool above(double rate, double other) {
  return rate > other * (1.0 + kRounding);
}

template <class T>
void push(std::vector<T>& heap, const T& one) {
  heap.push_back(one);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

template <class T>
T pop(std::vector<T>& heap) {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  const T first = heap.back();
  heap.pop_back();
  return first;
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
  sharer.limit = limit;
  sharer.runs = true;
  standings[static_cast<std::size_t>(number)] = {};
  standings[static_cast<std::size_t>(number)].begun = true;
  sharer.uses.clear();
  for (const LinkUse& use : uses) {
    std::vector<Entry>& entries = links[static_cast<std::size_t>(use.link)].entries;
    const auto own = static_cast<std::int32_t>(sharer.uses.size());
    sharer.uses.push_back({use.weight, use.link, static_cast<std::int32_t>(entries.size())});
    entries.push_back({use.weight, number, own});
  }
  begun_.push_back(number);
  return number;
}

void FairShare::State::end(std::int32_t number) {
  Sharer& sharer = sharers[static_cast<std::size_t>(number)];
  FORETRAIN_CHECK(sharer.runs, "transfer %d does not run", number);
  const Standing& standing = standings[static_cast<std::size_t>(number)];
  if (standing.bottleneck != kLimit) {
    --links[static_cast<std::size_t>(standing.bottleneck)].held;
  }
  for (const Use& use : sharer.uses) {
    Shared& link = links[static_cast<std::size_t>(use.link)];
    const Entry last = link.entries.back();
    link.entries.pop_back();
    if (static_cast<std::size_t>(use.place) < link.entries.size()) {
      link.entries[static_cast<std::size_t>(use.place)] = last;
      Sharer& moved = sharers[static_cast<std::size_t>(last.sharer)];
      moved.uses[static_cast<std::size_t>(last.use)].place = use.place;
    }
    add_load(link, -standing.rate * use.weight);
    if (link.held > 0) {
      touch(use.link);
    }
  }
  sharer.runs = false;
  std::erase(begun_, number);
  unused_.push_back(number);
}

void FairShare::State::touch(std::int32_t number) {
  Shared& link = links[static_cast<std::size_t>(number)];
  if (!link.touched) {
    link.touched = true;
    link.free = link.capacity - link.load;
    touched_.push_back(number);
  }
}

void FairShare::State::add_load(Shared& link, double by) {
  link.load += by;
  link.free -= by;
  if (static_cast<std::size_t>(link.opened) == link.entries.size()) {
    link.load = 0;
    link.fastest = 0;
    link.changes = 0;
  } else if (++link.changes > kMostChanges) {
    link.load = 0;
    link.changes = 0;
    for (const Entry& entry : link.entries) {
      const Standing& one = standings[static_cast<std::size_t>(entry.sharer)];
      link.load += one.open ? 0.0 : one.rate * entry.weight;
    }
  }
}

bool FairShare::State::fits(const Sharer& sharer) const {
  return std::all_of(sharer.uses.begin(), sharer.uses.end(), [&](const Use& use) {
    const Shared& link = links[static_cast<std::size_t>(use.link)];
    return link.opened == 0 && link.load + use.weight * sharer.limit <= link.capacity;
  });
}

void FairShare::State::run_at_limit(std::int32_t number) {
  const Sharer& sharer = sharers[static_cast<std::size_t>(number)];
  standings[static_cast<std::size_t>(number)].rate = sharer.limit;
  for (const Use& use : sharer.uses) {
    Shared& link = links[static_cast<std::size_t>(use.link)];
    add_load(link, use.weight * sharer.limit);
    link.fastest = std::max(link.fastest, sharer.limit);
  }
}

void FairShare::State::open(std::int32_t number) {
  Standing& standing = standings[static_cast<std::size_t>(number)];
  standing.open = true;
  standing.frozen = false;
  open_.push_back(number);
  before_.push_back(standing.rate);
  if (standing.bottleneck != kLimit) {
    --links[static_cast<std::size_t>(standing.bottleneck)].held;
  }
  const Sharer& sharer = sharers[static_cast<std::size_t>(number)];
  push(limits_, {sharer.limit, number});
  for (const Use& use : sharer.uses) {
    touch(use.link);
    Shared& link = links[static_cast<std::size_t>(use.link)];
    link.open.push_back({use.weight, number, 0});
    ++link.opened;
    add_load(link, -standing.rate * use.weight);
    link.weight += use.weight;
    ++link.growing;
    queue_link(use.link);
  }
  ++growing_;
}

void FairShare::State::queue_link(std::int32_t number) {
  Shared& link = links[static_cast<std::size_t>(number)];
  const double next = next_level(link);
  if (next < link.queued) {
    link.queued = next;
    push(levels_, {next, number});
  }
}

void FairShare::State::open_held(std::int32_t number) {
  const Shared& link = links[static_cast<std::size_t>(number)];
  for (std::size_t at = 0; at < link.entries.size() && link.held > 0; ++at) {
    const Standing& one = standings[static_cast<std::size_t>(link.entries[at].sharer)];
    if (!one.open && one.bottleneck == number) {
      open(link.entries[at].sharer);
    }
  }
}

void FairShare::State::close_all() {
  for (std::size_t at = 0; at < open_.size(); ++at) {
    Standing& standing = standings[static_cast<std::size_t>(open_[at])];
    standing.open = false;
    if (standing.bottleneck != kLimit) {
      ++links[static_cast<std::size_t>(standing.bottleneck)].held;
    }
    if (!standing.begun && standing.rate != before_[at]) {
      changed.push_back(open_[at]);
    }
  }
  for (const std::int32_t number : touched_) {
    Shared& link = links[static_cast<std::size_t>(number)];
    for (const Entry& entry : link.open) {
      const double rate = standings[static_cast<std::size_t>(entry.sharer)].rate;
      link.load += entry.weight * rate;
      link.fastest = std::max(link.fastest, rate);
    }
    link.changes += static_cast<std::int32_t>(link.open.size());
    link.open.clear();
    link.opened = 0;
    link.queued = kNever;
    link.touched = false;
  }
  open_.clear();
  before_.clear();
  touched_.clear();
}

/// Closed ones may stand in the way of those that grow there.
bool FairShare::State::open_faster(std::int32_t number, double level) {
  Shared& link = links[static_cast<std::size_t>(number)];
  if (!above(link.fastest, level)) {
    return false;
  }
  if (link.held > 0) {
    open_held(number);
    return true;
  }
  const std::size_t before = open_.size();
  link.fastest = 0;
  for (const Entry& entry : link.entries) {
    const Standing& one = standings[static_cast<std::size_t>(entry.sharer)];
    if (!one.open && above(one.rate, level)) {
      open(entry.sharer);
    } else if (!one.open) {
      link.fastest = std::max(link.fastest, one.rate);
    }
  }
  return open_.size() > before;
}

void FairShare::State::freeze(std::int32_t number, double level, std::int32_t bottleneck) {
  Standing& standing = standings[static_cast<std::size_t>(number)];
  --growing_;
  standing.frozen = true;
  standing.rate = level;
  standing.bottleneck = bottleneck;
  for (const Use& use : sharers[static_cast<std::size_t>(number)].uses) {
    Shared& link = links[static_cast<std::size_t>(use.link)];
    link.free -= use.weight * level;
    link.weight -= use.weight;
    if (--link.growing == 0) {
      link.weight = 0;
      if (link.held > 0) {
        vacated_.push_back(use.link);
      }
    }
  }
}

void FairShare::State::fill(std::int32_t number, double level) {
  Shared& link = links[static_cast<std::size_t>(number)];
  if (open_faster(number, level)) {
    queue_link(number);
    return;
  }
  link.level = level;
  for (const Entry& entry : link.open) {
    if (!standings[static_cast<std::size_t>(entry.sharer)].frozen) {
      freeze(entry.sharer, level, number);
    }
  }
}

/// At which something happens on the link while all that are open grow: it is full, or they are as
/// fast as the closed ones it holds, which then grow with them.
double FairShare::State::next_level(const Shared& link) {
  const double full = link.free > 0 ? link.free / link.weight : 0.0;
  return link.held > 0 && above(full, link.level) ? link.level : full;
}

void FairShare::State::open_vacated() {
  for (; !vacated_.empty(); vacated_.pop_back()) {
    const Shared& link = links[static_cast<std::size_t>(vacated_.back())];
    const bool has_room = link.free > link.capacity * kRounding;
    if (link.growing == 0 && (has_room || above(link.fastest, link.level))) {
      open_held(vacated_.back());
    }
  }
}

/// Progressive filling of the open ones, among whom others come at a level below their own rate or
/// at it. A link's next level only rises as others freeze below it, so one that is out of date when
/// its turn comes goes back with today's.
void FairShare::State::solve() {
  for (open_vacated(); growing_ > 0; open_vacated()) {
    if (levels_.empty() || limits_.front().first <= levels_.front().first) {
      const auto [limit, number] = pop(limits_);
      if (!standings[static_cast<std::size_t>(number)].frozen) {
        freeze(number, limit, kLimit);
      }
      continue;
    }
    const auto [level, number] = pop(levels_);
    Shared& link = links[static_cast<std::size_t>(number)];
    if (level > link.queued) {
      continue;  // was queued again, for a lower one
    }
    link.queued = kNever;
    if (link.growing == 0) {
      continue;
    }
    const double next = next_level(link);
    if (next > level) {
      queue_link(number);
    } else if (link.held > 0 && next == link.level) {
      open_held(number);
      queue_link(number);
    } else {
      fill(number, level);
    }
  }
  levels_.clear();
  limits_.clear();
}

void FairShare::State::share() {
  changed.clear();
  for (const std::int32_t number : touched_) {
    if (links[static_cast<std::size_t>(number)].held > 0) {
      vacated_.push_back(number);
    }
  }
  for (const std::int32_t number : begun_) {
    if (fits(sharers[static_cast<std::size_t>(number)])) {
      run_at_limit(number);
    } else {
      open(number);
    }
  }
  solve();
  close_all();
  for (const std::int32_t number : begun_) {
    standings[static_cast<std::size_t>(number)].begun = false;
    changed.push_back(number);
  }
  begun_.clear();
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
