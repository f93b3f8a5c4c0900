#include "sim/plan/board.h"

#include <algorithm>
#include <string>
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

/// Writes the number of the step "Measure" where texts refer to it; where there is none, nothing.
void number_measure(Plan& plan) {
  const std::string mark = " (step @)";
  const auto measure = std::find_if(plan.steps.begin(), plan.steps.end(), [](const auto& step) {
    return step.title == "Measure";
  });
  const std::string number =
      measure == plan.steps.end()
          ? ""
          : " (step " + std::to_string(measure - plan.steps.begin() + 1) + ")";
  for (PlanStep& step : plan.steps) {
    for (std::string* text : {&step.decision, &step.otherwise}) {
      if (const std::size_t at = text->find(mark); at != std::string::npos) {
        text->replace(at, mark.size(), number);
      }
    }
  }
}

/// Whether `run` would take the scenario.
bool can_run(const Plan& plan) {
  const Expected<Scenario> scenario = parse_scenario(plan.scenario);
  return plan.not_simulated.empty() && scenario && not_simulated(*scenario).empty();
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
  if (board.plan.feasible && options.simulate) {
    settle_simulated(board);
  }
  if (board.plan.feasible) {
    decide_micro_batches(board);
    decide_balance(board);
    decide_measure(board);
    board.plan.scenario = plan_scenario(board, board.plan.estimate);
    board.plan.runs = can_run(board.plan);
  } else {
    explain_nothing_fits(board);
  }
  reckon_time(board);
  number_measure(board.plan);
  return std::move(board.plan);
}

}  // namespace foretrain
