#include "sim/engine/deadlock.h"
#include "sim/engine/evaluators.h"
#include "sim/engine/event_accounts.h"
#include "sim/engine/event_run.h"
#include "sim/engine/steady.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace foretrain {
namespace {

Instant instant(std::int64_t picoseconds) {
  return Instant{Duration{picoseconds}};
}

std::int32_t instances_of(const Program& program) {
  return static_cast<std::int32_t>(program.instances.size());
}

std::int64_t step_end(const Program& program,
                      const EventRun& run,
                      std::int32_t step,
                      std::int32_t instance) {
  const std::int32_t list = program.instances[instance].template_index;
  return run.executed(step, instance, program.templates[list].step_end_task).end;
}

std::int64_t latest_step_end(const Program& program, const EventRun& run, std::int32_t step) {
  std::int64_t latest = 0;
  for (std::int32_t i = 0; i < instances_of(program); ++i) {
    latest = std::max(latest, step_end(program, run, step, i));
  }
  return latest;
}

/// What the step after `step` depends on: stream clocks, ends waited for from another stream, the
/// host's base; relative to the step's end.
std::vector<std::int64_t> carried_state(const Program& program,
                                        const EventRun& run,
                                        std::int32_t step) {
  const std::int64_t base = latest_step_end(program, run, step);
  std::vector<std::int64_t> state;
  for (std::int32_t i = 0; i < instances_of(program); ++i) {
    const UnrolledTemplate& list = run.list_of(i);
    for (const auto& stream : list.streams) {
      if (!stream.empty()) {
        state.push_back(run.executed(step, i, stream.back()).end - base);
      }
    }
    for (const std::int32_t producer : list.carried) {
      state.push_back(run.executed(step, i, producer).end - base);
    }
    if (list.host_sync >= 0) {
      state.push_back(run.executed(step, i, list.host_sync).end - base);
    }
  }
  return state;
}

std::int64_t latest_end(const Program& program, const EventRun& run, std::int32_t step) {
  std::int64_t latest = 0;
  for (std::int32_t i = 0; i < instances_of(program); ++i) {
    for (const std::vector<std::int32_t>& stream : run.list_of(i).streams) {
      if (!stream.empty()) {
        latest = std::max(latest, run.executed(step, i, stream.back()).end);
      }
    }
  }
  return latest;
}

void note_steps(const Program& program,
                const EventRun& run,
                std::int32_t first_measured,
                std::int32_t steps,
                Timeline& timeline) {
  timeline.instance_step_ends.resize(program.instances.size());
  for (std::int32_t step = first_measured - 1; step < steps; ++step) {
    timeline.step_ends.push_back(instant(latest_step_end(program, run, step)));
    for (std::int32_t i = 0; i < instances_of(program); ++i) {
      timeline.instance_step_ends[i].push_back(instant(step_end(program, run, step, i)));
    }
  }
}

void note_spans(const EventRun& run,
                std::int32_t instance,
                std::int32_t first_measured,
                std::int32_t steps,
                Timeline& timeline) {
  const UnrolledTemplate& list = run.list_of(instance);
  for (std::int32_t step = first_measured; step < steps; ++step) {
    for (std::size_t t = 0; t < list.tasks.size(); ++t) {
      const Executed& ran = run.executed(step, instance, static_cast<std::int32_t>(t));
      timeline.spans.push_back({instance,
                                step - first_measured,
                                list.tasks[t].call_index,
                                list.tasks[t].local,
                                instant(ran.start),
                                instant(ran.begin),
                                instant(ran.end)});
    }
  }
}

/// Where links are shared, a step's last transfers are slowed by those of the step after: one more
/// runs behind those that are looked at.
int steps_behind(const Program& program) {
  return program.shares_links() ? 1 : 0;
}

bool has_windows(const Program& program) {
  return std::any_of(program.factor_sets.begin(),
                     program.factor_sets.end(),
                     [](const FactorSet& set) { return !set.windows.empty(); });
}

/// Steps of a run before its state repeats; 0: not within `most`. At `limit` measuring starts in
/// any case.
int settled_after(const Program& program, const EventRun& run, int most, int limit) {
  WarmUp warm_up(limit);
  while (warm_up.steps() < most) {
    if (warm_up.settled(carried_state(program, run, warm_up.steps()))) {
      return warm_up.steps();
    }
  }
  return 0;
}

/// A run from a cold start and where its measured steps begin.
struct MeasuredRun {
  std::unique_ptr<EventRun> run;
  int first = 0;
};

/// Few warm-up steps are tried first: most programs settle at once. Only when it is known how many
/// there are it is known which steps the factor windows fall on: those run again. Unset: deadlock.
MeasuredRun measure(const Program& program, int limit, int measured_steps, Deadlock& deadlock) {
  const int behind = steps_behind(program);
  for (int tried = std::min(limit, 2);; tried = std::min(limit, 2 * tried)) {
    const int steps = tried + measured_steps;
    auto run = std::make_unique<EventRun>(program, steps, behind, steps + behind);
    if (!run->run()) {
      deadlock = describe_deadlock(program, run->progress());
      return {};
    }
    const int first = settled_after(program, *run, tried, limit);
    if (first == 0) {
      continue;
    }
    if (has_windows(program)) {
      run = std::make_unique<EventRun>(program, first + measured_steps, behind, first);
      run->run();
    }
    return {std::move(run), first};
  }
}

/// When the first transfer of a step begins.
std::int64_t first_transfer(const Program& program, const EventRun& run, std::int32_t step) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (std::int32_t i = 0; i < instances_of(program); ++i) {
    const UnrolledTemplate& list = run.list_of(i);
    for (const std::vector<std::int32_t>& stream : list.streams) {
      const auto found = std::find_if(stream.begin(), stream.end(), [&list](std::int32_t task) {
        const TaskKind kind = list.tasks[task].task->kind;
        return kind == TaskKind::kCollective || kind == TaskKind::kSend;
      });
      if (found != stream.end()) {
        first = std::min(first, run.executed(step, i, *found).begin);
      }
    }
  }
  return first;
}

