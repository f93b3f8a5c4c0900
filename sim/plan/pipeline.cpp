// How many nodes deep a replica is.
#include "sim/plan/board.h"
#include "sim/plan/figures.h"

#include <algorithm>

namespace foretrain {
namespace {

struct PipelineRung {
  Layout layout;
  double states = 0;       ///< bytes of a GPU
  double activations = 0;  ///< bytes of the first stage
  double total() const { return states + activations; }
};

/// States unsharded, and p micro-batches of L / p layers on the first stage.
PipelineRung dense_rung(const Board& board, const Layout& layout) {
  const double n = board.given.parameters;
  PipelineRung rung;
  rung.layout = layout;
  rung.states = bytes_per_parameter(board) * n / static_cast<double>(layout.tp * layout.pp);
  rung.activations = kept_bytes(board, layout, board.sizes.layers);
  return rung;
}

/// Experts cannot do without sharding: the optimizer sharded, every layer recomputed.
PipelineRung expert_rung(const Board& board, const Layout& layout) {
  PipelineRung rung;
  rung.layout = layout;
  rung.states = sharded_states(board, layout);
  rung.activations = recomputed_bytes(board, layout, board.sizes.layers);
  return rung;
}

bool has_experts(const Board& board) {
  return board.given.expert_parameters > 0;
}

std::vector<PipelineRung> pipeline_rungs(const Board& board, std::int64_t ep) {
  std::vector<PipelineRung> rungs;
  const std::int64_t tp = board.layout.tp;
  for (std::int64_t pp = 1; pp <= board.job.model.layers; pp *= 2) {
    if (pp_is_legal(board, tp, pp) && board.job.gpus / pp % ep == 0) {
      const Layout layout = layout_with(board, tp, 1, pp, ep);
      rungs.push_back(has_experts(board) ? expert_rung(board, layout) : dense_rung(board, layout));
    }
  }
  return rungs;
}

template <typename Fits>
std::size_t first_that(const std::vector<PipelineRung>& rungs, const Fits& fits) {
  return static_cast<std::size_t>(std::find_if(rungs.begin(), rungs.end(), fits) - rungs.begin());
}

/// The smallest p that holds all; else the states alone; else what the closed form can squeeze in.
std::size_t choose_rung(const Board& board, const std::vector<PipelineRung>& rungs) {
  const double usable = usable_bytes(board);
  const std::size_t count = rungs.size();
  std::size_t chosen =
      first_that(rungs, [&](const PipelineRung& rung) { return rung.total() <= usable; });
  if (chosen == count && !has_experts(board)) {
    chosen = first_that(rungs, [&](const PipelineRung& rung) { return rung.states <= usable; });
  }
  if (chosen == count) {
    chosen = first_that(rungs, [&](const PipelineRung& rung) {
      return board.estimator.estimate(rung.layout).fits;
    });
  }
  return std::min(chosen, count - 1);
}

std::string states_text(const Board& board, const PipelineRung& rung) {
  const double total = bytes_per_parameter(board) * board.given.parameters;
  return "p " + std::to_string(rung.layout.pp) + ": " +
         size_equation(has_experts(board) ? sharded_states_text(board, rung.layout)
                                          : operand(total) + over({rung.layout.tp, rung.layout.pp}),
                       rung.states);
}

/// A rung whose states fit says what its activations do.
void add_rung(const Board& board, const PipelineRung& rung, PlanStep& step) {
  const double usable = usable_bytes(board);
  const std::string layers = std::to_string(board.job.model.layers);
  if (rung.states > usable) {
    step.arithmetic.push_back(states_text(board, rung) + ", too much");
    return;
  }
  step.arithmetic.push_back(states_text(board, rung));
  step.arithmetic.push_back(
      has_experts(board)
          ? "  activations, every layer recomputed: " +
                size_equation(recomputed_text(board, rung.layout, layers), rung.activations)
          : "  activations, p micro-batches of L / p layers: " +
                size_equation(kept_text(board, rung.layout, layers), rung.activations));
  step.arithmetic.push_back(
      "  together: " +
      size_equation(size_operand(rung.states) + " + " + size_operand(rung.activations),
                    rung.total()) +
      (rung.total() <= usable ? ", fits" : ", too much"));
}

void one_stage(Board& board, PlanStep& step) {
  const Layout& layout = board.layout;
  const double total = bytes_per_parameter(board) * board.given.parameters;
  if (!has_experts(board)) {
    step.arithmetic.push_back("unsharded: " +
                              size_equation(operand(total) + shared_by({layout.tp}),
                                            total / static_cast<double>(layout.tp)));
  }
  step.arithmetic.push_back(
      "the optimizer sharded over all GPUs: " +
      size_equation(sharded_states_text(board, layout), sharded_states(board, layout)));
  step.decision = "pp 1: a replica fits inside a node, so no bubble and no stages to balance";
  step.otherwise =
      std::string("with many micro-batches, fewer tp and a few stages may be faster: ") +
      kMeasureIt;
}

std::string pipeline_decision(const Board& board, const PipelineRung& rung) {
  const std::string degree = "pp " + std::to_string(rung.layout.pp);
  const double usable = usable_bytes(board);
  if (rung.total() <= usable) {
    return degree + ": the smallest that fits, " + size_text(rung.total()) + " of " +
           size_text(usable);
  }
  if (rung.states <= usable) {
    return degree +
           ": the smallest whose states fit; sharding, then context parallelism and "
           "recomputation, make room for activations";
  }
  return degree + ": the states fit only with the optimizer sharded";
}

}  // namespace

void decide_pipeline(Board& board) {
  PlanStep step;
  step.title = "Pipeline";
  step.question = "How many stages, so that a stage's states and activations fit?";
  const double usable = usable_bytes(board);
  const double inside = sharded_states(board, board.layout) +
                        recomputed_bytes(board, board.layout, board.sizes.layers);
  if (inside <= usable) {
    one_stage(board, step);
    board.plan.steps.push_back(std::move(step));
    return;
  }
  std::vector<PipelineRung> rungs = pipeline_rungs(board, board.spread);
  std::size_t chosen = choose_rung(board, rungs);
  for (std::int64_t ep = board.spread * 2;
       has_experts(board) && rungs[chosen].total() > usable && ep <= board.job.model.experts;
       ep *= 2) {
    if (board.job.model.experts % ep == 0 && board.job.gpus % ep == 0) {
      rungs = pipeline_rungs(board, ep);
      board.spread = ep;
      chosen = choose_rung(board, rungs);
    }
  }
  step.arithmetic.push_back(
      has_experts(board) ? "the optimizer sharded, every layer recomputed, in " + size_text(usable)
                         : figure(bytes_per_parameter(board)) + " N / (t p), nothing sharded, in " +
                               size_text(usable));
  for (std::size_t at = 0; at <= chosen; ++at) {
    add_rung(board, rungs[at], step);
  }
  const PipelineRung& rung = rungs[chosen];
  const bool enough = board.estimator.estimate(rung.layout).fits;
  step.decision = enough ? pipeline_decision(board, rung)
                         : "no depth fits: " + count_text(board.job.gpus, "GPU") +
                               (board.job.gpus == 1 ? " allows" : " allow") + " pp up to " +
                               std::to_string(rung.layout.pp) + " here";
  step.otherwise =
      "more memory a GPU, or sharding (step 7), allows fewer stages and a smaller "
      "bubble";
  board.layout = rung.layout;
  board.plan.steps.push_back(std::move(step));
}

}  // namespace foretrain
