#include "sim/schedule/list_run.h"
#include "sim/schedule/lists.h"

#include <algorithm>
#include <utility>

namespace foretrain {
namespace {

constexpr Instant kNever{Duration{-1}};

bool is_gradient(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kInputGradient;
}

/// One end of a transfer.
struct TransferEnd {
  Action output;  ///< the action whose output it is
  std::int32_t peer = 0;
  bool sends = false;
  bool done = false;
};

/// What a rank does between two pieces of its list: at most two sends and two receives.
struct Exchange {
  std::array<TransferEnd, 4> ends;
  std::size_t count = 0;
  std::size_t posted = 0;
  std::size_t open = 0;  ///< posted and not done

  void add(const TransferEnd& end) { ends[count++] = end; }
};

/// A rank's place: it exchanges before the piece at `at`, then runs it.
struct Position {
  std::size_t at = 0;
  Instant free{};
  Exchange exchange;
};

/// Alternates exchanges and pieces on every rank, as far as transfers find both ends. Times depend
/// on the lists alone, not on the order in which ranks are taken up.
class RendezvousRun {
 public:
  RendezvousRun(const Schedule& schedule, const ScheduleCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        done_(2 * cell_count(schedule)),
        first_end_(2 * cell_count(schedule), kNever),
        places_(schedule.ranks.size()) {
    out_.start.resize(places_.size());
    out_.end.resize(places_.size());
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
      out_.start[rank].reserve(schedule.ranks[rank].size());
      out_.end[rank].reserve(schedule.ranks[rank].size());
      begin_exchange(rank, 0);
    }
  }

  ListOutcome run() {
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
      runnable_.push_back(rank);
    }
    while (!runnable_.empty()) {
      const std::size_t rank = runnable_.back();
      runnable_.pop_back();
      while (step(rank)) {
      }
    }
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
      out_.blocked.push_back(blocked(rank));
    }
    return std::move(out_);
  }

 private:
  /// Index of an action's output: forwards first, gradients behind them.
  std::size_t output_of(const Action& action) const {
    return cell(schedule_, action) + (is_gradient(action.kind) ? cell_count(schedule_) : 0);
  }

  Action input_action(const Action& action, const ActionInput& input) const {
    Action producer = action;
    producer.stage = input.stage;
    producer.slice = input.slice;
    producer.kind = input.gradient ? ActionKind::kBackward : ActionKind::kForward;
    return producer;
  }

  std::size_t piece_end(std::size_t rank, std::size_t at) const {
    const std::vector<Action>& list = schedule_.ranks[rank];
    return at < list.size() ? at + piece_length(list[at], costs_) : at;
  }

  /// Sends of the piece before, from `from` on, and receives of the next one.
  void begin_exchange(std::size_t rank, std::size_t from) {
    const std::vector<Action>& list = schedule_.ranks[rank];
    Position& place = places_[rank];
    place.exchange = Exchange{};
    for (std::size_t i = from; i < place.at; ++i) {
      const std::int32_t receiver = receiver_of(schedule_, list[i]);
      if (receiver >= 0) {
        place.exchange.add({list[i], receiver, true});
      }
    }
    for (std::size_t i = place.at; i < piece_end(rank, place.at); ++i) {
      for (const ActionInput& input : inputs_of(schedule_, list[i])) {
        const Action producer = input_action(list[i], input);
        if (input.stage >= 0 && schedule_.owner(producer) != static_cast<std::int32_t>(rank)) {
          place.exchange.add({producer, schedule_.owner(producer), false});
        }
      }
    }
  }

  void finish(Position& place, const Action& output, Instant end) {
    Exchange& exchange = place.exchange;
    for (std::size_t i = 0; i < exchange.posted; ++i) {
      TransferEnd& mine = exchange.ends[i];
      if (!mine.done && output_of(mine.output) == output_of(output)) {
        mine.done = true;
        --exchange.open;
        place.free = std::max(place.free, end);
        return;
      }
    }
  }

