// How many ways a layer is split inside the node.
#include "sim/base/format.h"
#include "sim/plan/board.h"
#include "sim/plan/figures.h"

#include <algorithm>

namespace foretrain {
namespace {

/// The experts spread over the node, as far as they and the GPUs divide.
std::int64_t experts_in_node(const Board& board) {
  std::int64_t ep = 1;
  for (std::int64_t next = 2; next <= node_size(board); next *= 2) {
    if (board.job.model.experts % next == 0 && board.job.gpus % next == 0) {
      ep = next;
    }
  }
  return board.job.model.experts > 0 ? ep : 1;
}

struct TensorRung {
  Layout layout;
  double bytes = 0;  ///< of a GPU: sharded states, and activations recomputed from their inputs
};

std::vector<TensorRung> tensor_rungs(const Board& board) {
  std::vector<TensorRung> rungs;
  for (std::int64_t tp = 1; tp <= node_size(board); tp *= 2) {
    if (tp_is_legal(board, tp)) {
      TensorRung rung;
      rung.layout = layout_with(board, tp, 1, 1, board.spread);
      rung.bytes = sharded_states(board, rung.layout) +
                   recomputed_bytes(board, rung.layout, board.sizes.layers);
      rungs.push_back(rung);
    }
  }
  return rungs;
}

std::string formula_text(const Board& board) {
  const Assumptions& given = board.given;
  const std::string kept = figure(given.weight_bytes + given.gradient_bytes);
  return kept + (given.expert_parameters > 0 ? " (dense / t + experts / ep)" : " N / t") + " + " +
         figure(given.optimizer_bytes) + " N / GPUs + " + figure(given.recomputed_bytes) +
         " s h L / t, the inputs of layers that recompute, in " + size_text(usable_bytes(board));
}

std::string rung_text(const Board& board, const TensorRung& rung) {
  const double usable = usable_bytes(board);
  const std::string layers = std::to_string(board.job.model.layers);
  return "tp " + std::to_string(rung.layout.tp) + ": " +
         size_equation(sharded_states_text(board, rung.layout) + " + " +
                           recomputed_text(board, rung.layout, layers),
                       rung.bytes) +
         (rung.bytes <= usable ? ", fits" : ", too much");
}

/// Where no tp makes a node hold the model: the largest; with experts, which tp does not split, the
/// smallest that holds the rest.
std::size_t rung_of_many_nodes(const Board& board, const std::vector<TensorRung>& rungs) {
  const Assumptions& given = board.given;
  for (std::size_t at = 0; at < rungs.size() && given.expert_parameters > 0; ++at) {
    const auto tp = static_cast<double>(rungs[at].layout.tp);
    const double dense = (given.weight_bytes + given.gradient_bytes) *
                         (given.parameters - given.expert_parameters) / tp;
    if (dense <= usable_bytes(board)) {
      return at;
    }
  }
  return rungs.size() - 1;
}

/// What the collectives of this tp take beside the arithmetic: 16 (t - 1) h P / (B f).
void add_traffic(const Board& board, std::int64_t tp, PlanStep& step) {
  const Assumptions& given = board.given;
  const double rate = given.peak * given.efficiency;
  const double flops = board.sizes.layer_flops();
  if (tp == 1 || given.expert_parameters > 0) {
    return;
  }
  const double share =
      16 * static_cast<double>(tp - 1) * board.sizes.hidden * rate / (given.node_bandwidth * flops);
  step.arithmetic.push_back(
      "traffic over arithmetic of a layer: " +
      percent_equation("16 x (" + std::to_string(tp) + " - 1) x " + operand(board.sizes.hidden) +
                           " x " + operand(rate) + " / (" + operand(given.node_bandwidth) + " x " +
                           operand(flops) + ")",
                       share,
                       0));
}

std::string network_text(const Board& board) {
  return "inside a node a GPU sends " + human_rate(board.given.node_bandwidth) +
         ", between nodes " + human_rate(board.given.network_bandwidth);
}

}  // namespace

void decide_tensor(Board& board) {
  board.spread = experts_in_node(board);
  const std::vector<TensorRung> rungs = tensor_rungs(board);
  const double usable = usable_bytes(board);
  std::size_t chosen = 0;
  while (chosen < rungs.size() && rungs[chosen].bytes > usable) {
    ++chosen;
  }
  const bool holds = chosen < rungs.size();
  if (!holds) {
    chosen = rung_of_many_nodes(board, rungs);
  }
  const std::int64_t tp = rungs[chosen].layout.tp;
  PlanStep step;
  step.title = "Tensor parallelism";
  step.question =
      "How many ways is a layer split, for weights, gradients and sharded optimizer to fit?";
  step.arithmetic.push_back(formula_text(board));
  const std::size_t shown = holds ? chosen + 1 : rungs.size();
  for (std::size_t at = 0; at < shown; ++at) {
    step.arithmetic.push_back(rung_text(board, rungs[at]));
  }
  add_traffic(board, tp, step);
  const std::string degree = "tp " + std::to_string(tp);
  const std::string experts =
      board.spread > 1
          ? ", with the experts over ep " + std::to_string(board.spread) + " until step 6 decides"
          : "";
  step.decision =
      holds && tp == 1 ? degree + ": no layer needs splitting" + experts
      : holds          ? degree + ": the smallest that fits " + size_text(usable) + experts
      : tp == rungs.back().layout.tp
          ? degree + ": the most that divides here (node of " + figure(node_size(board)) +
                "), and not enough by itself"
          : degree + ": it would not split the experts, which are the bulk; the rest fits without";
  step.otherwise = network_text(board) +
                   ": tp stays inside; a larger hidden size makes it cheaper, as (t - 1) / h";
  board.layout = layout_with(board, tp, 1, 1, board.spread);
  board.plan.steps.push_back(std::move(step));
}

}  // namespace foretrain
