#include "sim/engine/dataflow.h"

#include <algorithm>

/// The rules of the task kinds, for all instances of a cohort at once. On entry the stream's clock
/// is the task's own start; on return it is its end.
namespace foretrain {

/// The stream's clock becomes the task's own start.
void Dataflow::start(const Current& current) {
  const ListPlan& list = list_of(current.place);
  CohortState& cohort = cohorts_[current.place.cohort];
  StreamState& stream = cohort.streams[current.place.stream];
  const std::size_t n = stream.clock.size();
  const CallPlan& call = list.calls[current.call];
  const auto tasks = static_cast<std::int32_t>(current.block->tasks.size());
  cohort.calls.open(current.call, current.block->rows, tasks + call.readers);
  const bool waits = current.planned->wait_count > 0 || current.first_wait < current.last_wait;
  const bool gap = current.place.stream == 0 && (waits || list.host_bound);
  if (gap) {
    std::copy_n(stream.clock.data(), n, before_.data());
  }
  causes_.clear();
  if (waits) {
    wait_for_inputs(current, stream.clock.data());
  }
  if (list.host_bound) {
    max_into_shifted(
        stream.clock.data(), cohort.host_base.data(), call.launch + current.planned->launch, n);
  }
  if (gap) {
    cohort.ledger.gap(before_.data(), stream.clock.data(), causes_);
  }
  if (waits) {
    release_inputs(current);
  }
  if (measured_step_ >= 0 && !cohort.recorded.empty()) {
    stream.arrival.clear();
    for (const std::int32_t member : cohort.recorded) {
      stream.arrival.push_back(stream.clock[member]);
    }
  }
}

void Dataflow::wait_for_inputs(const Current& current, std::int64_t* clock) {
  const ListPlan& list = list_of(current.place);
  CohortState& cohort = cohorts_[current.place.cohort];
  const std::size_t n = width(current.place);
  for (std::int32_t w = 0; w < current.planned->wait_count; ++w) {
    const BlockWait& wait = current.block->waits[current.planned->first_wait + w];
    const std::int64_t* end = cohort.calls.end(current.call, wait.row);
    max_into(clock, end, n);
    causes_.push_back({end, wait.stream});
  }
  for (std::int32_t w = current.first_wait; w < current.last_wait; ++w) {
    const CallWait& wait = list.waits[w];
    const std::int64_t* end = wait.carried >= 0 ? cohort.carried[wait.carried].data()
                                                : cohort.calls.end(call_of(wait.at), wait.row);
    max_into(clock, end, n);
    causes_.push_back({end, wait.stream});
  }
}

void Dataflow::release_inputs(const Current& current) {
  const std::vector<CallWait>& waits = list_of(current.place).waits;
  for (std::int32_t w = current.first_wait; w < current.last_wait; ++w) {
    if (waits[w].carried < 0) {
      cohorts_[current.place.cohort].calls.release(call_of(waits[w].at), 1);
    }
  }
}

/// Tasks that meet nobody; a collective of one instance is one of them.
void Dataflow::run_alone(const Current& current) {
  const Place place = current.place;
  const Task& task = current.task();
  CohortState& cohort = cohorts_[place.cohort];
  Times& clock = cohort.streams[place.stream].clock;
  const std::size_t n = clock.size();
  const bool transfer = role_of(place) == StreamRole::kCollective;
  const bool remembered = transfer && list_of(place).feeds_primary[place.stream];
  if (remembered) {
    std::copy_n(clock.data(), n, begin_.data());
  }
  const bool uniform = prices_.uniform(place.cohort);
  const std::int64_t duration =
      uniform ? prices_.one(place.cohort, plan_of(current), *current.planned) : 0;
  if (uniform) {
    add_scalar(clock.data(), duration, n);
  } else {
    prices_.each(place.cohort, plan_of(current), *current.planned, durations_.data());
    add(clock.data(), durations_.data(), n);
  }
  const Ledger::Spent spent{uniform ? nullptr : durations_.data(), duration};
  if (place.stream == 0) {
    cohort.ledger.busy(task.account, spent);
  } else if (transfer) {
    cohort.ledger.transfer(account_of(place), spent);
    cohort.ledger.sent(account_of(place), task.bytes);
  }
  if (task.kind == TaskKind::kSend) {
    cohort.ledger.send(spent, task.bytes);
  }
  if (remembered) {
    cohort.ledger.remember(
        place.stream, begin_.data(), clock.data(), cohort.streams[0].clock.data());
  }
  finish(current, nullptr);
}

void Dataflow::receive(const Current& current) {
  const Place place = current.place;
  const Cohort& plan = plan_of(place);
  const int slot = current.task().peer_slot;
  CohortState& cohort = cohorts_[place.cohort];
  Times& clock = cohort.streams[place.stream].clock;
  const std::int32_t peer = plan.peer_cohort[slot];
  const std::int32_t sender = plan.partner[list_of(place).calls[current.call].receive];
  const BlockPlan& sending =
      plan_.blocks[plan_.lists[plan_.cohorts[peer].list].calls[sender].block];
  OpenCalls& sent = cohorts_[peer].calls;
  if (place.stream == 0) {
    std::copy_n(clock.data(), clock.size(), before_.data());
  }
  max_into_gathered(clock.data(),
                    sent.end(sender, sending.tasks[sending.send].row),
                    plan.peer[slot].data(),
                    clock.size());
  if (place.stream == 0) {
    cohort.ledger.idle(before_.data(), clock.data());
  }
  sent.release(sender, 1);
  cohort.ledger.receive(current.task().bytes);
  finish(current, nullptr);
}

/// Runs the collective if all cohorts are there. False: some is not.
bool Dataflow::arrive(const Current& current) {
  const std::int32_t kind = current.task().group_kind;
  const std::int32_t link = plan_of(current.place).link[kind];
  const std::size_t cohorts = plan_.links[link].cohorts.size();
  LinkState& state = links_[link];
  if (cohorts == 1) {
    meet({current});
    return true;
  }
  std::int32_t ordinal = list_of(current.place).calls[current.call].first_ordinal;
  for (const BlockPlan::OfKind* of = current.block->kinds.data(); of->kind != kind; ++of) {
    ++ordinal;
  }
  ordinal = list_of(current.place).ordinals[ordinal] + current.planned->ordinal;
  state.waiting.push_back({ordinal, current.place});
  if (++state.arrived[ordinal] < static_cast<std::int32_t>(cohorts)) {
    return false;
  }
  members_.clear();
  std::size_t kept = 0;
  for (const Arrival& arrival : state.waiting) {
    if (arrival.ordinal == ordinal) {
      members_.push_back(head_of(arrival.place));
    } else {
      state.waiting[kept++] = arrival;
    }
  }
  state.waiting.resize(kept);
  meet(members_);
  return true;
}

/// All of the members are there; the last one to come is the one that advances now.
void Dataflow::meet(const std::vector<Current>& members) {
  group_times(members);
  for (const Current& member : members) {
    transfer(member);
    step_head(member.place);
    if (&member != &members.back()) {
      runnable_.push_back(member.place);
    }
  }
}

/// The begin and the duration of each group's transfer: the largest over its members.
void Dataflow::group_times(const std::vector<Current>& members) {
  const std::int32_t kind = members.front().task().group_kind;
  const std::int32_t link = plan_of(members.front().place).link[kind];
  group_begin_.assign(plan_.links[link].groups, 0);
  group_duration_.assign(plan_.links[link].groups, 0);
  for (const Current& member : members) {
    const Times& clock = stream_of(member.place).clock;
    const std::vector<std::int32_t>& group = plan_of(member.place).group[kind];
    prices_.each(member.place.cohort, plan_of(member), *member.planned, durations_.data());
    for (std::size_t i = 0; i < clock.size(); ++i) {
      group_begin_[group[i]] = std::max(group_begin_[group[i]], clock[i]);
      group_duration_[group[i]] = std::max(group_duration_[group[i]], durations_[i]);
    }
  }
}

void Dataflow::transfer(const Current& current) {
  const Place place = current.place;
  const Task& task = current.task();
  const std::vector<std::int32_t>& group = plan_of(place).group[task.group_kind];
  CohortState& cohort = cohorts_[place.cohort];
  Times& clock = cohort.streams[place.stream].clock;
  const std::size_t n = clock.size();
  for (std::size_t i = 0; i < n; ++i) {
    begin_[i] = group_begin_[group[i]];
    durations_[i] = group_duration_[group[i]];
  }
  const Ledger::Spent spent{durations_.data(), 0};
  const bool collective = role_of(place) == StreamRole::kCollective;
  if (place.stream == 0) {
    cohort.ledger.idle(clock.data(), begin_.data());
    cohort.ledger.busy(task.account, spent);
  }
  if (collective) {
    cohort.ledger.member_wait(account_of(place), clock.data(), begin_.data());
    cohort.ledger.transfer(account_of(place), spent);
    cohort.ledger.sent(account_of(place), task.bytes);
  }
  std::copy_n(begin_.data(), n, clock.data());
  add(clock.data(), durations_.data(), n);
  if (collective && list_of(place).feeds_primary[place.stream]) {
    cohort.ledger.remember(
        place.stream, begin_.data(), clock.data(), cohort.streams[0].clock.data());
  }
  finish(current, begin_.data());
}

/// The stream's clock is the task's end. `begin`: of a collective's transfer.
void Dataflow::finish(const Current& current, const std::int64_t* begin) {
  CohortState& cohort = cohorts_[current.place.cohort];
  const Times& clock = cohort.streams[current.place.stream].clock;
  if (current.planned->row >= 0) {
    std::copy_n(clock.data(), clock.size(), cohort.calls.end(current.call, current.planned->row));
  }
  if (list_of(current.place).calls[current.call].kept) {
    keep(current, clock);
  }
  if (measured_step_ >= 0 && !cohort.recorded.empty()) {
    record(current, begin);
  }
}

void Dataflow::keep(const Current& current, const Times& end) {
  CohortState& cohort = cohorts_[current.place.cohort];
  const std::vector<KeptTask>& kept = list_of(current.place).kept;
  const auto found = std::lower_bound(
      kept.begin(), kept.end(), current, [](const KeptTask& task, const Current& wanted) {
        return std::pair(task.call, task.local) < std::pair(wanted.call, wanted.local);
      });
  if (found == kept.end() || found->call != current.call || found->local != current.local) {
    return;
  }
  if (found->carried >= 0) {
    cohort.next_carried[found->carried] = end;
  }
  if (found->host_sync) {
    cohort.next_host_base = end;
  }
  if (found->step_end) {
    cohort.step_end = end;
    cohort.ledger.step_end(end);
  }
}

void Dataflow::record(const Current& current, const std::int64_t* begin) {
  const CohortState& cohort = cohorts_[current.place.cohort];
  const StreamState& stream = cohort.streams[current.place.stream];
  for (std::size_t r = 0; r < cohort.recorded.size(); ++r) {
    const std::int32_t member = cohort.recorded[r];
    const Instant start{Duration{stream.arrival[r]}};
    spans_.push_back({plan_of(current.place).instances[member],
                      static_cast<std::int32_t>(measured_step_),
                      current.call,
                      current.local,
                      start,
                      begin == nullptr ? start : Instant{Duration{begin[member]}},
                      Instant{Duration{stream.clock[member]}}});
  }
}

}  // namespace foretrain
