#pragma once

#include "foretrain/engine.h"
#include "sim/engine/ledger.h"
#include "sim/engine/loops.h"
#include "sim/engine/plan.h"
#include "sim/engine/prices.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace foretrain {

/// End times that somebody still has to read, one buffer per task of one cohort; buffers are reused
/// when their last reader is done.
class LiveValues {
 public:
  explicit LiveValues(std::size_t tasks) : buffer_of_(tasks, -1) {}

  void keep(std::int32_t task, const Times& values, std::int32_t readers);
  const Times& at(std::int32_t task) const { return buffers_[buffer_of_[task]]; }
  void release(std::int32_t task);

 private:
  std::vector<std::int32_t> buffer_of_;
  std::vector<Times> buffers_;
  std::vector<std::int32_t> readers_;
  std::vector<std::int32_t> free_;
};

/// Relaxation: each stream of each cohort advances until it meets something that is not done, then
/// waits to be woken; no queue and no clock. Runs whole steps, one after another.
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
    std::int32_t position = 0;  ///< wakes when this task of the stream is done
    std::int32_t cohort = 0, stream = 0;
  };
  struct StreamState {
    std::int32_t next = 0;  ///< position in the list
    Times clock;
    std::vector<Waiter> waiters;
    std::int32_t wake_at = std::numeric_limits<std::int32_t>::max();  ///< lowest awaited position
    Times arrival;  ///< own start of the current task, of recorded members
  };
  struct CohortState {
    std::vector<StreamState> streams;
    LiveValues values;
    Ledger ledger;
    std::vector<Times> carried, next_carried;
    Times host_base, next_host_base;
    Times step_end;
    std::vector<std::int32_t> recorded;  ///< members
  };
  struct Arrival {
    std::int32_t ordinal = 0, cohort = 0, stream = 0;
  };
  struct LinkState {
    std::vector<std::int32_t> arrived;  ///< per ordinal: cohorts there
    std::vector<Arrival> waiting;
  };
  struct Place {
    std::int32_t cohort = 0, stream = 0;
  };

  void advance(Place place);
  bool must_wait(Place place, const FlatTask& task);
  bool wait_for(Place place, StreamState& stream, std::int32_t position);
  void start(Place place, std::int32_t task);
  void release_inputs(Place place, const FlatTask& task);
  void run_alone(Place place, std::int32_t task);
  void receive(Place place, std::int32_t task);
  bool arrive(Place place, const FlatTask& task);
  void meet(std::int32_t link, std::int32_t kind, Place last);
  void group_times(const std::vector<Arrival>& members, std::int32_t groups, std::int32_t kind);
  void transfer(Place place, std::int32_t task);
  void finish(Place place, std::int32_t task, const Times* begin);
  void wake(StreamState& stream);
  bool finished() const;

  const FlatList& list_of(Place place) const {
    return plan_.lists[plan_.cohorts[place.cohort].list];
  }
  StreamState& stream_of(Place place) { return cohorts_[place.cohort].streams[place.stream]; }
  std::int32_t head_of(Place place);
  StreamRole role_of(Place place) const { return program_.streams[place.stream].role; }
  std::int32_t account_of(Place place) const { return program_.streams[place.stream].account; }

  const Program& program_;
  std::int32_t measured_steps_;
  Plan plan_;
  Prices prices_;
  std::vector<CohortState> cohorts_;
  std::vector<LinkState> links_;
  std::vector<Place> runnable_;
  std::int64_t step_ = -1;
  std::int64_t measured_step_ = -1;
  std::vector<Span> spans_;
  Times before_, durations_, begin_, group_begin_, group_duration_;
  std::vector<Ledger::Cause> causes_;
  std::vector<Arrival> members_;
};

}  // namespace foretrain
