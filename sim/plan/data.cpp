// What is left goes to replicas: as many as the batch allows, their optimizer sharded.
#include "sim/base/format.h"
#include "sim/plan/board.h"
#include "sim/plan/figures.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace foretrain {
namespace {

/// How many doublings of degrees lie between two layouts.
int distance(const Layout& a, const Layout& b) {
  const auto doublings = [](std::int64_t from, std::int64_t to) {
    const double ratio = static_cast<double>(to) / static_cast<double>(from);
    return std::abs(static_cast<int>(std::lround(std::log2(ratio))));
  };
  return doublings(a.tp, b.tp) + doublings(a.cp, b.cp) + doublings(a.pp, b.pp) +
         doublings(a.ep, b.ep);
}

/// The layout found that changes least, the faster of equals; nothing where none was found.
const Estimate* nearest_found(const Board& board) {
  std::vector<const Estimate*> by_distance;
  for (const RankedLayout& found : board.found.layouts) {
    by_distance.push_back(&found.estimate);
  }
  std::stable_sort(by_distance.begin(), by_distance.end(), [&](const auto* a, const auto* b) {
    return distance(board.layout, a->layout) < distance(board.layout, b->layout);
  });
  const auto legal = std::find_if(by_distance.begin(), by_distance.end(), [&](const auto* found) {
    return layout_faults(board, found->layout).empty();
  });
  return legal == by_distance.end() ? nullptr : *legal;
}

/// "2-4": fewer stages that would fit and are legal, once the optimizer is sharded.
std::string fewer_stages(Board& board) {
  std::vector<std::int64_t> allowed;
  for (std::int64_t pp = 1; pp < board.layout.pp; pp *= 2) {
    const Layout layout = layout_with(board, board.layout.tp, board.layout.cp, pp, board.layout.ep);
    const bool shared = board.job.global_batch_size % layout.dp == 0;
    if (shared && pp_is_legal(board, layout.tp * layout.cp, pp) &&
        board.estimator.estimate(layout).fits && layout_faults(board, layout).empty()) {
      allowed.push_back(pp);
      board.offered.push_back(board.estimator.estimate(layout));
    }
  }
  return allowed.empty() ? ""
         : allowed.size() == 1
             ? std::to_string(allowed.front())
             : std::to_string(allowed.front()) + "-" + std::to_string(allowed.back());
}

/// "43.75 -> 13 GB", units as they come.
std::string fall_text(double from, double to) {
  const std::string a = size_text(from);
  const std::string b = size_text(to);
  const std::string unit = a.substr(a.find(' '));
  return (b.ends_with(unit) ? a.substr(0, a.find(' ')) : a) + " -> " + b;
}

/// What sharding saves of this layout, and what it would allow.
void add_sharding(Board& board, PlanStep& step) {
  const Layout& layout = board.layout;
  const double n = board.given.parameters;
  const double sharded = sharded_states(board, layout);
  const std::int64_t ranks = layout.dp * layout.cp;
  if (ranks == 1 || board.given.expert_parameters > 0) {
    step.arithmetic.push_back("states: " +
                              size_equation(sharded_states_text(board, layout), sharded));
    step.decision += ranks == 1 ? "; nothing to shard over" : "";
    return;
  }
  const double whole = bytes_per_parameter(board) * n / static_cast<double>(layout.tp * layout.pp);
  step.arithmetic.push_back("unsharded: " +
                            size_equation(operand(bytes_per_parameter(board)) + " x " + operand(n) +
                                              over({layout.tp, layout.pp}),
                                          whole));
  step.arithmetic.push_back("with ZeRO-1: " +
                            size_equation(sharded_states_text(board, layout), sharded));
  step.decision += "; with ZeRO-1 its states fall " + fall_text(whole, sharded);
  if (const std::string fewer = fewer_stages(board); !fewer.empty()) {
    step.otherwise = "with ZeRO-1 pp could fall to " + fewer +
                     ": a smaller bubble for more memory; " + kMeasureIt;
  }
}

/// Takes the nearest layout found instead of one that is not legal or does not fit.
void settle_elsewhere(Board& board, const std::string& why, PlanStep& step) {
  const Estimate* const nearest = nearest_found(board);
  step.arithmetic.push_back("not so: " + why);
  if (nearest == nullptr) {
    step.decision = "no dp: nothing else is legal and fits";
    return;
  }
  board.layout = nearest->layout;
  board.plan.feasible = true;
  board.plan.reason.clear();
  const Layout& layout = board.layout;
  step.arithmetic.push_back("instead: " + std::to_string(board.job.gpus) +
                            shared_by({layout.tp, layout.cp, layout.pp}) + " = " +
                            std::to_string(layout.dp) + " " + plural("replica", layout.dp));
  step.decision = "the nearest legal layout: " + degrees_text(layout);
}

}  // namespace

void decide_data(Board& board) {
  const Layout& layout = board.layout;
  const std::int64_t batch = board.job.global_batch_size;
  PlanStep step;
  step.title = "Data parallelism";
  step.question = "How many replicas do the remaining GPUs make, and does the batch allow them?";
  step.arithmetic.push_back(std::to_string(board.job.gpus) +
                            shared_by({layout.tp, layout.cp, layout.pp}) + " = " +
                            std::to_string(layout.dp) + " " + plural("replica", layout.dp));
  step.arithmetic.push_back("sequences of each a step: " +
                            equation(std::to_string(batch) + shared_by({layout.dp}),
                                     static_cast<double>(batch) / static_cast<double>(layout.dp)));
  const std::vector<Diagnostic> faults = layout_faults(board, layout);
  const Estimate estimate = board.estimator.estimate(layout);
  if (!faults.empty()) {
    const Diagnostic& fault = faults.front();
    board.plan.reason = fault.message + (fault.hint.empty() ? "" : "; " + fault.hint);
    settle_elsewhere(board, fault.message, step);
  } else if (!estimate.fits) {
    settle_elsewhere(board,
                     "every layer recomputed, it takes " + size_text(estimate.memory.total()) +
                         " of " + size_text(estimate.memory_limit),
                     step);
  } else {
    board.plan.feasible = true;
    step.decision = "dp " + std::to_string(layout.dp);
  }
  if (board.plan.feasible) {
    add_sharding(board, step);
  }
  if (step.otherwise.empty()) {
    step.otherwise = "a batch of " + count_text(batch, "sequence") + " allows dp up to " +
                     with_commas(batch) + "; beyond it more GPUs need tp, cp or pp";
  }
  board.plan.estimate = board.estimator.estimate(board.layout);
  board.plan.steps.push_back(std::move(step));
}

}  // namespace foretrain
