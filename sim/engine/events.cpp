#include "sim/engine/deadlock.h"
#include "sim/engine/evaluators.h"
#include "sim/engine/event_accounts.h"
#include "sim/engine/event_run.h"
#include "sim/engine/steady.h"

#include <algorithm>

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
    for (const UnrolledTask& task : list.tasks) {
      for (const CallDependency& wait : task.dependencies) {
        if (wait.previous_step && list.tasks[wait.producer].task->stream != task.task->stream) {
          state.push_back(run.executed(step, i, wait.producer).end - base);
        }
      }
    }
    const Template& source = program.templates[program.instances[i].template_index];
    if (source.host_sync_task >= 0) {
      state.push_back(run.executed(step, i, source.host_sync_task).end - base);
    }
  }
  return state;
}

std::int64_t latest_end(const Program& program, const EventRun& run, std::int32_t step) {
  std::int64_t latest = 0;
  for (std::int32_t i = 0; i < instances_of(program); ++i) {
    const auto tasks = static_cast<std::int32_t>(run.list_of(i).tasks.size());
    for (std::int32_t t = 0; t < tasks; ++t) {
      latest = std::max(latest, run.executed(step, i, t).end);
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

/// Steps before the state repeats (at most the limit), all at base factors; 0: a deadlock, told by
/// `deadlock`. Few steps are tried first: most programs settle at once.
int steps_to_settle(const Program& program, int limit, Deadlock& deadlock) {
  for (int tried = std::min(limit, 3);; tried = limit) {
    EventRun cold(program, tried, tried);
    if (!cold.run()) {
      deadlock = describe_deadlock(program, cold.progress());
      return 0;
    }
    WarmUp warm_up(limit);
    while (warm_up.steps() < tried) {
      if (warm_up.settled(carried_state(program, cold, warm_up.steps()))) {
        return warm_up.steps();
      }
    }
  }
}

}  // namespace

/// Twice from a cold start: once to see when the carried state repeats, once to measure from there;
/// only then it is known which steps the factor windows fall on.
RunResult run_events(const Program& program, const RunOptions& options) {
  Deadlock deadlock;
  const std::int32_t first = steps_to_settle(program, std::max(1, options.warm_up_limit), deadlock);
  if (first == 0) {
    return deadlock;
  }
  const std::int32_t steps = first + options.measured_steps;
  EventRun measured(program, steps, first);
  measured.run();
  Timeline timeline;
  timeline.isolated_end = instant(latest_end(program, measured, 0));
  note_steps(program, measured, first, steps, timeline);
  for (std::int32_t i = 0; i < instances_of(program); ++i) {
    timeline.accounts.push_back(account_of(program, measured, i, first, steps));
    timeline.tasks += static_cast<std::int64_t>(measured.list_of(i).tasks.size()) * steps;
  }
  for (const std::int32_t instance : options.recorded_instances) {
    note_spans(measured, instance, first, steps, timeline);
  }
  return timeline;
}

}  // namespace foretrain
