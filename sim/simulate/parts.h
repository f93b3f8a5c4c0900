#pragma once

#include "foretrain/report.h"
#include "foretrain/simulate.h"
#include "foretrain/topology.h"
#include "sim/lower/link_traffic.h"
#include "sim/lower/lower.h"

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

/// The pieces of simulate(): folding and running variants, and putting the report together.
namespace foretrain {

/// Idle time of the primary stream that no collective explains, mean over ranks, split by
/// re-running the same program under ever kinder assumptions (MODEL 8.2).
struct IdleSplit {
  Duration straggler{}, point_to_point{}, imbalance{}, bubble{};
};

/// Tells whoever waits how many of a simulation's runs are done.
class RunCount {
 public:
  RunCount(std::function<void(int done, int total)> tell, int total)
      : tell_(std::move(tell)), total_(total) {}
  void next() {
    if (tell_) {
      tell_(done_, total_);
    }
    ++done_;
  }

 private:
  std::function<void(int done, int total)> tell_;
  int total_;
  int done_ = 0;
};

/// Sum over ranks of one quantity of their accounts.
template <typename Quantity>
Int128 sum_over_ranks(const Program& program, const Timeline& timeline, Quantity quantity) {
  Int128 sum = 0;
  for (std::size_t i = 0; i < program.instances.size(); ++i) {
    sum += static_cast<Int128>(program.instances[i].multiplicity) * quantity(timeline.accounts[i]);
  }
  return sum;
}

/// `sum` over ranks and steps -> mean, rounded down to the picosecond.
inline Duration mean_of(Int128 sum, std::int64_t ranks, std::int64_t steps) {
  return Duration{static_cast<std::int64_t>(sum / (static_cast<Int128>(ranks) * steps))};
}

/// The step: mean of the measured periods, rounded down.
Duration step_time(const Timeline& timeline);

/// Mean over ranks and steps of RankAccount::idle.
Duration mean_idle(const Program& program, const Timeline& timeline);

/// `folded`: the classes of what was lowered; `idle`: the mean of the actual run.
IdleSplit split_idle(const Scenario& scenario,
                     const Lowered& lowered,
                     const Program& folded,
                     Duration idle,
                     const RunOptions& options,
                     RunCount& runs);

/// Runs that split_idle() makes.
int idle_split_runs(const Scenario& scenario, const Program& full, const Program& folded);

/// What each perturbation alone adds to the step: the step less the step without it.
std::vector<StragglerCost> straggler_costs(const Scenario& scenario,
                                           const Lowered& lowered,
                                           Duration step,
                                           const RunOptions& options,
                                           RunCount& runs);

/// The heaviest stage's peak against a GPU's capacity.
void judge_memory(const Scenario& scenario, const StepFacts& facts, StepReport& report);

/// The schedule as a grid, with the action each pipeline rank could not begin marked.
std::string deadlock_grid(const Program& program, const Lowered& lowered, const Deadlock& deadlock);

// Words beside the figures (notes.cpp).
/// What the verdict hangs on, and a sharding that saved nothing.
void add_memory_notes(const Scenario& scenario, const StepFacts& facts, StepReport& report);
/// Expert traffic is counted by tokens; what of it each NIC carries is told apart.
void add_expert_wire(const Scenario& scenario, StepReport& report);
/// The stash of one layer by tensor, and its largest entries in words.
void add_activations(const StepFacts& facts, StepReport& report);
/// Network mode "flow": how many links carry traffic, and the fullest of them.
void add_flow_words(const Scenario& scenario,
                    const Program& program,
                    const Timeline& timeline,
                    StepReport& report);
/// What was assumed, MFU by other counts, the ideal bubble.
void add_words(const Scenario& scenario, const Lowered& lowered, StepReport& report);

/// The links with the most to carry, at most ten kinds of them. `full`: one instance per rank.
std::vector<LinkReport> busiest_links(const Scenario& scenario,
                                      const Program& full,
                                      const Topology& topology,
                                      Duration step);

/// What a link carries over time, from the recorded transfers of the classes that cross it.
LinkTrack link_track(const Program& program,
                     const Timeline& timeline,
                     const std::vector<std::int32_t>& class_of,
                     const std::vector<LinkCrossing>& crossings,
                     const Link& link);

/// What the first lines of a report say.
ReportHeader header_of(const Scenario& scenario);
std::string_view type_name(DataType type);

StepReport assemble_report(const Scenario& scenario,
                           const Lowered& lowered,
                           const Program& program,
                           const Timeline& timeline,
                           const IdleSplit& idle,
                           FlopsConvention convention);

}  // namespace foretrain
