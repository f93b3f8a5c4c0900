#include "sim/engine/dataflow.h"

#include <algorithm>

namespace foretrain {

void LiveValues::keep(std::int32_t task, const Times& values, std::int32_t readers) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::int32_t>(buffers_.size()));
    buffers_.emplace_back();
    readers_.push_back(0);
  }
  const std::int32_t buffer = free_.back();
  free_.pop_back();
  buffers_[buffer] = values;
  readers_[buffer] = readers;
  buffer_of_[task] = buffer;
}

void LiveValues::release(std::int32_t task) {
  const std::int32_t buffer = buffer_of_[task];
  if (--readers_[buffer] == 0) {
    free_.push_back(buffer);
    buffer_of_[task] = -1;
  }
}

Dataflow::Dataflow(const Program& program, const RunOptions& options)
    : program_(program),
      measured_steps_(options.measured_steps),
      plan_(make_plan(program)),
      prices_(program, plan_),
      links_(plan_.links.size()) {
  for (const Cohort& cohort : plan_.cohorts) {
    const FlatList& list = plan_.lists[cohort.list];
    const std::size_t n = cohort.instances.size();
    const Times zeros(n, 0);
    CohortState state{std::vector<StreamState>(program.streams.size()),
                      LiveValues(list.tasks.size()),
                      Ledger(program, n, static_cast<std::int32_t>(list.tasks.size())),
                      std::vector<Times>(list.carried.size(), zeros),
                      std::vector<Times>(list.carried.size(), zeros),
                      zeros,
                      zeros,
                      zeros,
                      {}};
    for (StreamState& stream : state.streams) {
      stream.clock = zeros;
    }
    for (std::size_t kind = 0; kind < program.group_kinds.size(); ++kind) {
      if (cohort.link[kind] >= 0) {
        auto& arrived = links_[cohort.link[kind]].arrived;
        arrived.resize(std::max<std::size_t>(arrived.size(), list.collectives[kind]), 0);
      }
    }
    cohorts_.push_back(std::move(state));
  }
  std::vector<std::int32_t> cohort_of(program.instances.size(), 0);
  for (std::size_t c = 0; c < plan_.cohorts.size(); ++c) {
    for (const std::int32_t instance : plan_.cohorts[c].instances) {
      cohort_of[instance] = static_cast<std::int32_t>(c);
    }
  }
  for (const std::int32_t instance : options.recorded_instances) {
    cohorts_[cohort_of[instance]].recorded.push_back(plan_.place[instance]);
  }
}

