#include "sim/engine/dataflow.h"

#include <algorithm>

/// The same rules in scalars: a folded program has cohorts of one instance, and nearly all of its
/// tasks are in calls that run whole. Collectives there meet nobody.
namespace foretrain {

/// All tasks of the call, one after another.
void Dataflow::run_tasks_of_one(Current current) {
  const CallPlan& call = list_of(current.place).calls[current.call];
  CohortState& cohort = cohorts_[current.place.cohort];
  const auto tasks = static_cast<std::int32_t>(current.block->tasks.size());
  std::int64_t* ends = cohort.calls.open(current.call, current.block->rows, tasks + call.readers);
  current.first_wait = current.last_wait = call.first_wait;
  for (const BlockTask& planned : current.block->tasks) {
    const Task& task = *planned.task;
    current.planned = &planned;
    current.place.stream = task.stream;
    if (call.wait_count > 0) {
      find_waits(current, current.last_wait);
    }
    std::int64_t& clock = cohort.streams[task.stream].clock.front();
    const std::int64_t start = start_of_one(current, clock, ends);
    const std::int64_t duration = prices_.one(current.place.cohort, call, planned);
    clock = start + duration;
    if (planned.row >= 0) {
      ends[planned.row] = clock;
    }
    account_of_one(current, start, duration);
    if (call.kept) {
      keep(current, cohort.streams[task.stream].clock);
    }
    ++current.local;
  }
}

/// The task's own start, given the end of the task before it on its stream.
std::int64_t Dataflow::start_of_one(const Current& current,
                                    std::int64_t before,
                                    const std::int64_t* ends) {
  const ListPlan& list = list_of(current.place);
  CohortState& cohort = cohorts_[current.place.cohort];
  std::int64_t start = before;
  std::int32_t cause = -1;  // the lowest stream that it waits for last; -1: none
  const auto wait_until = [&start, &cause](std::int64_t end, std::int32_t stream) {
    if (end > start || (end == start && stream < cause)) {
      start = end;
      cause = stream;
    }
  };
  for (std::int32_t w = 0; w < current.planned->wait_count; ++w) {
    const BlockWait& wait = current.block->waits[current.planned->first_wait + w];
    wait_until(ends[wait.row], wait.stream);
  }
  for (std::int32_t w = current.first_wait; w < current.last_wait; ++w) {
    const CallWait& wait = list.waits[w];
    if (wait.carried >= 0) {
      wait_until(cohort.carried[wait.carried].front(), wait.stream);
    } else {
      wait_until(*cohort.calls.end(call_of(wait.at), wait.row), wait.stream);
      cohort.calls.release(call_of(wait.at), 1);
    }
  }
  const std::int64_t launched =
      cohort.host_base.front() + list.calls[current.call].launch + current.planned->launch;
  if (list.host_bound && launched > start) {
    start = launched;
    cause = -1;
  }
  if (current.place.stream == 0 && start > before) {
    cohort.ledger.gap_of(0, before, start, cause);
  }
  return start;
}

void Dataflow::account_of_one(const Current& current, std::int64_t start, std::int64_t duration) {
  const Place place = current.place;
  const Task& task = current.task();
  CohortState& cohort = cohorts_[place.cohort];
  const Ledger::Spent spent{nullptr, duration};
  if (place.stream == 0) {
    cohort.ledger.busy(task.account, spent);
  } else if (role_of(place) == StreamRole::kCollective) {
    cohort.ledger.transfer(account_of(place), spent);
    cohort.ledger.sent(account_of(place), task.bytes);
    if (list_of(place).feeds_primary[place.stream]) {
      const std::int64_t end = start + duration;
      cohort.ledger.remember(place.stream, &start, &end, cohort.streams[0].clock.data());
    }
  }
  if (task.kind == TaskKind::kSend) {
    cohort.ledger.send(spent, task.bytes);
  }
}

}  // namespace foretrain
