#pragma once

#include "foretrain/flow.h"
#include "foretrain/program.h"
#include "sim/engine/contention.h"

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <vector>

/// The event evaluator: a clock, a totally ordered queue and one state per instance and stream. It
/// shares nothing with the dataflow evaluator but the program, and keeps everything it saw.
namespace foretrain {

/// When a task ran, in ps; -1: it has not.
struct Executed {
  std::int64_t start = -1;  ///< its stream was given to it
  std::int64_t begin = -1;  ///< collectives: the last member was there
  std::int64_t end = -1;
};

/// One template with its calls unrolled.
struct UnrolledTask {
  const Task* task = nullptr;
  const Call* call = nullptr;
  std::int32_t call_index = 0, local = 0;
  std::int32_t ordinal = -1;                 ///< collectives: n-th of the kind
  std::vector<CallDependency> dependencies;  ///< `task` unused
};
struct UnrolledTemplate {
  std::vector<UnrolledTask> tasks;
  std::vector<std::vector<std::int32_t>> streams;
  std::map<std::int32_t, std::int32_t> sends, receives;  ///< message -> task
};

UnrolledTemplate unroll(const Program& program, const Template& list);

class EventRun {
 public:
  /// Factors are those of step - first_measured.
  EventRun(const Program& program, std::int32_t steps, std::int64_t first_measured);

  /// False: the queue ran dry with tasks left.
  bool run();

  const UnrolledTemplate& list_of(std::int32_t instance) const {
    return lists_[program_.instances[instance].template_index];
  }
  const Executed& executed(std::int32_t step, std::int32_t instance, std::int32_t task) const {
    return log_[step][first_task_[instance] + task];
  }
  /// Tasks of step 0 done, per instance and stream.
  std::vector<std::vector<std::int32_t>> progress() const;
  /// Bytes over each link, of the transfers of a step.
  const std::vector<double>& link_bytes(std::int32_t step) const { return link_bytes_[step]; }

 private:
  enum class EventKind : std::uint8_t { kTaskEnd, kMeetingEnd, kLaunch, kTransferBegin };
  /// Earlier first; within an instant by kind, then in the order they were scheduled.
  struct Event {
    std::int64_t time = 0;
    EventKind kind{};
    std::int64_t sequence = 0;
    std::int32_t instance = 0, step = 0, task = 0;
    std::size_t meeting = 0;
    bool operator>(const Event& other) const {
      return std::tie(time, kind, sequence) > std::tie(other.time, other.kind, other.sequence);
    }
  };
  /// The first dependency found that is not done so often yet; -1: none.
  struct Unmet {
    std::int32_t producer = -1, needed = 0;
  };
  struct StreamHead {
    std::int32_t step = 0, position = 0;
    Unmet unmet;
    bool busy = false;
    bool launch_scheduled = false;
  };
  struct MeetingKey {
    std::int32_t kind = 0, group = 0, step = 0, ordinal = 0;
    auto operator<=>(const MeetingKey&) const = default;
  };
  struct Member {
    std::int32_t instance = 0, step = 0, task = 0;
  };

  /// A transfer on links that can fill: a send or a whole collective.
  struct Flight {
    const std::vector<LinkUse>* uses = nullptr;
    double limit = 0;
    Duration alone{};  ///< at the limit
  };
  /// What a transfer takes, and how much of that is latency.
  /// Of a transfer: all it takes alone, of that the latency, and what the rest would be unslowed by
  /// kernels beside it.
  struct Length {
    std::int64_t whole = 0, latency = 0, unslowed = 0;
    auto operator<=>(const Length&) const = default;
  };

  void push(Event event);
  std::int64_t next_instant();
  void retire_transfers();
  void retire_instant();
  void start_what_can_start();
  void try_start(std::int32_t instance, std::int32_t stream);
  Unmet unmet_dependency(std::int32_t instance, std::int32_t step, const UnrolledTask& task) const;
  bool still_unmet(std::int32_t instance, const StreamHead& head) const {
    return head.unmet.producer >= 0 &&
           done_[first_task_[instance] + head.unmet.producer] < head.unmet.needed;
  }
  std::int64_t launch_time(std::int32_t instance,
                           std::int32_t step,
                           const UnrolledTask& task) const;
  void start(const Member& member);
  void start_receive(const Member& member);
  void arrive(const Member& member);
  void transfer(const Length& length,
                const SharedPath* path,
                const std::vector<LinkUse>& contended,
                std::vector<Member> members);
  void complete_all(std::size_t meeting);
  void count_bytes(const SharedPath& path, std::int32_t step, std::int64_t unslowed);
  void meet(std::int32_t kind, std::int32_t group, std::vector<Member> members);
  void know_lengths();
  static Length length_of(const UnrolledTask& unrolled, const Factors& factors);
  Length length(const Member& member) const;
  void complete(const Member& member);
  void touch(std::int32_t instance);
  Executed& entry(const Member& member) {
    return log_[member.step][first_task_[member.instance] + member.task];
  }

  const Program& program_;
  std::int32_t steps_;
  Contention contention_;
  Transfers transfers_;
  std::vector<Flight> flights_;                  ///< by meeting
  std::vector<std::vector<double>> link_bytes_;  ///< [step][link]
  std::vector<UnrolledTemplate> lists_;
  std::vector<std::vector<Factors>> factors_;              ///< [step][factor set]
  std::vector<std::vector<std::vector<Length>>> lengths_;  ///< [template][factor set][task]
  std::vector<std::size_t> first_task_;                    ///< per instance, into a step's log
  std::vector<std::vector<Executed>> log_;                 ///< per step
  std::vector<std::int32_t> done_;                         ///< per instance and task: steps done
  std::vector<std::int32_t> receiving_;  ///< per instance and task: step it waits in, or -1
  std::vector<std::vector<StreamHead>> heads_;
  std::map<MeetingKey, std::vector<Member>> gathering_;
  std::vector<std::vector<Member>> meetings_;  ///< under way
  std::vector<std::size_t> free_meetings_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::int64_t now_ = 0;
  std::int64_t sequence_ = 0;
  std::int64_t left_ = 0;
  std::vector<std::int32_t> touched_;
  std::vector<bool> is_touched_;
};

}  // namespace foretrain