  void post(std::size_t rank, Instant now) {
    Exchange& exchange = places_[rank].exchange;
    const TransferEnd mine = exchange.ends[exchange.posted++];
    ++exchange.open;
    Instant& first = first_end_[output_of(mine.output)];
    if (first == kNever) {
      first = now;
      return;
    }
    const Instant end = std::max(first, now) + costs_.p2p;
    const auto peer = static_cast<std::size_t>(mine.peer);
    finish(places_[rank], mine.output, end);
    finish(places_[peer], mine.output, end);
    if (places_[peer].exchange.open == 0) {
      runnable_.push_back(peer);
    }
  }

  /// Posts what is next, or runs the next piece; false when neither is possible.
  bool step(std::size_t rank) {
    Position& place = places_[rank];
    if (place.exchange.open > 0) {
      return false;
    }
    if (place.exchange.posted < place.exchange.count) {
      const Instant now = place.free;
      do {
        post(rank, now);
      } while (costs_.batched && place.exchange.posted < place.exchange.count);
      return true;
    }
    if (place.at == schedule_.ranks[rank].size() || own_input_missing(rank)) {
      return false;
    }
    run_piece(rank);
    return true;
  }

  std::optional<Action> own_input_missing(std::size_t rank) const {
    const std::vector<Action>& list = schedule_.ranks[rank];
    const std::size_t at = places_[rank].at;
    for (std::size_t i = at; i < piece_end(rank, at); ++i) {
      for (const ActionInput& input : inputs_of(schedule_, list[i])) {
        const Action producer = input_action(list[i], input);
        if (input.stage >= 0 && schedule_.owner(producer) == static_cast<std::int32_t>(rank) &&
            !done_[output_of(producer)]) {
          return producer_of(schedule_, list[i], input);
        }
      }
    }
    return std::nullopt;
  }

  void run_piece(std::size_t rank) {
    const std::vector<Action>& list = schedule_.ranks[rank];
    Position& place = places_[rank];
    const std::size_t from = place.at;
    const Action& first = list[from];
    const std::size_t length = piece_length(first, costs_);
    const Instant end = place.free + (length > 1 ? unit_duration(first, list[from + 1], costs_)
                                                 : action_duration(first, costs_));
    for (; place.at < from + length; ++place.at) {
      out_.start[rank].push_back(place.free);
      out_.end[rank].push_back(end);
      if (list[place.at].kind != ActionKind::kWeightGradient) {
        done_[output_of(list[place.at])] = true;
      }
    }
    place.free = end;
    begin_exchange(rank, from);
  }

  /// What `rank` stands at when nothing goes on any more.
  Blocked blocked(std::size_t rank) const {
    Blocked result;
    const Exchange& exchange = places_[rank].exchange;
    for (std::size_t i = 0; i < exchange.posted; ++i) {
      const TransferEnd& end = exchange.ends[i];
      if (end.done) {
        continue;
      }
      const std::string what = std::string(end.sends ? "sends " : "receives ") + named(end.output) +
                               (end.sends ? " to rank " : " from rank ") + std::to_string(end.peer);
      if (result.on < 0) {
        result = {end.peer, what};
      } else {
        result.and_further += " and " + what;
      }
    }
    if (const auto own = own_input_missing(rank); own && result.on < 0) {
      result = {static_cast<std::int32_t>(rank),
                "waits for " + to_string(*own) + ", later in its own list"};
    }
    return result;
  }

  /// The producer by the letter its list has: B or I.
  std::string named(const Action& output) const {
    if (!is_gradient(output.kind)) {
      return to_string(output);
    }
    return to_string(producer_of(schedule_, output, {output.stage, true, output.slice}));
  }

  const Schedule& schedule_;
  const ScheduleCosts& costs_;
  std::vector<bool> done_;          ///< by output
  std::vector<Instant> first_end_;  ///< by output: when the first end of its transfer was posted
  std::vector<Position> places_;
  std::vector<std::size_t> runnable_;
  ListOutcome out_;
};

}  // namespace

ListOutcome run_rendezvous(const Schedule& schedule, const ScheduleCosts& costs) {
  return RendezvousRun(schedule, costs).run();
}

}  // namespace foretrain
