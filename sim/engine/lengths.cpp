#include "sim/engine/lengths.h"

#include "sim/program/stretch.h"

namespace foretrain {
namespace {

Length length_of(const UnrolledTask& unrolled, const Factors& factors) {
  const Task& task = *unrolled.task;
  Work latency{};
  constexpr auto kLatency = static_cast<std::size_t>(Resource::kLatency);
  latency[kLatency] = task.work[kLatency];
  const std::int64_t whole = duration_of(task.work, factors).count();
  const std::int64_t first = duration_of(latency, factors).count();
  return {stretched(whole, stretch_of(stretches_of(*unrolled.call), task)), first, whole - first};
}

}  // namespace

Lengths::Lengths(const Program& program,
                 const std::vector<UnrolledTemplate>& lists,
                 std::int32_t steps,
                 std::int64_t first_measured)
    : program_(program), lists_(lists) {
  for (std::int32_t step = 0; step < steps; ++step) {
    factors_.emplace_back();
    for (const FactorSet& set : program.factor_sets) {
      factors_.back().push_back(factors_at(set, step - first_measured));
    }
  }
  by_template_.assign(lists.size(), std::vector<std::vector<Length>>(program.factor_sets.size()));
  for (const Instance& instance : program.instances) {
    const FactorSet& set = program.factor_sets[instance.factor_set];
    std::vector<Length>& known = by_template_[instance.template_index][instance.factor_set];
    known_.push_back(&known);
    if (!set.windows.empty() || !known.empty()) {
      continue;
    }
    const std::vector<UnrolledTask>& tasks = lists[instance.template_index].tasks;
    known.reserve(tasks.size());
    for (const UnrolledTask& task : tasks) {
      known.push_back(length_of(task, set.base));
    }
  }
}

Length Lengths::at_step(std::int32_t instance, std::int32_t step, std::int32_t task) const {
  const Instance& own = program_.instances[instance];
  return length_of(lists_[own.template_index].tasks[task], factors_[step][own.factor_set]);
}

}  // namespace foretrain
