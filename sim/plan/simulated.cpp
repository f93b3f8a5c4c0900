// Whether the layout still fits once logits, buffers and context are counted; if not, which does.
#include "sim/base/format.h"
#include "sim/base/real.h"
#include "sim/plan/board.h"
#include "sim/plan/figures.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace foretrain {
namespace {

constexpr int kTriesOfSearch = 8;
constexpr int kTriesOfRoomiest = 5;

bool works(const SimulatedLayout& run) {
  return !run.deadlock && run.fits != Fit::kNo;
}

/// "84.82 GB + 1.5 GB = 86.3 GB of 85.52 GB": the peak, and what the device needs beside it.
std::string peak_text(const SimulatedLayout& run) {
  if (run.deadlock) {
    return "deadlock";
  }
  return size_equation(
             size_operand(real(run.memory_bytes)) + " + " + size_operand(real(run.context_bytes)),
             real(run.memory_bytes + run.context_bytes)) +
         " of " + size_operand(real(run.memory_capacity)) + (works(run) ? ", fits" : ", too much");
}

std::int64_t states_of(const StageMemory& memory) {
  return memory.weights + memory.gradients + memory.optimizer;
}

/// What the simulation counts and the closed form does not, largest first.
std::string beyond_text(const Estimate& estimate, const SimulatedLayout& run) {
  struct Part {
    std::string text;
    double bytes;
  };
  const EstimateMemory& counted = estimate.memory;
  const double states = counted.weights + counted.gradients + counted.optimizer;
  std::vector<Part> parts = {
      {" of logits", real(run.memory.logits)},
      {" of buffers", real(run.memory.buffers)},
      {" of CUDA and NCCL context", real(run.context_bytes)},
      {" more of states", real(states_of(run.memory)) - states},
      {" more of activations", real(run.memory.activations) - counted.activations}};
  std::stable_sort(
      parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.bytes > b.bytes; });
  constexpr double kWorthAWord = 5e7;
  std::string text;
  for (const Part& part : parts) {
    if (part.bytes >= kWorthAWord) {
      text += (text.empty() ? "" : ", ") + size_text(part.bytes) + part.text;
    }
  }
  return text;
}

void add_parts(const Estimate& estimate, const SimulatedLayout& run, PlanStep& step) {
  const StageMemory& memory = run.memory;
  const std::int64_t states = states_of(memory);
  step.arithmetic.push_back("estimated: " + size_text(estimate.memory.total()) + " of " +
                            size_text(estimate.memory_limit) + " usable");
  step.arithmetic.push_back("simulation adds " + beyond_text(estimate, run));
  step.arithmetic.push_back(
      "states, activations, logits and buffers when simulated: " +
      size_equation(size_operand(real(states)) + " + " + size_operand(real(memory.activations)) +
                        " + " + size_operand(real(memory.logits)) + " + " +
                        size_operand(real(memory.buffers)),
                    real(states + memory.activations + memory.logits + memory.buffers)));
}

std::string name_of(const Estimate& estimate) {
  return degrees_text(estimate.layout) +
         (estimate.recompute_layers > 0 ? " · recompute " + figure(estimate.recompute_layers) +
                                              "/" + figure(estimate.stage_layers)
                                        : "");
}

Estimate all_recomputed(const Board& board, Layout layout) {
  layout.recompute_layers =
      static_cast<std::int64_t>(std::ceil(board.estimator.estimate(layout).stage_layers));
  return board.estimator.estimate(layout);
}

/// Bytes with the logits, which weigh most of what the closed form leaves out.
double bytes_with_logits(const Board& board, const Estimate& estimate) {
  const double logits = 4 * real(board.job.sequence_length) * real(board.job.model.vocabulary) /
                        real(estimate.layout.cp * estimate.layout.tp);
  return estimate.memory.total() + logits;
}

/// Layouts of the search with every layer recomputed: the plan's own, then the roomiest first.
std::vector<Estimate> roomiest(const Board& board) {
  std::vector<Estimate> list;
  for (const RankedLayout& layout : board.found.layouts) {
    list.push_back(all_recomputed(board, layout.estimate.layout));
  }
  std::stable_sort(list.begin(), list.end(), [&](const Estimate& a, const Estimate& b) {
    return bytes_with_logits(board, a) < bytes_with_logits(board, b);
  });
  list.insert(list.begin(), all_recomputed(board, board.layout));
  return list;
}

