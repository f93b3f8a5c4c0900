#pragma once

#include "foretrain/engine.h"
#include "sim/engine/ledger.h"
#include "sim/engine/loops.h"
#include "sim/engine/open_calls.h"
#include "sim/engine/plan.h"
#include "sim/engine/prices.h"

#include <cstdint>
#include <vector>

namespace foretrain {

/// Relaxation: each stream of each cohort advances until it meets something that is not done, then
/// waits to be woken; no queue and no clock. A call that meets nobody runs as a whole as soon as
/// all of its streams have come to it. Runs whole steps, one after another.
class Dataflow {
 public:
  Dataflow(const Program& program, const RunOptions& options);

  /// Runs the step; `measured_step` is negative in the warm-up. False: it cannot go on.
  bool run_step(std::int64_t measured_step);

  std::int64_t latest_end() const;       ///< over all streams
  std::int64_t latest_step_end() const;  ///< over all instances
  Times step_ends() const;               ///< per instance
  /// Every clock and value the next step depends on, relative to the latest step end.
  Times carried_state() const;
  std::vector<RankAccount> accounts() const;  ///< per instance
  std::vector<Span> take_spans() { return std::move(spans_); }
  /// Tasks done per instance and stream in the current step.
  std::vector<std::vector<std::int32_t>> progress() const;

 private:
  struct Waiter {
    Cursor at = 0;  ///< wakes when the stream is past it
    std::int32_t cohort = 0, stream = 0;
  };
  struct StreamState {
    Cursor head = kListEnd;                       ///< the next task
    std::int32_t calls_done = 0, tasks_done = 0;  ///< in this step
    Times clock;
    std::vector<Waiter> waiters;
    Cursor wake_at = kListEnd;  ///< lowest awaited
    Times arrival;              ///< own start of the current task, of recorded members
  };
  struct CohortState {
    std::vector<StreamState> streams;
    OpenCalls calls;
    Ledger ledger;
    std::vector<Times> carried, next_carried;
    Times host_base, next_host_base;
    Times step_end;
    std::vector<std::int32_t> recorded;  ///< members
  };
  struct Place {
    std::int32_t cohort = 0, stream = 0;
  };
  struct Arrival {
    std::int32_t ordinal = 0;
    Place place;
  };
  struct LinkState {
    std::vector<std::int32_t> arrived;  ///< per ordinal: cohorts there
    std::vector<Arrival> waiting;
  };
  /// A task about to run.
  struct Current {
    Place place;
    std::int32_t call = 0, local = 0;
    const BlockPlan* block = nullptr;
    const BlockTask* planned = nullptr;
    std::int32_t first_wait = 0, last_wait = 0;  ///< into ListPlan::waits; last: one past
    const Task& task() const { return *planned->task; }
  };

  void make_cohort_state(const Cohort& cohort);
  void advance(Place place);
  bool must_wait(const Current& current);
  bool wait_for(Place place, StreamState& stream, Cursor at);
  void wake(StreamState& stream);
  void enter_call(Place place);
  void step_head(Place place);
  bool finished() const;
  const std::vector<std::int32_t>& head_tasks(Place place) const;
  Current head_of(Place place) const;
  void find_waits(Current& current, std::int32_t from) const;

  bool runs_whole(std::int32_t cohort, std::int32_t call) const;
  void run_call(std::int32_t cohort, std::int32_t call);
  void run_tasks(Current current);
  void run_tasks_of_one(Current current);
  std::int64_t start_of_one(const Current& current, std::int64_t before, const std::int64_t* ends);
  void account_of_one(const Current& current, std::int64_t start, std::int64_t duration);

  void start(const Current& current);
  void wait_for_inputs(const Current& current, std::int64_t* clock);
  void release_inputs(const Current& current);
  void run_alone(const Current& current);
  void receive(const Current& current);
  bool arrive(const Current& current);
  void meet(const std::vector<Current>& members);
  void group_times(const std::vector<Current>& members);
  void transfer(const Current& current);
  void finish(const Current& current, const std::int64_t* begin);
  void keep(const Current& current, const Times& end);
  void record(const Current& current, const std::int64_t* begin);

  const Cohort& plan_of(Place place) const { return plan_.cohorts[place.cohort]; }
  const ListPlan& list_of(Place place) const { return plan_.lists[plan_of(place).list]; }
  const CallPlan& plan_of(const Current& current) const {
    return list_of(current.place).calls[current.call];
  }
  std::size_t width(Place place) const { return plan_of(place).instances.size(); }
  StreamState& stream_of(Place place) { return cohorts_[place.cohort].streams[place.stream]; }
  StreamRole role_of(Place place) const { return program_.streams[place.stream].role; }
  std::int32_t account_of(Place place) const { return program_.streams[place.stream].account; }

  const Program& program_;
  std::int32_t measured_steps_;
  ProgramPlan plan_;
  Prices prices_;
  std::vector<CohortState> cohorts_;
  std::vector<LinkState> links_;
  std::vector<Place> runnable_;
  std::int64_t measured_step_ = -1;
  std::vector<Span> spans_;
  Times before_, durations_, begin_;  ///< as wide as the widest cohort
  Times group_begin_, group_duration_;
  std::vector<Ledger::Cause> causes_;
  std::vector<Current> members_;
};

}  // namespace foretrain
