// Room for activations: what the first stage keeps, and which of it is computed again.
#include "sim/base/format.h"
#include "sim/plan/board.h"
#include "sim/plan/figures.h"

#include <cmath>

namespace foretrain {
namespace {

/// Micro-batches the first stage holds at once.
double passes(const Board& board, const Layout& layout) {
  const double micro_batches = rank_share(board.sizes, board.given, layout).micro_batches;
  return board.sizes.shapes->of(layout, std::llround(micro_batches)).in_flight;
}

std::string passes_text(double held, double layers) {
  return held == 1 ? operand(layers) : "(" + operand(held) + " x " + operand(layers) + ")";
}

/// Layers to recompute, from what is too much and what one of them saves.
void add_recomputed(const Board& board, const Estimate& estimate, double excess, PlanStep& step) {
  const double held = passes(board, estimate.layout);
  const double saved =
      held * (kept_bytes(board, estimate.layout, 1) - recomputed_bytes(board, estimate.layout, 1));
  const double layers = estimate.stage_layers;
  if (saved <= 0) {
    return;  // assumed to keep more recomputed than not
  }
  step.arithmetic.push_back(
      "too much over what a recomputed layer saves: " +
      equation(size_operand(excess) + " / " + size_operand(saved), excess / saved) +
      (estimate.fits
           ? ", so " + figure(estimate.recompute_layers) + " of " + figure(layers) + " layers"
           : ", more than the " + figure(layers) + " layers of the stage"));
}

}  // namespace

void decide_activations(Board& board) {
  const Layout& layout = board.layout;
  const Estimate estimate = board.estimator.estimate(layout);
  const double usable = usable_bytes(board);
  const double held = passes(board, layout);
  const double layers = estimate.stage_layers;
  const double kept = held * kept_bytes(board, layout, layers);
  const double fixed_bytes = sharded_states(board, layout);
  PlanStep step;
  step.title = "Activations";
  step.question = "Do the activations fit beside the states, or are layers recomputed?";
  step.arithmetic.push_back("states, the optimizer sharded: " +
                            size_equation(sharded_states_text(board, layout), fixed_bytes));
  if (fixed_bytes < usable) {
    step.arithmetic.push_back(
        "left for activations: " +
        size_equation(size_operand(usable) + " - " + size_operand(fixed_bytes),
                      usable - fixed_bytes));
  }
  const std::string kept_layers = passes_text(held, layers);
  if (board.sizes.moe_share > 0) {
    step.arithmetic.push_back("the mean layer keeps " + figure(kept_per_token(board, layout)) +
                              " bytes a token, the chosen experts' included");
  }
  const std::string formula =
      board.sizes.moe_share > 0
          ? ""
          : figure(board.given.activation_bytes) + (layout.pp == 1 ? " s h L / t, " : " s h / t, ");
  step.arithmetic.push_back(
      formula +
      (layout.pp == 1 ? "one micro-batch: " : "min(p, m) micro-batches of L / p layers: ") +
      size_equation(kept_text(board, layout, kept_layers), kept));
  if (kept + fixed_bytes > usable && fixed_bytes < usable) {
    add_recomputed(board, estimate, kept + fixed_bytes - usable, step);
  }
  const std::string so_far =
      "at cp 1" +
      (board.job.model.experts > 0 ? " and ep " + std::to_string(layout.ep) : std::string()) +
      ", which the next step decides: ";
  const double share = static_cast<double>(estimate.recompute_layers) / layers;
  const std::string count = figure(estimate.recompute_layers) + " of " + figure(layers) + " layers";
  step.decision = so_far;
  step.decision += !estimate.fits
                       ? "even with every layer recomputed it takes " +
                             size_text(estimate.memory.total()) + " of " + size_text(usable)
                   : estimate.recompute_layers == 0
                       ? "nothing is recomputed: " + size_text(estimate.memory.total()) + " of " +
                             size_text(usable)
                       : "recompute " + count + ": a third more arithmetic there, " +
                             percent(share / 3, 0) + " in all";
  step.otherwise = std::string(board.job.global_batch_size / layout.dp % 2 == 0
                                   ? "a micro-batch of 2 sequences doubles them"
                                   : "a shorter sequence makes them smaller") +
                   "; sequence parallelism (counted) divides by tp";
  board.plan.steps.push_back(std::move(step));
}

}  // namespace foretrain