tl::expected<SimulatedLayout, std::string> run_of(const Board& board, const Estimate& estimate) {
  return simulate_text(plan_scenario(board, estimate), board.options.progress);
}

/// The first of a list that fits when simulated becomes the plan's; those that cannot be simulated
/// do not count as tried.
bool take_first(Board& board, const std::vector<Estimate>& list, int tries, PlanStep& step) {
  for (const Estimate& estimate : list) {
    if (tries == 0) {
      break;
    }
    if (is_refused(board, estimate)) {
      continue;
    }
    const auto run = run_of(board, estimate);
    if (!run) {
      continue;
    }
    --tries;
    step.arithmetic.push_back(name_of(estimate) + ": " + peak_text(*run));
    if (works(*run)) {
      board.layout = estimate.layout;
      board.plan.estimate = estimate;
      board.plan.simulated = *run;
      return true;
    }
    board.refused.push_back(estimate);
  }
  return false;
}

/// In the order of the search; then with every layer recomputed.
bool take_another(Board& board, PlanStep& step) {
  std::vector<Estimate> ranked;
  for (const RankedLayout& layout : board.found.layouts) {
    ranked.push_back(layout.estimate);
  }
  return take_first(board, ranked, kTriesOfSearch, step) ||
         take_first(board, roomiest(board), kTriesOfRoomiest, step);
}

/// On more GPUs, once that is simulated as well.
std::optional<Estimate> larger_cluster(const Board& board, const SimulatedLayout& run) {
  const auto scenario = parse_scenario(plan_scenario(board, board.plan.estimate));
  const std::optional<Estimate> larger =
      scenario ? smallest_that_fits(*scenario, run.memory_bytes) : std::nullopt;
  if (!larger) {
    return std::nullopt;
  }
  Layout layout = larger->layout;
  layout.recompute_layers = larger->recompute_layers;
  TrainingJob job = board.job;
  job.gpus = layout.gpus();
  const auto there = simulate_text(scenario_text(job, layout, board.given, "plan"));
  return job.gpus > board.job.gpus && there && works(*there) ? larger : std::nullopt;
}

}  // namespace

bool is_refused(const Board& board, const Estimate& estimate) {
  return std::any_of(board.refused.begin(), board.refused.end(), [&](const Estimate& refused) {
    return same_plan(refused, estimate);
  });
}

void settle_simulated(Board& board) {
  Plan& plan = board.plan;
  const auto run = run_of(board, plan.estimate);
  if (!run) {
    plan.not_simulated = run.error();
    return;
  }
  if (works(*run)) {
    plan.simulated = *run;
    return;
  }
  PlanStep step;
  step.title = "Simulated memory";
  step.question = "Does it fit once all that the estimate leaves out is counted?";
  add_parts(plan.estimate, *run, step);
  step.arithmetic.push_back("with " + size_text(real(run->context_bytes)) + " of context, " +
                            name_of(plan.estimate) + ": " + peak_text(*run));
  const Estimate refused = plan.estimate;
  board.refused.push_back(refused);
  if (take_another(board, step)) {
    const bool searched = board.layout.recompute_layers == kRecomputeAsNeeded;
    step.decision = "not " + name_of(refused) + ", where simulation adds " +
                    beyond_text(refused, *run) + ", but " + name_of(plan.estimate) +
                    ": the first " +
                    (searched ? "of the search, by closed form, that can be simulated and fits"
                              : "tried with every layer recomputed that fits when simulated");
  } else {
    plan.feasible = false;
    const auto others = static_cast<std::int64_t>(board.refused.size()) - 1;
    plan.reason =
        "simulated, " + name_of(refused) + " takes " + peak_text(*run) +
        ": beyond the estimate come " + beyond_text(refused, *run) + "; " +
        (others > 0 ? "of " + count_text(others, "other layout") + " tried and simulated none fits"
                    : "there is no other to simulate");
    board.found.smallest = larger_cluster(board, *run);
    step.decision = "nothing that was tried fits when simulated";
  }
  step.otherwise =
      "a smaller vocabulary or more tp and cp, which share the logits; a shorter "
      "sequence";
  plan.steps.push_back(std::move(step));
}

}  // namespace foretrain
