#pragma once

#include "foretrain/flow.h"
#include "foretrain/program.h"
#include "sim/engine/contention.h"
#include "sim/engine/lengths.h"
#include "sim/engine/unroll.h"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <vector>

/// The event evaluator. What takes the same time whatever else runs is worked out as soon as what
/// it waits for is known; transfers on links that can fill begin and end in order of time. It
/// shares nothing with the dataflow evaluator but the program, and keeps everything it saw.
namespace foretrain {

/// When a task ran, in ps; -1: it has not.
struct Executed {
  std::int64_t start = -1;  ///< its stream was given to it
  std::int64_t begin = -1;  ///< collectives: the last member was there
  std::int64_t end = -1;
};

class EventRun {
 public:
  /// Factors are those of step - first_measured. Behind `steps` more begin as these end, and run as
  /// far as they can slow these.
  EventRun(const Program& program,
           std::int32_t steps,
           std::int32_t behind,
           std::int64_t first_measured);

  /// False: nothing can go on, with tasks left.
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
  std::vector<double> link_bytes(std::int32_t step) const;

 private:
  struct StreamHead {
    std::int64_t clock = 0;  ///< end of the task before
    std::int32_t step = 0, position = 0;
    bool busy = false;     ///< its task has come to it and ends at a time not known yet
    bool put_off = false;  ///< in later_
    const Executed* awaited = nullptr;  ///< found not to have ended
  };
  struct Member {
    std::int32_t instance = 0, step = 0, task = 0;
  };
  /// A collective, not all of whose members are there.
  struct Gathering {
    std::int32_t step = 0, ordinal = 0;
    std::vector<Member> members;
  };
  /// A transfer on links that can fill: a send or a whole collective.
  struct Flight {
    const std::vector<LinkUse>* uses = nullptr;
    double limit = 0;
    Duration alone{};  ///< at the limit
    std::vector<Member> members;
  };
  struct Begin {
    std::int64_t time = 0, sequence = 0;
    std::size_t flight = 0;
    auto operator<=>(const Begin&) const = default;
  };
  /// A task of a step behind.
  struct Later {
    std::int64_t time = 0;
    std::int32_t instance = 0, stream = 0;
    auto operator<=>(const Later&) const = default;
  };
  template <class T>
  using EarliestFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;
  /// What a transfer goes over. `contended`: the uses of links that can fill.
  struct Path {
    const SharedPath* whole = nullptr;  ///< null: it shares nothing
    const std::vector<LinkUse>* contended = nullptr;
    std::size_t number = 0;  ///< among all
  };

  void touch(std::int32_t instance);
  void advance_touched();
  bool advance(std::int32_t instance, std::int32_t stream);
  /// When the stream's next task starts; -1: something it waits for has not ended.
  std::int64_t start_of_next(std::int32_t instance, StreamHead& head, std::int32_t index) const;
  const Executed& matching_send(const Member& receive) const;
  void start(const Member& member, std::int64_t now);
  void arrive(const Member& member);
  void meet(std::int32_t kind, std::int32_t group, std::span<const Member> members);
  void transfer(const Length& length,
                const Path& path,
                std::int64_t now,
                std::span<const Member> members);
  void complete(const Member& member, std::int64_t end);
  void enter_step(std::int32_t step);
  void take_later();
  void begin_flights();
  void end_flights();

  Path path_of_group(std::int32_t kind, std::int32_t group) const;
  Path path_of_send(std::int32_t instance, std::int32_t slot) const;
  Length length(const Member& member) const {
    return lengths_.of(member.instance, member.step, member.task);
  }
  Executed& entry(const Member& member) {
    return log_[member.step][first_task_[member.instance] + member.task];
  }

  const Program& program_;
  std::int32_t steps_;      ///< wanted
  std::int32_t all_steps_;  ///< with those behind
  std::int64_t now_ = 0;    ///< nothing before it is to come
  Contention contention_;
  Transfers transfers_;
  std::vector<std::size_t> first_path_;          ///< per kind, into sent_; last: of sends
  std::vector<std::vector<std::int64_t>> sent_;  ///< [step][path]: ps at its limit
  std::vector<UnrolledTemplate> lists_;
  Lengths lengths_;
  std::vector<std::size_t> first_task_;         ///< per instance, into a step's log
  std::size_t tasks_ = 0;                       ///< of a step
  std::vector<std::vector<Executed>> log_;      ///< per step; empty: nobody is there
  std::vector<std::vector<StreamHead>> heads_;  ///< [instance][stream]
  std::vector<std::vector<std::vector<Gathering>>> gathering_;  ///< [kind][group]
  std::vector<Flight> flights_;
  std::vector<std::size_t> free_flights_;
  EarliestFirst<Begin> begins_;
  EarliestFirst<Later> later_;
  std::int64_t sequence_ = 0;
  std::int64_t left_ = 0;  ///< tasks of the steps wanted
  std::vector<std::int32_t> touched_;
  std::vector<bool> is_touched_;
};

}  // namespace foretrain