bool Dataflow::run_step(std::int64_t measured_step) {
  ++step_;
  measured_step_ = measured_step;
  prices_.set_step(measured_step);
  for (LinkState& link : links_) {
    std::fill(link.arrived.begin(), link.arrived.end(), 0);
  }
  for (std::size_t c = 0; c < cohorts_.size(); ++c) {
    CohortState& cohort = cohorts_[c];
    cohort.ledger.begin_step(step_, measured_step >= 0, measured_step + 1 == measured_steps_);
    for (std::size_t s = 0; s < cohort.streams.size(); ++s) {
      cohort.streams[s].next = 0;
      runnable_.push_back({static_cast<std::int32_t>(c), static_cast<std::int32_t>(s)});
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
  for (std::size_t c = 0; c < cohorts_.size(); ++c) {
    const FlatList& list = plan_.lists[plan_.cohorts[c].list];
    for (std::size_t s = 0; s < list.streams.size(); ++s) {
      if (cohorts_[c].streams[s].next < static_cast<std::int32_t>(list.streams[s].size())) {
        return false;
      }
    }
  }
  return true;
}

std::int32_t Dataflow::head_of(Place place) {
  const auto& list = list_of(place).streams[place.stream];
  const std::int32_t next = stream_of(place).next;
  return next < static_cast<std::int32_t>(list.size()) ? list[next] : -1;
}

void Dataflow::advance(Place place) {
  for (std::int32_t head = head_of(place); head >= 0; head = head_of(place)) {
    const FlatTask& task = list_of(place).tasks[head];
    if (must_wait(place, task)) {
      return;
    }
    start(place, head);
    switch (task.task->kind) {
      case TaskKind::kLocal:
      case TaskKind::kSend:
        run_alone(place, head);
        break;
      case TaskKind::kReceive:
        receive(place, head);
        break;
      case TaskKind::kCollective:
        if (!arrive(place, task)) {
          return;
        }
        break;
    }
  }
}

bool Dataflow::must_wait(Place place, const FlatTask& task) {
  const FlatList& list = list_of(place);
  for (std::int32_t w = 0; w < task.wait_count; ++w) {
    const FlatWait& wait = list.waits[task.first_wait + w];
    StreamState& stream = cohorts_[place.cohort].streams[wait.stream];
    if (!wait.previous_step && wait_for(place, stream, wait.position)) {
      return true;
    }
  }
  if (task.task->kind != TaskKind::kReceive) {
    return false;
  }
  const Cohort& cohort = plan_.cohorts[place.cohort];
  const std::int32_t sender = cohort.partner[list.streams[place.stream][task.position]];
  if (sender < 0) {
    return true;  // never comes
  }
  const std::int32_t peer = cohort.peer_cohort[task.task->peer_slot];
  const FlatTask& sent = plan_.lists[plan_.cohorts[peer].list].tasks[sender];
  return wait_for(place, cohorts_[peer].streams[sent.task->stream], sent.position);
}

/// False when the stream has done the task at the position; else leaves a waiter with it.
bool Dataflow::wait_for(Place place, StreamState& stream, std::int32_t position) {
  if (position < stream.next) {
    return false;
  }
  stream.waiters.push_back({position, place.cohort, place.stream});
  stream.wake_at = std::min(stream.wake_at, position);
  return true;
}

void Dataflow::wake(StreamState& stream) {
  if (stream.next <= stream.wake_at) {
    return;
  }
  stream.wake_at = std::numeric_limits<std::int32_t>::max();
  std::size_t kept = 0;
  for (const Waiter& waiter : stream.waiters) {
    if (waiter.position < stream.next) {
      runnable_.push_back({waiter.cohort, waiter.stream});
    } else {
      stream.wake_at = std::min(stream.wake_at, waiter.position);
      stream.waiters[kept++] = waiter;
    }
  }
  stream.waiters.resize(kept);
}

/// The stream's clock becomes the task's own start.
void Dataflow::start(Place place, std::int32_t head) {
  const FlatList& list = list_of(place);
  const FlatTask& task = list.tasks[head];
  CohortState& cohort = cohorts_[place.cohort];
  Times& clock = cohort.streams[place.stream].clock;
  const bool gap = place.stream == 0 && (task.wait_count > 0 || list.host_bound);
  if (gap) {
    before_ = clock;
  }
  causes_.clear();
  for (std::int32_t w = 0; w < task.wait_count; ++w) {
    const FlatWait& wait = list.waits[task.first_wait + w];
    const Times& end = wait.previous_step ? cohort.carried[list.tasks[wait.producer].carried]
                                          : cohort.values.at(wait.producer);
    max_into(clock, end);
    causes_.push_back({&end, wait.stream});
  }
  if (list.host_bound) {
    max_into_shifted(clock, cohort.host_base, task.launch);
  }
  if (gap) {
    cohort.ledger.gap(before_, clock, causes_);
  }
  release_inputs(place, task);
  if (measured_step_ >= 0 && !cohort.recorded.empty()) {
    Times& arrival = cohort.streams[place.stream].arrival;
    arrival.clear();
    for (const std::int32_t member : cohort.recorded) {
      arrival.push_back(clock[member]);
    }
  }
}

void Dataflow::release_inputs(Place place, const FlatTask& task) {
  const FlatList& list = list_of(place);
  CohortState& cohort = cohorts_[place.cohort];
  for (std::int32_t w = 0; w < task.wait_count; ++w) {
    const FlatWait& wait = list.waits[task.first_wait + w];
    if (place.stream == 0) {
      cohort.ledger.forget(wait.stream, wait.producer, wait.previous_step);
    }
    if (!wait.previous_step) {
      cohort.values.release(wait.producer);
    }
  }
}

void Dataflow::finish(Place place, std::int32_t head, const Times* begin) {
  const Cohort& plan = plan_.cohorts[place.cohort];
  const FlatTask& task = list_of(place).tasks[head];
  const Template& list = program_.templates[plan.list];
  CohortState& cohort = cohorts_[place.cohort];
  StreamState& stream = cohort.streams[place.stream];
  if (task.readers > 0) {
    cohort.values.keep(head, stream.clock, task.readers);
  }
  if (task.carried >= 0) {
    cohort.next_carried[task.carried] = stream.clock;
  }
  if (head == list.host_sync_task) {
    cohort.next_host_base = stream.clock;
  }
  if (head == list.step_end_task) {
    cohort.step_end = stream.clock;
    cohort.ledger.step_end(stream.clock);
  }
  if (measured_step_ >= 0) {
    for (std::size_t r = 0; r < cohort.recorded.size(); ++r) {
      const std::int32_t member = cohort.recorded[r];
      const Instant start{Duration{stream.arrival[r]}};
      spans_.push_back({plan.instances[member],
                        static_cast<std::int32_t>(measured_step_),
                        task.call,
                        task.local,
                        start,
                        begin == nullptr ? start : Instant{Duration{(*begin)[member]}},
                        Instant{Duration{stream.clock[member]}}});
    }
  }
  ++stream.next;
  wake(stream);
}

}  // namespace foretrain
