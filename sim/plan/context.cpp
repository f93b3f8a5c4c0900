// Splitting the sequence, and spreading the experts: only where the steps before leave a gap.
#include "sim/base/format.h"
#include "sim/plan/board.h"
#include "sim/plan/figures.h"
#include "sim/scenario/divides.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr std::int64_t kMostContext = 64;

bool cp_is_legal(const Board& board, std::int64_t cp) {
  const Layout& layout = board.layout;
  const std::int64_t length = board.job.sequence_length;
  const bool long_enough =
      static_cast<double>(length) / static_cast<double>(cp) >= board.given.minimum_cp_tokens;
  const std::int64_t ranks = layout.tp * cp * layout.pp;
  return long_enough && ring_divides(length, cp) && sequence_divides(length, layout.tp, cp) &&
         board.job.gpus % ranks == 0 && board.job.gpus / layout.pp % board.spread == 0;
}

Layout with_cp(const Board& board, std::int64_t cp) {
  return layout_with(board, board.layout.tp, cp, board.layout.pp, board.layout.ep);
}

/// More than half the layers recomputed: a dimension more is worth its traffic.
bool mostly_recomputed(const Estimate& estimate) {
  return !estimate.fits ||
         2 * static_cast<double>(estimate.recompute_layers) > estimate.stage_layers;
}

bool slower(const Estimate& a, const Estimate& b) {
  return a.fits != b.fits ? b.fits : a.mfu < b.mfu;
}

/// Fewer micro-batches than stages: cutting sequences instead of sharing them out leaves more.
bool starved(const Estimate& estimate) {
  return estimate.layout.pp > 1 && estimate.micro_batches < estimate.layout.pp;
}

bool worth_cutting(const Estimate& estimate) {
  return mostly_recomputed(estimate) || starved(estimate);
}

std::string cp_text(const Board& board, const Estimate& estimate) {
  const Layout& layout = estimate.layout;
  const double layers = estimate.stage_layers;
  const double held = board.sizes.shapes->of(layout, estimate.micro_batches).in_flight;
  const std::string kept =
      held == 1 ? operand(layers) : "(" + operand(held) + " x " + operand(layers) + ")";
  return "cp " + std::to_string(layout.cp) + ": " +
         size_equation(kept_text(board, layout, kept), held * kept_bytes(board, layout, layers)) +
         (estimate.fits ? ", recompute " + figure(estimate.recompute_layers) + " of " +
                              figure(layers) + ", MFU " + percent(estimate.mfu)
                        : ", too much however recomputed") +
         (layout.pp > 1 ? ", m " + std::to_string(estimate.micro_batches) : "");
}

/// The smallest cp that recomputes at most half and fills the stages; else the fastest by the
/// closed form.
void choose_cp(Board& board, PlanStep& step) {
  std::vector<Estimate> rungs = {board.estimator.estimate(board.layout)};
  for (std::int64_t cp = 2; cp <= kMostContext && worth_cutting(rungs.back()); cp *= 2) {
    if (cp_is_legal(board, cp)) {
      rungs.push_back(board.estimator.estimate(with_cp(board, cp)));
    }
  }
  for (const Estimate& rung : rungs) {
    step.arithmetic.push_back(cp_text(board, rung));
  }
  const bool enough = !worth_cutting(rungs.back());
  const Estimate& best =
      enough ? rungs.back() : *std::max_element(rungs.begin(), rungs.end(), slower);
  const std::string degree = "cp " + std::to_string(best.layout.cp);
  if (rungs.size() == 1) {
    step.arithmetic.push_back("half the sequence: " +
                              equation(std::to_string(board.job.sequence_length) + " / 2",
                                       static_cast<double>(board.job.sequence_length) / 2) +
                              " tokens a rank; worth it from " +
                              figure(board.given.minimum_cp_tokens));
    step.decision = degree + ": the sequence or the GPUs cannot be cut further; recompute";
  } else {
    step.decision =
        degree + (!enough               ? ": the fastest of these by the closed form"
                  : best.layout.pp == 1 ? ": the smallest that recomputes at most half the layers"
                                        : ": the smallest that recomputes at most half the layers "
                                          "and leaves micro-batches for every stage");
  }
  board.layout = with_cp(board, best.layout.cp);
}

