#include "foretrain/engine.h"
#include "sim/base/check.h"
#include "sim/engine/dataflow.h"
#include "sim/engine/deadlock.h"
#include "sim/engine/evaluators.h"
#include "sim/engine/steady.h"

#include <algorithm>
#include <tuple>

namespace foretrain {
namespace {

void note_step_ends(const Dataflow& dataflow, Timeline& timeline) {
  timeline.step_ends.emplace_back(Duration{dataflow.latest_step_end()});
  const Times ends = dataflow.step_ends();
  timeline.instance_step_ends.resize(ends.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    timeline.instance_step_ends[i].emplace_back(Duration{ends[i]});
  }
}

}  // namespace

RunResult run_dataflow(const Program& program, const RunOptions& options) {
  Dataflow dataflow(program, options);
  Timeline timeline;
  WarmUp warm_up(options.warm_up_limit);
  bool settled = false;
  while (!settled) {
    if (!dataflow.run_step(-1)) {
      return describe_deadlock(program, dataflow.progress());
    }
    settled = warm_up.settled(dataflow.carried_state());
    if (warm_up.steps() == 1) {
      timeline.isolated_end = Instant{Duration{dataflow.latest_end()}};
    }
  }
  note_step_ends(dataflow, timeline);
  for (int step = 0; step < options.measured_steps; ++step) {
    dataflow.run_step(step);
    note_step_ends(dataflow, timeline);
  }
  timeline.accounts = dataflow.accounts();
  timeline.spans = dataflow.take_spans();
  for (const Instance& instance : program.instances) {
    timeline.tasks += program.templates[instance.template_index].task_count;
  }
  timeline.tasks *= warm_up.steps() + options.measured_steps;
  return timeline;
}

RunResult run(const Program& program, const RunOptions& options) {
  FORETRAIN_CHECK(options.evaluator != Evaluator::kDataflow || !program.shares_links(),
                  "rates that depend on who is active are no recurrence");
  const bool events = options.evaluator == Evaluator::kEvent || program.shares_links();
  RunResult result = events ? run_events(program, options) : run_dataflow(program, options);
  if (auto* timeline = std::get_if<Timeline>(&result)) {
    const auto key = [](const Span& span) {
      return std::tuple(span.instance, span.start, span.step, span.call, span.task);
    };
    std::sort(timeline->spans.begin(), timeline->spans.end(), [&](const Span& a, const Span& b) {
      return key(a) < key(b);
    });
  }
  return result;
}

}  // namespace foretrain
