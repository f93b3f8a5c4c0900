#include "sim/plan/board.h"

#include <utility>

namespace foretrain {
namespace {

SearchOptions search_options(const PlanOptions& options) {
  SearchOptions wanted;
  wanted.axes.uneven_stages = true;
  wanted.assumptions = options.assumptions;
  wanted.simulate = 0;
  wanted.threads = options.threads;
  return wanted;
}

/// The plan's scenario, read back and run as any other.
void simulate_plan(const PlanOptions& options, Plan& plan) {
  const tl::expected<SimulatedLayout, std::string> simulated =
      simulate_text(plan.scenario, options.progress);
  if (simulated) {
    plan.simulated = *simulated;
  } else {
    plan.not_simulated = simulated.error();
  }
}

}  // namespace

Expected<Plan> plan_layout(const TrainingJob& job, const PlanOptions& options) {
  if (std::vector<Diagnostic> faults = plan_faults(options); !faults.empty()) {
    return refuse(std::move(faults));
  }
  Expected<SearchResult> found = search(job, search_options(options));
  if (!found) {
    return tl::unexpected<Faults>(std::move(found.error()));
  }
  Board board = make_board(job, options, *std::move(found));
  decide_states(board);
  decide_replica(board);
  decide_tensor(board);
  decide_pipeline(board);
  decide_activations(board);
  decide_context(board);
  decide_data(board);
  if (board.plan.feasible) {
    decide_micro_batches(board);
    decide_balance(board);
    decide_measure(board);
    board.plan.scenario = plan_scenario(board, board.plan.estimate);
    if (options.simulate) {
      simulate_plan(options, board.plan);
    }
  } else {
    explain_nothing_fits(board);
  }
  reckon_time(board);
  return std::move(board.plan);
}

}  // namespace foretrain
