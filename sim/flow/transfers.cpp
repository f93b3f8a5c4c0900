#include "foretrain/flow.h"
#include "sim/base/check.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <functional>
#include <tuple>
#include <utility>

namespace foretrain {
namespace {

/// What rounding of doubles may add to a whole number of picoseconds.
constexpr double kRounding = 1e-3;

/// A time in ps with its fraction: rates change when a transfer really ends, though the world hears
/// of it at the next whole picosecond.
struct Moment {
  std::int64_t whole = 0;
  double part = 0;  ///< 0 .. 1

  auto operator<=>(const Moment&) const = default;
  double until(const Moment& later) const {
    return static_cast<double>(later.whole - whole) + (later.part - part);
  }
  Moment after(double picoseconds) const {
    const double sum = part + picoseconds;
    const double floor = std::floor(sum);
    return {whole + static_cast<std::int64_t>(floor), sum - floor};
  }
  std::int64_t rounded_up() const { return part > kRounding ? whole + 1 : whole; }
};

struct OnTheWay {
  std::int64_t tag = 0;
  std::int64_t order = 0;  ///< in which it began
  std::vector<LinkUse> uses;
  double limit = 0;
  double left = 0;  ///< ps at the limit, at `since`
  Moment since;
  double speed = 1.0;         ///< of the limit
  std::int32_t sharer = -1;   ///< in FairShare; -1: shares nothing
  std::uint32_t version = 0;  ///< of its end in the queue
  bool runs = false;
};

struct End {
  Moment time;
  std::int64_t order = 0;
  std::int32_t place = 0;
  std::uint32_t version = 0;
  bool operator>(const End& other) const {
    return std::tie(time, order) > std::tie(other.time, other.order);
  }
};

}  // namespace

struct Transfers::State {
  explicit State(std::vector<double> capacities)
      : carried(capacities.size(), 0.0), share(std::move(capacities)) {}

  void go_to(Instant at) {
    const Moment time{at.time_since_epoch().count(), 0};
    FORETRAIN_CHECK(time >= now || time.whole == now.rounded_up(), "time goes back");
    now = std::max(now, time);
  }
  std::int32_t place_for_one();
  /// Takes off what it has done until now.
  void settle(OnTheWay& one);
  void queue_end(std::int32_t place);
  void share_anew();
  void finish(std::int32_t place);
  bool out_of_date(const End& end) const {
    const OnTheWay& one = all[static_cast<std::size_t>(end.place)];
    return !one.runs || one.version != end.version;
  }
  void drop_old_ends() {
    while (!ends.empty() && out_of_date(ends.front())) {
      std::pop_heap(ends.begin(), ends.end(), std::greater<>());
      ends.pop_back();
    }
  }

  std::vector<OnTheWay> all;
  std::vector<std::int32_t> unused;    ///< places in `all`
  std::vector<std::int32_t> place_of;  ///< by sharer
  std::vector<End> ends;               ///< heap, next first
  std::vector<double> carried;
  FairShare share;
  Moment now;
  std::int64_t begun = 0;
  bool stale = false;
};

std::int32_t Transfers::State::place_for_one() {
  if (unused.empty()) {
    unused.push_back(static_cast<std::int32_t>(all.size()));
    all.emplace_back();
  }
  const std::int32_t place = unused.back();
  unused.pop_back();
  return place;
}

void Transfers::State::settle(OnTheWay& one) {
  const double done = std::min(one.since.until(now) * one.speed, one.left);
  one.left -= done;
  one.since = now;
  for (const LinkUse& use : one.uses) {
    carried[static_cast<std::size_t>(use.link)] += done * 1e-12 * one.limit * use.weight;
  }
}

void Transfers::State::queue_end(std::int32_t place) {
  OnTheWay& one = all[static_cast<std::size_t>(place)];
  ends.push_back({one.since.after(one.left / one.speed), one.order, place, ++one.version});
  std::push_heap(ends.begin(), ends.end(), std::greater<>());
}

void Transfers::State::share_anew() {
  if (!stale) {
    return;
  }
  stale = false;
  for (const std::int32_t sharer : share.share()) {
    const std::int32_t place = place_of[static_cast<std::size_t>(sharer)];
    OnTheWay& one = all[static_cast<std::size_t>(place)];
    settle(one);
    one.speed = share.rate(sharer) / one.limit;
    FORETRAIN_CHECK(one.speed > 0, "a transfer stands still");
    queue_end(place);
  }
}

void Transfers::State::finish(std::int32_t place) {
  OnTheWay& one = all[static_cast<std::size_t>(place)];
  settle(one);
  one.runs = false;
  if (one.sharer >= 0) {
    share.end(one.sharer);
    stale = true;
  }
  unused.push_back(place);
}

Transfers::Transfers(std::vector<double> capacities)
    : state_(std::make_unique<State>(std::move(capacities))) {}
Transfers::~Transfers() = default;
Transfers::Transfers(Transfers&&) noexcept = default;
Transfers& Transfers::operator=(Transfers&&) noexcept = default;

void Transfers::begin(
    Instant now, std::span<const LinkUse> uses, double limit, Duration alone, std::int64_t tag) {
  State& state = *state_;
  state.go_to(now);
  const std::int32_t place = state.place_for_one();
  OnTheWay& one = state.all[static_cast<std::size_t>(place)];
  one.tag = tag;
  one.order = state.begun++;
  one.uses.assign(uses.begin(), uses.end());
  one.limit = limit;
  one.left = static_cast<double>(alone.count());
  one.since = state.now;
  one.speed = 1.0;
  one.sharer = -1;
  one.runs = true;
  if (uses.empty() || alone.count() == 0) {
    state.queue_end(place);
    return;
  }
  one.sharer = state.share.start(uses, limit);
  if (state.place_of.size() <= static_cast<std::size_t>(one.sharer)) {
    state.place_of.resize(static_cast<std::size_t>(one.sharer) + 1);
  }
  state.place_of[static_cast<std::size_t>(one.sharer)] = place;
  state.stale = true;
}

std::optional<Instant> Transfers::next_end() {
  state_->share_anew();
  state_->drop_old_ends();
  if (state_->ends.empty()) {
    return std::nullopt;
  }
  return Instant{Duration{state_->ends.front().time.rounded_up()}};
}

std::vector<std::int64_t> Transfers::take_ended(Instant now) {
  State& state = *state_;
  const std::int64_t limit = now.time_since_epoch().count();
  std::vector<std::int64_t> tags;
  for (;;) {
    state.share_anew();
    state.drop_old_ends();
    if (state.ends.empty() || state.ends.front().time.rounded_up() > limit) {
      break;
    }
    state.now = std::max(state.now, state.ends.front().time);
    state.finish(state.ends.front().place);
    tags.push_back(state.all[static_cast<std::size_t>(state.ends.front().place)].tag);
  }
  state.go_to(now);
  return tags;
}

double Transfers::carried(std::int32_t link) const {
  for (OnTheWay& one : state_->all) {
    if (one.runs) {
      state_->settle(one);
    }
  }
  return state_->carried[static_cast<std::size_t>(link)];
}

}  // namespace foretrain
