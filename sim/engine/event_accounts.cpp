#include "sim/engine/event_accounts.h"

#include <algorithm>

namespace foretrain {
namespace {

class Reader {
 public:
  Reader(const Program& program,
         const EventRun& run,
         std::int32_t instance,
         std::int32_t first_measured,
         std::int32_t steps)
      : program_(program),
        run_(run),
        list_(run.list_of(instance)),
        instance_(instance),
        first_(first_measured),
        steps_(steps) {
    const std::int32_t last =
        program.templates[program.instances[instance].template_index].step_end_task;
    from_ = run.executed(first_measured - 1, instance, last).end;
    to_ = run.executed(steps - 1, instance, last).end;
    const std::size_t exposed = program.exposed_accounts.size();
    account_.window = Duration{to_ - from_};
    account_.busy.resize(program.busy_accounts.size());
    account_.exposed.resize(exposed);
    account_.transfer.resize(exposed);
    account_.member_wait.resize(exposed);
    account_.bytes.resize(exposed);
    running_.resize(program.streams.size());
  }

  RankAccount read() {
    primary();
    for (std::int32_t step = first_; step < steps_; ++step) {
      for (const std::int32_t task : list_.communication) {
        communication(*list_.tasks[task].task, run_.executed(step, instance_, task));
      }
    }
    return account_;
  }

 private:
  /// The part of an interval that lies in the window.
  Duration inside(std::int64_t begin, std::int64_t end) const {
    return Duration{std::max<std::int64_t>(0, std::min(end, to_) - std::max(begin, from_))};
  }

  /// The primary stream, which all tasks of steps before the last one unmeasured leave before the
  /// window.
  void primary() {
    std::int64_t before = 0;
    for (std::int32_t step = first_ - 1; step < steps_; ++step) {
      for (const std::int32_t task : list_.streams[0]) {
        const Executed& ran = run_.executed(step, instance_, task);
        if (ran.end > from_ && before < to_) {
          primary(step, task, before);
        }
        before = ran.end;
      }
    }
  }

  void primary(std::int32_t step, std::int32_t index, std::int64_t before) {
    const Executed& ran = run_.executed(step, instance_, index);
    const Task& task = *list_.tasks[index].task;
    if (ran.start > before) {
      gap(step, list_.tasks[index], before, ran.start);
    }
    account_.idle += inside(ran.start, ran.begin);
    if (task.kind == TaskKind::kReceive) {
      account_.idle += inside(ran.begin, ran.end);
    } else {
      account_.busy[task.account] += inside(ran.begin, ran.end);
    }
  }

  void gap(std::int32_t step, const UnrolledTask& task, std::int64_t begin, std::int64_t end) {
    std::int32_t stream = -1;
    for (const CallDependency& wait : list_.waits_of(task)) {
      const std::int32_t from = step - (wait.previous_step ? 1 : 0);
      if (from < 0 || run_.executed(from, instance_, wait.producer).end != end) {
        continue;
      }
      const std::int32_t other = list_.tasks[wait.producer].task->stream;
      stream = stream < 0 ? other : std::min(stream, other);
    }
    if (stream < 0) {
      account_.host += inside(begin, end);
      return;
    }
    Duration exposed{};
    if (program_.streams[stream].role == StreamRole::kCollective) {
      exposed = transfers(step, stream, begin, end);
      account_.exposed[program_.streams[stream].account] += exposed;
    }
    account_.idle += inside(begin, end) - exposed;
  }

  /// Time of the gap that transfers of the stream cover, those of steps before included. Gaps come
  /// in order of time, and so do the ends on a stream.
  Duration transfers(std::int32_t step, std::int32_t stream, std::int64_t begin, std::int64_t end) {
    const std::vector<std::int32_t>& order = list_.streams[stream];
    Place& first = running_[stream];
    while (first.step <= step && run_.executed(first.step, instance_, order.back()).end <= begin) {
      first = {first.step + 1, 0};
    }
    while (first.step <= step &&
           run_.executed(first.step, instance_, order[first.position]).end <= begin) {
      ++first.position;
    }
    Duration sum{};
    for (Place at = first; at.step <= step;) {
      const std::int32_t task = order[at.position];
      const Executed& ran = run_.executed(at.step, instance_, task);
      if (ran.begin >= end) {
        break;
      }
      if (list_.tasks[task].task->kind != TaskKind::kReceive) {
        sum += inside(std::max(ran.begin, begin), std::min(ran.end, end));
      }
      at = at.position + 1 < order.size() ? Place{at.step, at.position + 1} : Place{at.step + 1, 0};
    }
    return sum;
  }

  void communication(const Task& task, const Executed& ran) {
    const Duration length{ran.end - ran.begin};
    if (task.kind == TaskKind::kSend) {
      account_.point_to_point += length;
      account_.point_to_point_bytes += task.bytes;
    } else if (task.kind == TaskKind::kReceive) {
      account_.received_bytes += task.bytes;
    }
    const Stream& stream = program_.streams[task.stream];
    if (stream.role == StreamRole::kCollective && task.kind != TaskKind::kReceive) {
      account_.transfer[stream.account] += length;
      account_.member_wait[stream.account] += Duration{ran.begin - ran.start};
      account_.bytes[stream.account] += task.bytes;
    }
  }

  struct Place {
    std::int32_t step = 0;
    std::size_t position = 0;
  };

  const Program& program_;
  const EventRun& run_;
  const UnrolledTemplate& list_;
  std::int32_t instance_;
  std::int32_t first_, steps_;
  std::int64_t from_ = 0, to_ = 0;
  RankAccount account_;
  std::vector<Place> running_;  ///< per stream: the first that had not ended before the last gap
};

}  // namespace

RankAccount account_of(const Program& program,
                       const EventRun& run,
                       std::int32_t instance,
                       std::int32_t first_measured,
                       std::int32_t steps) {
  return Reader(program, run, instance, first_measured, steps).read();
}

}  // namespace foretrain
