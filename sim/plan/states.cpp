// How much the model is before any of it is split, and how few GPUs could hold it.
#include "sim/base/format.h"
#include "sim/plan/board.h"
#include "sim/plan/figures.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

/// "16 x 175e9 = 2.8e12 bytes = 2.8 TB"
std::string product_text(double bytes, double parameters) {
  const std::string product = operand(bytes) + " x " + operand(parameters);
  const double total = bytes * parameters;
  return equation(product, total) + " bytes = " + size_text(outcome(product, total));
}

/// A line per kind of sharding over every GPU: the least a GPU can come to hold.
void add_sharded(const Board& board, PlanStep& step) {
  const Assumptions& given = board.given;
  const double gpus = static_cast<double>(board.job.gpus);
  const double n = given.parameters;
  const double w = given.weight_bytes;
  const double g = given.gradient_bytes;
  const double o = given.optimizer_bytes;
  const std::string share = over({board.job.gpus}) + ") x " + operand(n);
  step.arithmetic.push_back(
      "ZeRO-1, the optimizer sharded over all GPUs: " +
      size_equation("(" + operand(w + g) + " + " + operand(o) + share, (w + g + o / gpus) * n));
  step.arithmetic.push_back(
      "ZeRO-2, gradients as well: " +
      size_equation("(" + operand(w) + " + " + operand(g + o) + share, (w + (g + o) / gpus) * n));
  step.arithmetic.push_back(
      "ZeRO-3, weights as well: " +
      size_equation(operand(w + g + o) + " x " + operand(n) + over({board.job.gpus}),
                    (w + g + o) / gpus * n));
}

}  // namespace

void decide_states(Board& board) {
  const Assumptions& given = board.given;
  const double n = given.parameters;
  const double each = bytes_per_parameter(board);
  const double total = each * n;
  PlanStep step;
  step.title = "Model states";
  step.question = "What does the model take before a single activation is kept?";
  step.arithmetic.push_back(product_text(each, n) + " (" + figure(given.weight_bytes) +
                            " weights, " + figure(given.gradient_bytes) + " gradients, " +
                            figure(given.optimizer_bytes) + " optimizer)");
  const double single = 4 - given.gradient_bytes;
  if (single > 0) {
    step.arithmetic.push_back("with fp32 gradients: " + product_text(each + single, n));
  }
  if (given.expert_parameters > 0) {
    step.arithmetic.push_back(
        "of the parameters in routed experts: " +
        percent_equation(operand(given.expert_parameters) + " / " + operand(n),
                         given.expert_parameters / n));
  }
  if (board.job.gpus > 1) {
    add_sharded(board, step);
  }
  const double usable = usable_bytes(board);
  step.arithmetic.push_back(
      "usable on a GPU: " +
      size_equation(operand(given.memory_fraction) + " x " + size_operand(given.memory), usable));
  step.decision = total <= usable ? "one GPU could hold all " + size_text(total) + " of states"
                                  : size_text(total) + " of states must be spread: a GPU has " +
                                        size_text(usable) + " to give";
  step.otherwise = "8-bit moments, or offloading them, cut the optimizer's " +
                   figure(given.optimizer_bytes) + " bytes";
  board.plan.steps.push_back(std::move(step));
}

void decide_replica(Board& board) {
  const Assumptions& given = board.given;
  const double total = bytes_per_parameter(board) * given.parameters;
  const double least = std::max(1.0, std::ceil(total / given.memory - 1e-9));
  const auto node = static_cast<double>(node_size(board));
  PlanStep step;
  step.title = "Smallest replica";
  step.question = "How few GPUs hold one copy of the model?";
  const double nodes = std::ceil(least / node);
  const double single = total + (4 - given.gradient_bytes) * given.parameters;
  const std::string capacity = " / " + operand(given.memory);
  step.arithmetic.push_back(equation(operand(total) + capacity, total / given.memory) +
                            ", so at least " + count_text(least, "GPU") + " of " +
                            size_text(given.memory) + ", " + count_text(nodes, "node") + " of " +
                            figure(node));
  if (single > total) {
    step.arithmetic.push_back(
        "with fp32 gradients: " + equation(operand(single) + capacity, single / given.memory) +
        ", so " + figure(std::ceil(single / given.memory - 1e-9)));
  }
  const bool holds = least <= static_cast<double>(board.job.gpus);
  step.decision = !holds
                      ? "the " + count_text(board.job.gpus, "GPU") +
                            " here cannot hold it: " + figure(least) + " before any activation, " +
                            count_text(nodes * node, "GPU") + " in whole nodes"
                  : least <= 1    ? "one GPU, if activations leave room"
                  : least <= node ? "inside one node, at least " + figure(least) + " of its " +
                                        count_text(node_size(board), "GPU")
                                  : "more than a node, unless the optimizer is sharded (step 3)";
  step.otherwise = "sharding over data-parallel ranks (ZeRO) lowers this: steps 3 and 7 use it";
  board.plan.steps.push_back(std::move(step));
}

}  // namespace foretrain
