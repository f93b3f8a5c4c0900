#include "sim/engine/dataflow.h"

#include <algorithm>

/// The rules of the task kinds, for all instances of a cohort at once. On entry the stream's clock
/// is the task's own start; on return it is its end.
namespace foretrain {

void Dataflow::run_alone(Place place, std::int32_t head) {
  const FlatTask& task = list_of(place).tasks[head];
  CohortState& cohort = cohorts_[place.cohort];
  Times& clock = cohort.streams[place.stream].clock;
  const bool send = task.task->kind == TaskKind::kSend;
  if (prices_.uniform(place.cohort)) {
    const std::int64_t duration = prices_.one(place.cohort, task);
    add_scalar(clock, duration);
    if (place.stream == 0) {
      cohort.ledger.busy(task.task->account, duration);
    } else if (role_of(place) == StreamRole::kCollective) {
      cohort.ledger.transfer(account_of(place), duration);
    }
    if (send) {
      cohort.ledger.send(duration, task.task->bytes);
    }
  } else {
    prices_.each(place.cohort, task, durations_);
    add(clock, durations_);
    if (place.stream == 0) {
      cohort.ledger.busy(task.task->account, durations_);
    } else if (role_of(place) == StreamRole::kCollective) {
      cohort.ledger.transfer(account_of(place), durations_);
    }
    if (send) {
      cohort.ledger.send(durations_, task.task->bytes);
    }
  }
  if (role_of(place) == StreamRole::kCollective) {
    cohort.ledger.sent(account_of(place), task.task->bytes);
    if (list_of(place).feeds_primary[place.stream]) {
      prices_.each(place.cohort, task, durations_);
      begin_ = clock;
      const Times zeros(begin_.size(), 0);
      add_difference(begin_, zeros, durations_);
      cohort.ledger.remember(place.stream, head, begin_, clock, cohort.streams[0].clock);
    }
  }
  finish(place, head, nullptr);
}

void Dataflow::receive(Place place, std::int32_t head) {
  const FlatTask& task = list_of(place).tasks[head];
  const Cohort& plan = plan_.cohorts[place.cohort];
  const int slot = task.task->peer_slot;
  CohortState& cohort = cohorts_[place.cohort];
  Times& clock = cohort.streams[place.stream].clock;
  LiveValues& sent = cohorts_[plan.peer_cohort[slot]].values;
  if (place.stream == 0) {
    before_ = clock;
  }
  max_into_gathered(clock, sent.at(plan.partner[head]), plan.peer[slot]);
  if (place.stream == 0) {
    cohort.ledger.idle(before_, clock);
  }
  sent.release(plan.partner[head]);
  cohort.ledger.receive(task.task->bytes);
  finish(place, head, nullptr);
}

/// True when the collective is done, false when some cohort is not there yet.
bool Dataflow::arrive(Place place, const FlatTask& task) {
  const std::int32_t link = plan_.cohorts[place.cohort].link[task.task->group_kind];
  LinkState& state = links_[link];
  if (plan_.links[link].cohorts.size() == 1) {
    members_.assign(1, {task.ordinal, place.cohort, place.stream});
    meet(link, task.task->group_kind, place);
    return true;
  }
  state.waiting.push_back({task.ordinal, place.cohort, place.stream});
  if (++state.arrived[task.ordinal] < static_cast<std::int32_t>(plan_.links[link].cohorts.size())) {
    return false;
  }
  members_.clear();
  std::size_t kept = 0;
  for (const Arrival& arrival : state.waiting) {
    if (arrival.ordinal == task.ordinal) {
      members_.push_back(arrival);
    } else {
      state.waiting[kept++] = arrival;
    }
  }
  state.waiting.resize(kept);
  meet(link, task.task->group_kind, place);
  return true;
}

/// All of members_ are there.
void Dataflow::meet(std::int32_t link, std::int32_t kind, Place last) {
  group_times(members_, plan_.links[link].groups, kind);
  for (const Arrival& member : members_) {
    const Place place{member.cohort, member.stream};
    transfer(place, head_of(place));
    if (place.cohort != last.cohort || place.stream != last.stream) {
      runnable_.push_back(place);
    }
  }
}

/// The begin and the duration of each group's transfer: the largest over its members.
void Dataflow::group_times(const std::vector<Arrival>& members,
                           std::int32_t groups,
                           std::int32_t kind) {
  group_begin_.assign(groups, 0);
  group_duration_.assign(groups, 0);
  for (const Arrival& member : members) {
    const Place place{member.cohort, member.stream};
    const Times& clock = stream_of(place).clock;
    const std::vector<std::int32_t>& group = plan_.cohorts[member.cohort].group[kind];
    prices_.each(member.cohort, list_of(place).tasks[head_of(place)], durations_);
    for (std::size_t i = 0; i < clock.size(); ++i) {
      group_begin_[group[i]] = std::max(group_begin_[group[i]], clock[i]);
      group_duration_[group[i]] = std::max(group_duration_[group[i]], durations_[i]);
    }
  }
}

void Dataflow::transfer(Place place, std::int32_t head) {
  const FlatTask& task = list_of(place).tasks[head];
  const std::vector<std::int32_t>& group = plan_.cohorts[place.cohort].group[task.task->group_kind];
  CohortState& cohort = cohorts_[place.cohort];
  Times& clock = cohort.streams[place.stream].clock;
  begin_.resize(clock.size());
  durations_.resize(clock.size());
  for (std::size_t i = 0; i < clock.size(); ++i) {
    begin_[i] = group_begin_[group[i]];
    durations_[i] = group_duration_[group[i]];
  }
  if (place.stream == 0) {
    cohort.ledger.idle(clock, begin_);
    cohort.ledger.busy(task.task->account, durations_);
  }
  if (role_of(place) == StreamRole::kCollective) {
    cohort.ledger.member_wait(account_of(place), clock, begin_);
    cohort.ledger.transfer(account_of(place), durations_);
    cohort.ledger.sent(account_of(place), task.task->bytes);
  }
  clock = begin_;
  add(clock, durations_);
  if (role_of(place) == StreamRole::kCollective && list_of(place).feeds_primary[place.stream]) {
    cohort.ledger.remember(place.stream, head, begin_, clock, cohort.streams[0].clock);
  }
  finish(place, head, &begin_);
}

}  // namespace foretrain
