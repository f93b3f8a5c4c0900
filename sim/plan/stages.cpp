// The pipeline once it is chosen: micro-batches, bubble, and stages of equal length.
#include "sim/search/stages.h"

#include "foretrain/model.h"
#include "sim/base/format.h"
#include "sim/plan/board.h"
#include "sim/plan/figures.h"

#include <algorithm>

namespace foretrain {
namespace {

/// The fewest chunks a GPU, at least 2, that interleaving could run here; 0: none.
std::int64_t chunks_possible(const Board& board) {
  const Layout& layout = board.layout;
  if (board.plan.estimate.micro_batches % layout.pp != 0) {
    return 0;
  }
  for (std::int64_t vpp = 2; layout.pp * vpp <= board.job.model.layers; ++vpp) {
    if (split_stages(board.job.model.layers, layout.pp, vpp, true)) {
      return vpp;
    }
  }
  return 0;
}

void add_bubble(const Board& board, std::int64_t m, PlanStep& step) {
  const std::int64_t pp = board.layout.pp;
  const std::string fill = std::to_string(pp - 1);
  const double idle = static_cast<double>(pp - 1);
  const double bubble = idle / static_cast<double>(m);
  step.arithmetic.push_back("bubble, (p - 1) / m of the busy time: " +
                            percent_equation(fill + "/" + std::to_string(m), bubble));
  step.arithmetic.push_back("of the whole step, (p - 1) / (m + p - 1): " +
                            percent_equation(fill + "/(" + std::to_string(m) + " + " + fill + ")",
                                             idle / (static_cast<double>(m) + idle)));
  const std::int64_t vpp = chunks_possible(board);
  if (vpp > 0) {
    step.arithmetic.push_back(
        "interleaved, " + std::to_string(vpp) + " chunks a GPU: " +
        percent_equation(fill + "/(" + std::to_string(vpp) + " x " + std::to_string(m) + ")",
                         bubble / static_cast<double>(vpp)));
  }
  constexpr double kSmall = 0.1;
  step.decision = "m " + with_commas(m) + ", bubble " + fill + "/" + std::to_string(m) + " = " +
                  percent(bubble) +
                  (bubble <= kSmall ? ": m is far above p, 1F1B will do"
                   : vpp > 0        ? ": large; interleave, or fewer stages"
                                    : ": large; fewer stages, or a zero-bubble schedule");
}

/// FLOPs a token of the mean layer, with the numbers put in.
std::string layer_text(const Board& board) {
  const Assumptions& given = board.given;
  const ModelConfig& model = board.job.model;
  const Estimator::Sizes& sizes = board.sizes;
  const std::string layers = std::to_string(model.layers);
  const auto embedded = static_cast<double>(count_parameters(model).input_embedding);
  const double head = sizes.head_flops / 6;
  const std::string tables = embedded == head ? "2 x " + std::to_string(model.vocabulary) + " x " +
                                                    std::to_string(model.hidden)
                                              : operand(embedded + head);
  std::string text = "6 x (" + operand(given.parameters - given.expert_parameters) + " - " +
                     tables + ") / " + layers;
  if (given.expert_parameters > 0) {
    text += " + 6 x " + operand(given.expert_parameters) + " x " +
            std::to_string(model.experts_per_token) + " / " + std::to_string(model.experts) +
            " / " + layers;
  }
  return equation(text + " + " + operand(sizes.attention_flops), sizes.layer_flops()) + " FLOPs";
}

std::string balance_decision(const Board& board, double head) {
  const Layout& layout = board.layout;
  const std::int64_t layers = board.job.model.layers;
  const auto split = split_stages(layers, layout.pp, 1, true);
  if (split && split->ends_as_layers) {
    return "embedding and loss count as layers: first and last stage one layer shorter";
  }
  if (split && !split->per_stage.empty()) {
    return std::to_string(layers) + " layers do not divide by " + std::to_string(layout.pp) +
           ": the middle stages take one more";
  }
  constexpr double kWorthALayer = 0.5;
  return head >= kWorthALayer ? "even here; move a layer off the last stage (first_stage_layers, "
                                "last_stage_layers) and measure"
                              : "even: the head is worth less than half a layer";
}

}  // namespace

void decide_micro_batches(Board& board) {
  const Layout& layout = board.layout;
  const std::int64_t m = board.plan.estimate.micro_batches;
  PlanStep step;
  step.title = "Micro-batches and bubble";
  step.question = "How many micro-batches fill the pipeline, and what does filling it cost?";
  step.arithmetic.push_back("m = " + std::to_string(board.job.global_batch_size) +
                            shared_by({layout.dp}) + " = " + std::to_string(m) +
                            " of one sequence");
  if (layout.pp > 1) {
    add_bubble(board, m, step);
  } else {
    step.decision = "m " + with_commas(m) + ", accumulated one after the other: no bubble";
  }
  step.otherwise =
      m % 2 == 0 ? "micro-batches of 2 make larger matrices, but halve m and double activations"
                 : "fewer replicas (more tp, cp or pp), or a larger batch, make more of them";
  board.plan.steps.push_back(std::move(step));
}

void decide_balance(Board& board) {
  const Layout& layout = board.layout;
  const Estimator::Sizes& sizes = board.sizes;
  const ModelConfig& model = board.job.model;
  const double head = sizes.head_flops / sizes.layer_flops();
  PlanStep step;
  step.title = "Stage balance";
  step.question = "The last stage also has the head: how many layers is it worth?";
  step.arithmetic.push_back(
      "head, 6 V h: " +
      equation("6 x " + std::to_string(model.vocabulary) + " x " + std::to_string(model.hidden),
               sizes.head_flops) +
      " FLOPs a token");
  step.arithmetic.push_back("a layer, 6 N / L and attention: " + layer_text(board));
  step.arithmetic.push_back(
      equation(operand(sizes.head_flops) + " / " + operand(sizes.layer_flops()), head) + " layers");
  const double logits = 4 * static_cast<double>(board.job.sequence_length) *
                        static_cast<double>(model.vocabulary) /
                        static_cast<double>(layout.cp * layout.tp);
  step.arithmetic.push_back("its logits in fp32, kept out of these estimates: " +
                            size_equation("4 x " + std::to_string(board.job.sequence_length) +
                                              " x " + std::to_string(model.vocabulary) +
                                              over({layout.cp, layout.tp}),
                                          logits));
  if (layout.pp == 1) {
    step.decision = "one stage: nothing to balance";
  } else {
    const double most = board.plan.estimate.stage_layers;
    const double last =
        (layout.last_layers > 0 ? static_cast<double>(layout.last_layers) : most) + head;
    const double mean = (sizes.layers + head) / static_cast<double>(layout.pp);
    const double slowest = std::max(most, last);
    step.arithmetic.push_back("slowest stage over the mean, in layers: " +
                              equation(operand(slowest) + " / ((" + std::to_string(model.layers) +
                                           " + " + operand(head) + ") / " +
                                           std::to_string(layout.pp) + ")",
                                       slowest / mean));
    step.decision = balance_decision(board, head);
  }
  step.otherwise = "a larger vocabulary, or more stages of fewer layers, make the head weigh more";
  board.plan.steps.push_back(std::move(step));
}

}  // namespace foretrain