/// The end of everything when one cold step runs alone.
std::int64_t isolated_end(const Program& program, const EventRun& measured) {
  const std::int64_t latest = latest_end(program, measured, 0);
  if (!program.shares_links() || first_transfer(program, measured, 1) >= latest) {
    return latest;
  }
  EventRun cold(program, 1, 0, 1);
  cold.run();
  return latest_end(program, cold, 0);
}

void note_link_bytes(const EventRun& run,
                     std::int32_t first,
                     std::int32_t steps,
                     Timeline& timeline) {
  timeline.link_bytes = run.link_bytes(first);
  for (std::int32_t step = first + 1; step < steps; ++step) {
    const std::vector<double> more = run.link_bytes(step);
    for (std::size_t link = 0; link < more.size(); ++link) {
      timeline.link_bytes[link] += more[link];
    }
  }
}

}  // namespace

RunResult run_events(const Program& program, const RunOptions& options) {
  Deadlock deadlock;
  const MeasuredRun measured =
      measure(program, std::max(1, options.warm_up_limit), options.measured_steps, deadlock);
  if (!measured.run) {
    return deadlock;
  }
  const EventRun& run = *measured.run;
  const std::int32_t first = measured.first;
  const std::int32_t steps = first + options.measured_steps;
  Timeline timeline;
  timeline.isolated_end = instant(isolated_end(program, run));
  note_steps(program, run, first, steps, timeline);
  note_link_bytes(run, first, steps, timeline);
  for (std::int32_t i = 0; i < instances_of(program); ++i) {
    timeline.accounts.push_back(account_of(program, run, i, first, steps));
    timeline.tasks += static_cast<std::int64_t>(run.list_of(i).tasks.size()) * steps;
  }
  for (const std::int32_t instance : options.recorded_instances) {
    note_spans(run, instance, first, steps, timeline);
  }
  return timeline;
}

}  // namespace foretrain