std::string ep_text(const Board& board, const Estimate& estimate) {
  const Layout& layout = estimate.layout;
  const std::string layers = std::to_string(board.job.model.layers);
  const double bytes =
      sharded_states(board, layout) + recomputed_bytes(board, layout, board.sizes.layers);
  return "ep " + std::to_string(layout.ep) + ": " +
         size_equation(
             sharded_states_text(board, layout) + " + " + recomputed_text(board, layout, layers),
             bytes) +
         (estimate.fits ? ", recompute " + figure(estimate.recompute_layers) + "/" +
                              figure(estimate.stage_layers)
                        : ", too much");
}

/// The smallest ep that fits and recomputes at most half the layers, for fewer ranks to exchange
/// tokens with; else the fastest by the closed form.
void choose_ep(Board& board, PlanStep& step) {
  const Layout chosen = board.layout;
  std::vector<Estimate> rungs;
  for (std::int64_t ep = 1; ep <= board.spread && (ep == 1 || mostly_recomputed(rungs.back()));
       ep *= 2) {
    rungs.push_back(
        board.estimator.estimate(layout_with(board, chosen.tp, chosen.cp, chosen.pp, ep)));
    step.arithmetic.push_back(ep_text(board, rungs.back()));
  }
  const bool enough = !mostly_recomputed(rungs.back());
  const Estimate& best =
      enough ? rungs.back() : *std::max_element(rungs.begin(), rungs.end(), slower);
  const std::int64_t ep = best.layout.ep;
  step.decision += "; ep " + std::to_string(ep) +
                   (!best.fits ? ": the most that divides here, and not enough"
                    : enough   ? ": the smallest that fits and recomputes at most half"
                               : ": the fastest that fits, by the closed form") +
                   (ep == 1                  ? ""
                    : ep <= node_size(board) ? ", its all-to-alls inside the node"
                                             : ", its all-to-alls across the network");
  board.layout = best.layout;
}

/// Where the sequence cannot be cut, splitting layers once more saves activations as well.
std::string wider_tensor(Board& board) {
  const Layout& layout = board.layout;
  const std::int64_t tp = 2 * layout.tp;
  if (!tp_is_legal(board, tp) || board.job.gpus % (tp * layout.cp * layout.pp) != 0 ||
      !mostly_recomputed(board.estimator.estimate(layout))) {
    return "";
  }
  const Estimate wider =
      board.estimator.estimate(layout_with(board, tp, layout.cp, layout.pp, layout.ep));
  if (!wider.fits || !layout_faults(board, wider.layout).empty()) {
    return "";
  }
  board.offered.push_back(wider);
  return "tp " + std::to_string(tp) + " would recompute " + figure(wider.recompute_layers) +
         " of " + figure(wider.stage_layers) + " layers, MFU " + percent(wider.mfu) +
         " instead of " + percent(board.estimator.estimate(layout).mfu) + ": " + kMeasureIt;
}

}  // namespace

void decide_context(Board& board) {
  const Layout before = board.layout;
  const bool experts = board.job.model.experts > 0;
  PlanStep step;
  step.title = experts ? "Context and expert parallelism" : "Context parallelism";
  step.question = experts ? "Must the sequence be cut, and over how many GPUs do experts spread?"
                          : "Is the sequence so long that it must be cut?";
  const Estimate estimate = board.estimator.estimate(board.layout);
  if (sharded_states(board, board.layout) > usable_bytes(board)) {
    step.decision = "cp 1: cutting the sequence would not shrink the states";
  } else if (worth_cutting(estimate)) {
    choose_cp(board, step);
  } else {
    step.arithmetic.push_back("recomputed at cp 1: " + figure(estimate.recompute_layers) + " of " +
                              figure(estimate.stage_layers) +
                              " layers; worth cutting from more than half");
    if (estimate.layout.pp > 1) {
      step.arithmetic.push_back("micro-batches at cp 1: " + figure(estimate.micro_batches) +
                                " for " + figure(estimate.layout.pp) +
                                " stages; worth cutting when fewer");
    }
    step.decision = "cp 1: not needed";
  }
  if (experts) {
    choose_ep(board, step);
  }
  if (const Estimate after = board.estimator.estimate(board.layout);
      !(board.layout == before) && after.fits) {
    step.decision += ". So a GPU takes " + size_text(after.memory.total()) + " and recomputes " +
                     figure(after.recompute_layers) + " of " + figure(after.stage_layers) +
                     " layers";
  }
  step.otherwise = wider_tensor(board);
  if (step.otherwise.empty()) {
    step.otherwise =
        "a longer sequence: activations grow with it, and so does the attention that "
        "hides the ring";
  }
  board.plan.steps.push_back(std::move(step));
}

}  // namespace foretrain
