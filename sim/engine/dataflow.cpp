#include "sim/engine/dataflow.h"

#include <algorithm>

/// Which task runs when: streams, waiters, whole calls.
namespace foretrain {

Dataflow::Dataflow(const Program& program, const RunOptions& options)
    : program_(program),
      measured_steps_(options.measured_steps),
      plan_(make_plan(program)),
      prices_(program, plan_),
      links_(plan_.links.size()) {
  std::vector<std::int32_t> cohort_of(program.instances.size(), 0);
  std::size_t widest = 0;
  cohorts_.reserve(plan_.cohorts.size());
  for (const Cohort& cohort : plan_.cohorts) {
    for (const std::int32_t instance : cohort.instances) {
      cohort_of[instance] = static_cast<std::int32_t>(cohorts_.size());
    }
    widest = std::max(widest, cohort.instances.size());
    make_cohort_state(cohort);
  }
  for (Times* times : {&before_, &durations_, &begin_}) {
    times->resize(widest);
  }
  for (const std::int32_t instance : options.recorded_instances) {
    cohorts_[cohort_of[instance]].recorded.push_back(plan_.place[instance]);
  }
}

void Dataflow::make_cohort_state(const Cohort& cohort) {
  const ListPlan& list = plan_.lists[cohort.list];
  const std::size_t n = cohort.instances.size();
  const Times zeros(n, 0);
  CohortState state{std::vector<StreamState>(program_.streams.size()),
                    OpenCalls(list.calls.size(), n),
                    Ledger(program_, n),
                    std::vector<Times>(list.carried, zeros),
                    std::vector<Times>(list.carried, zeros),
                    zeros,
                    zeros,
                    zeros,
                    {}};
  for (StreamState& stream : state.streams) {
    stream.clock = zeros;
  }
  for (std::size_t kind = 0; kind < program_.group_kinds.size(); ++kind) {
    if (cohort.link[kind] >= 0) {
      auto& arrived = links_[cohort.link[kind]].arrived;
      arrived.resize(std::max<std::size_t>(arrived.size(), list.collectives[kind]), 0);
    }
  }
  cohorts_.push_back(std::move(state));
}

bool Dataflow::run_step(std::int64_t measured_step) {
  measured_step_ = measured_step;
  prices_.set_step(measured_step);
  for (LinkState& link : links_) {
    std::fill(link.arrived.begin(), link.arrived.end(), 0);
  }
  for (std::size_t c = 0; c < cohorts_.size(); ++c) {
    CohortState& cohort = cohorts_[c];
    cohort.ledger.begin_step(measured_step >= 0, measured_step + 1 == measured_steps_);
    for (std::size_t s = 0; s < cohort.streams.size(); ++s) {
      cohort.streams[s].calls_done = 0;
      cohort.streams[s].tasks_done = 0;
      runnable_.push_back({static_cast<std::int32_t>(c), static_cast<std::int32_t>(s)});
      enter_call(runnable_.back());
    }
  }
  while (!runnable_.empty()) {
    const Place place = runnable_.back();
    runnable_.pop_back();
    advance(place);
  }
  if (!finished()) {
    return false;
  }
  for (CohortState& cohort : cohorts_) {
    std::swap(cohort.carried, cohort.next_carried);
    std::swap(cohort.host_base, cohort.next_host_base);
  }
  return true;
}

bool Dataflow::finished() const {
  return std::all_of(cohorts_.begin(), cohorts_.end(), [](const CohortState& cohort) {
    return std::all_of(cohort.streams.begin(), cohort.streams.end(), [](const StreamState& stream) {
      return stream.head == kListEnd;
    });
  });
}

/// The stream comes to the next call that has tasks on it.
void Dataflow::enter_call(Place place) {
  StreamState& stream = stream_of(place);
  const std::vector<std::int32_t>& calls = list_of(place).streams[place.stream];
  const bool end = stream.calls_done == static_cast<std::int32_t>(calls.size());
  stream.head = end ? kListEnd : cursor_at(calls[stream.calls_done], 0);
}

/// The tasks, local, that the call at the head of the stream has on it.
const std::vector<std::int32_t>& Dataflow::head_tasks(Place place) const {
  const Cursor head = cohorts_[place.cohort].streams[place.stream].head;
  return plan_.blocks[list_of(place).calls[call_of(head)].block].on(place.stream);
}

/// The task at the head of the stream is done.
void Dataflow::step_head(Place place) {
  StreamState& stream = stream_of(place);
  cohorts_[place.cohort].calls.release(call_of(stream.head), 1);
  ++stream.tasks_done;
  if (index_of(stream.head) + 1 < static_cast<std::int32_t>(head_tasks(place).size())) {
    ++stream.head;
  } else {
    ++stream.calls_done;
    enter_call(place);
  }
  wake(stream);
}

Dataflow::Current Dataflow::head_of(Place place) const {
  const StreamState& stream = cohorts_[place.cohort].streams[place.stream];
  Current current;
  current.place = place;
  current.call = call_of(stream.head);
  current.local = head_tasks(place)[index_of(stream.head)];
  const CallPlan& call = list_of(place).calls[current.call];
  current.block = &plan_.blocks[call.block];
  current.planned = &current.block->tasks[current.local];
  find_waits(current, call.first_wait);
  return current;
}

/// Sets the range of the call's waits that are the task's; those before `from` are not.
void Dataflow::find_waits(Current& current, std::int32_t from) const {
  const ListPlan& list = list_of(current.place);
  const CallPlan& call = list.calls[current.call];
  const std::int32_t end = call.first_wait + call.wait_count;
  while (from < end && list.waits[from].task < current.local) {
    ++from;
  }
  current.first_wait = from;
  while (from < end && list.waits[from].task == current.local) {
    ++from;
  }
  current.last_wait = from;
}

void Dataflow::advance(Place place) {
  for (StreamState& stream = stream_of(place); stream.head != kListEnd;) {
    if (runs_whole(place.cohort, call_of(stream.head))) {
      run_call(place.cohort, call_of(stream.head));
      continue;
    }
    const Current current = head_of(place);
    if (must_wait(current)) {
      return;
    }
    start(current);
    if (current.task().kind == TaskKind::kCollective) {
      if (!arrive(current)) {
        return;
      }
      continue;
    }
    if (current.task().kind == TaskKind::kReceive) {
      receive(current);
    } else {
      run_alone(current);
    }
    step_head(place);
  }
}

/// All of its streams are at the call, what it waits for is done, and it meets no other cohort.
bool Dataflow::runs_whole(std::int32_t cohort, std::int32_t index) const {
  const Cohort& own = plan_.cohorts[cohort];
  const ListPlan& list = plan_.lists[own.list];
  const CallPlan& call = list.calls[index];
  const BlockPlan& block = plan_.blocks[call.block];
  const std::vector<StreamState>& streams = cohorts_[cohort].streams;
  if (block.receive >= 0) {
    return false;
  }
  for (const BlockPlan::OnStream& on : block.streams) {
    if (streams[on.stream].head != cursor_at(index, 0)) {
      return false;
    }
  }
  for (const BlockPlan::OfKind& kind : block.kinds) {
    if (plan_.links[own.link[kind.kind]].cohorts.size() > 1) {
      return false;
    }
  }
  for (std::int32_t w = call.first_wait; w < call.first_wait + call.wait_count; ++w) {
    const CallWait& wait = list.waits[w];
    if (wait.carried < 0 && streams[wait.stream].head <= wait.at) {
      return false;
    }
  }
  return true;
}

void Dataflow::run_call(std::int32_t cohort_index, std::int32_t index) {
  CohortState& cohort = cohorts_[cohort_index];
  Current current;
  current.place.cohort = cohort_index;
  current.call = index;
  current.block = &plan_.blocks[list_of(current.place).calls[index].block];
  const bool recorded = measured_step_ >= 0 && !cohort.recorded.empty();
  if (width(current.place) == 1 && !recorded) {
    run_tasks_of_one(current);
  } else {
    run_tasks(current);
  }
  cohort.calls.release(index, static_cast<std::int32_t>(current.block->tasks.size()));
  for (const BlockPlan::OnStream& on : current.block->streams) {
    StreamState& stream = cohort.streams[on.stream];
    stream.tasks_done += static_cast<std::int32_t>(on.tasks.size());
    ++stream.calls_done;
    enter_call({cohort_index, on.stream});
    wake(stream);
  }
}

/// All tasks of the call, one after another.
void Dataflow::run_tasks(Current current) {
  current.last_wait = list_of(current.place).calls[current.call].first_wait;
  for (const BlockTask& task : current.block->tasks) {
    current.planned = &task;
    current.place.stream = task.task->stream;
    find_waits(current, current.last_wait);
    start(current);
    if (task.task->kind == TaskKind::kCollective && width(current.place) > 1) {
      members_.assign(1, current);
      group_times(members_);
      transfer(current);
    } else {
      run_alone(current);
    }
    ++current.local;
  }
}

bool Dataflow::must_wait(const Current& current) {
  const Place place = current.place;
  std::vector<StreamState>& streams = cohorts_[place.cohort].streams;
  for (std::int32_t w = 0; w < current.planned->wait_count; ++w) {
    const BlockWait& wait = current.block->waits[current.planned->first_wait + w];
    if (wait_for(place, streams[wait.stream], cursor_at(current.call, wait.index))) {
      return true;
    }
  }
  const ListPlan& list = list_of(place);
  for (std::int32_t w = current.first_wait; w < current.last_wait; ++w) {
    const CallWait& wait = list.waits[w];
    if (wait.carried < 0 && wait_for(place, streams[wait.stream], wait.at)) {
      return true;
    }
  }
  if (current.task().kind != TaskKind::kReceive) {
    return false;
  }
  const Cohort& own = plan_of(place);
  const std::int32_t sender = own.partner[list.calls[current.call].receive];
  if (sender < 0) {
    return true;  // never comes
  }
  const std::int32_t peer = own.peer_cohort[current.task().peer_slot];
  const BlockPlan& block = plan_.blocks[plan_.lists[plan_.cohorts[peer].list].calls[sender].block];
  const BlockTask& send = block.tasks[block.send];
  return wait_for(place, stream_of({peer, send.task->stream}), cursor_at(sender, send.index));
}

/// False when the stream is past the cursor; else leaves a waiter with it.
bool Dataflow::wait_for(Place place, StreamState& stream, Cursor at) {
  if (at < stream.head) {
    return false;
  }
  stream.waiters.push_back({at, place.cohort, place.stream});
  stream.wake_at = std::min(stream.wake_at, at);
  return true;
}

void Dataflow::wake(StreamState& stream) {
  if (stream.head <= stream.wake_at) {
    return;
  }
  stream.wake_at = kListEnd;
  std::size_t kept = 0;
  for (const Waiter& waiter : stream.waiters) {
    if (waiter.at < stream.head) {
      runnable_.push_back({waiter.cohort, waiter.stream});
    } else {
      stream.wake_at = std::min(stream.wake_at, waiter.at);
      stream.waiters[kept++] = waiter;
    }
  }
  stream.waiters.resize(kept);
}

}  // namespace foretrain
