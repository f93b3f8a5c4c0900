#include "sim/plan/board.h"

#include "sim/base/format.h"
#include "sim/plan/figures.h"
#include "sim/scenario/divides.h"
#include "sim/search/stages.h"

#include <algorithm>
#include <utility>

namespace foretrain {
Board make_board(const TrainingJob& job, const PlanOptions& options, SearchResult found) {
  const Assumptions& given = options.assumptions;
  Board board{job,
              options,
              given,
              Estimator(job.model, job.sequence_length, job.global_batch_size, given),
              estimator_sizes(job.model, job.sequence_length, job.global_batch_size, given),
              std::move(found),
              {},
              1,
              {},
              {},
              {}};
  board.layout = layout_with(board, 1, 1, 1, 1);
  return board;
}

double usable_bytes(const Board& board) {
  return board.given.memory * board.given.memory_fraction;
}

double bytes_per_parameter(const Board& board) {
  return board.given.weight_bytes + board.given.gradient_bytes + board.given.optimizer_bytes;
}

std::int64_t node_size(const Board& board) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(board.given.gpus_per_node));
}

bool tp_is_legal(const Board& board, std::int64_t tp) {
  const ModelConfig& model = board.job.model;
  return heads_divide(model, tp) && key_value_heads_divide(model, tp, false) &&
         mlp_divides(model, tp) && sequence_divides(board.job.sequence_length, tp, 1) &&
         board.job.gpus % tp == 0 && tp <= node_size(board);
}

bool pp_is_legal(const Board& board, std::int64_t ranks, std::int64_t pp) {
  return board.job.gpus % (ranks * pp) == 0 && stages_divide(board.job.model.layers, pp, 1, true);
}

Layout layout_with(
    const Board& board, std::int64_t tp, std::int64_t cp, std::int64_t pp, std::int64_t ep) {
  Layout layout;
  layout.tp = tp;
  layout.cp = cp;
  layout.pp = pp;
  layout.ep = ep;
  layout.dp = board.job.gpus / (tp * cp * pp);
  if (board.job.model.layers % pp != 0) {
    if (const auto split = split_stages(board.job.model.layers, pp, 1, true)) {
      layout.most_layers = split->most;
      layout.last_layers = split->last;
    }
  }
  return layout;
}

double sharded_states(const Board& board, const Layout& layout) {
  return states(board.given, layout, rank_share(board.sizes, board.given, layout)).total();
}

std::string sharded_states_text(const Board& board, const Layout& layout) {
  const Assumptions& given = board.given;
  const std::string kept = operand(given.weight_bytes + given.gradient_bytes);
  const std::string optimizer = " + " + operand(given.optimizer_bytes) + " x " +
                                operand(given.parameters) + over({board.job.gpus});
  if (given.expert_parameters <= 0) {
    return kept + " x " + operand(given.parameters) + over({layout.tp, layout.pp}) + optimizer;
  }
  return kept + " x (" + operand(given.parameters - given.expert_parameters) + over({layout.tp}) +
         " + " + operand(given.expert_parameters) + over({layout.ep}) + ")" + over({layout.pp}) +
         optimizer;
}

double kept_bytes(const Board& board, const Layout& layout, double layers) {
  const RankShare share = rank_share(board.sizes, board.given, layout);
  return activation_bytes(board.sizes, board.given, layout, share, layers, 0);
}

double recomputed_bytes(const Board& board, const Layout& layout, double layers) {
  const RankShare share = rank_share(board.sizes, board.given, layout);
  return activation_bytes(board.sizes, board.given, layout, share, layers, layers);
}

double kept_per_token(const Board& board, const Layout& layout) {
  RankShare share;
  share.tokens = 1;
  Layout whole = layout;
  whole.tp = 1;
  return activation_bytes(board.sizes, board.given, whole, share, 1, 0);
}

namespace {

std::string tokens_text(const Board& board, const Layout& layout) {
  const std::string whole = std::to_string(board.job.sequence_length);
  return layout.cp == 1 ? whole : "(" + whole + over({layout.cp}) + ")";
}

/// "2048 x 12288 x 96 / 8": s h L / t
std::string token_layers(const Board& board, const Layout& layout, const std::string& layers) {
  return tokens_text(board, layout) + " x " + std::to_string(board.job.model.hidden) + " x " +
         layers + over({layout.tp});
}

}  // namespace

std::string kept_text(const Board& board, const Layout& layout, const std::string& layers) {
  if (board.sizes.moe_share > 0) {
    return operand(kept_per_token(board, layout)) + " x " + tokens_text(board, layout) + " x " +
           layers + over({layout.tp});
  }
  return operand(board.given.activation_bytes) + " x " + token_layers(board, layout, layers);
}

std::string recomputed_text(const Board& board, const Layout& layout, const std::string& layers) {
  return operand(board.given.recomputed_bytes) + " x " + token_layers(board, layout, layers);
}

bool same_plan(const Estimate& a, const Estimate& b) {
  const Layout& x = a.layout;
  const Layout& y = b.layout;
  return x.tp == y.tp && x.cp == y.cp && x.pp == y.pp && x.dp == y.dp && x.ep == y.ep &&
         a.recompute_layers == b.recompute_layers;
}

std::vector<Diagnostic> layout_faults(const Board& board, const Layout& layout) {
  Layout counted = layout;
  counted.recompute_layers = 0;
  const Expected<Scenario> scenario =
      parse_scenario(scenario_text(board.job, counted, board.given, "plan"));
  return scenario ? std::vector<Diagnostic>{} : scenario.error().list;
}

std::string plan_scenario(const Board& board, const Estimate& estimate) {
  Layout layout = estimate.layout;
  layout.recompute_layers = estimate.recompute_layers;
  return scenario_text(
      board.job, layout, board.given, board.job.model.name + "-" + std::to_string(board.job.gpus));
}

std::string count_text(std::int64_t count, const std::string& noun) {
  return with_commas(count) + " " + plural(noun, count);
}

std::string count_text(double whole, const std::string& noun) {
  constexpr double kCountable = 1e15;
  return whole < kCountable ? count_text(static_cast<std::int64_t>(whole), noun)
                            : figure(whole) + " " + noun + "s";
}

}  // namespace foretrain
