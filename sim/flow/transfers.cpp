#include "foretrain/flow.h"
#include "sim/base/check.h"
#include "sim/flow/ends.h"

#include <algorithm>
#include <utility>

namespace foretrain {
namespace {

struct OnTheWay {
  std::int64_t tag = 0;
  double limit = 0;
  double left = 0;  ///< ps at the limit, at `since`
  Moment since;
  double speed = 1.0;         ///< of the limit
  std::int32_t sharer = -1;   ///< in FairShare; -1: shares nothing
  std::uint32_t version = 0;  ///< of its end in the queue
  bool runs = false;
};

}  // namespace

struct Transfers::State {
  explicit State(std::vector<double> capacities) : share(std::move(capacities)) {}

  void go_to(Instant at) {
    const Moment time{at.time_since_epoch().count(), 0};
    FORETRAIN_CHECK(time >= now || time.whole == now.rounded_up(), "time goes back");
    now = std::max(now, time);
  }
  std::int32_t place_for_one();
  void queue_end(std::int32_t place);
  void share_anew();
  void finish(std::int32_t place);
  bool counts(const Ends::End& end) const {
    const OnTheWay& one = all[static_cast<std::size_t>(end.place)];
    return one.runs && one.version == end.version;
  }
  /// The next row has one that counts.
  void drop_old_ends();

  std::vector<OnTheWay> all;
  std::vector<std::int32_t> unused;    ///< places in `all`
  std::vector<std::int32_t> place_of;  ///< by sharer
  Ends ends;
  FairShare share;
  Moment now;
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

void Transfers::State::queue_end(std::int32_t place) {
  OnTheWay& one = all[static_cast<std::size_t>(place)];
  ends.put(one.since.after(one.left / one.speed), {place, ++one.version});
}

void Transfers::State::share_anew() {
  if (!stale) {
    return;
  }
  stale = false;
  for (const std::int32_t sharer : share.share()) {
    const std::int32_t place = place_of[static_cast<std::size_t>(sharer)];
    OnTheWay& one = all[static_cast<std::size_t>(place)];
    one.left -= std::min(one.since.until(now) * one.speed, one.left);
    one.since = now;
    one.speed = share.rate(sharer) / one.limit;
    FORETRAIN_CHECK(one.speed > 0, "a transfer stands still");
    queue_end(place);
  }
  if (ends.size() > 4 * all.size()) {
    ends.drop_old([this](const Ends::End& end) { return counts(end); });
  }
}

void Transfers::State::drop_old_ends() {
  const auto is_old = [this](const Ends::End& end) { return !counts(end); };
  while (!ends.empty() && std::all_of(ends.row().begin(), ends.row().end(), is_old)) {
    ends.drop_row();
  }
}

void Transfers::State::finish(std::int32_t place) {
  OnTheWay& one = all[static_cast<std::size_t>(place)];
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
  return Instant{Duration{state_->ends.next().rounded_up()}};
}

std::vector<std::int64_t> Transfers::take_ended(Instant now) {
  State& state = *state_;
  const std::int64_t limit = now.time_since_epoch().count();
  std::vector<std::int64_t> tags;
  for (;;) {
    state.share_anew();
    state.drop_old_ends();
    if (state.ends.empty() || state.ends.next().rounded_up() > limit) {
      break;
    }
    // All of a moment leave their links before these are shared anew.
    const Moment time = state.ends.next();
    state.now = std::max(state.now, time);
    for (; !state.ends.empty() && state.ends.next() == time; state.ends.drop_row()) {
      for (const Ends::End& end : state.ends.row()) {
        if (state.counts(end)) {
          tags.push_back(state.all[static_cast<std::size_t>(end.place)].tag);
          state.finish(end.place);
        }
      }
    }
  }
  state.go_to(now);
  return tags;
}

}  // namespace foretrain
