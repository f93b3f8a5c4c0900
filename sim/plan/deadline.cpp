// How many GPUs keep a deadline, and on how many of them this batch has a layout.
#include "sim/base/format.h"
#include "sim/plan/board.h"
#include "sim/plan/figures.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

/// The most GPUs that are looked at.
std::int64_t most_gpus(const Board& board) {
  const std::int64_t offered = board.job.hardware.max_gpus;
  return offered > 0 ? std::min(offered, kLargestCluster) : kLargestCluster;
}

/// "2226.5 GPUs" behind what comes to it: more figures where four are not enough to say so.
std::string needed_text(const Board& board, const TrainingTime& time) {
  const double needed = *time.gpus_needed;
  const bool by_rate = board.options.tokens_per_s_per_gpu.has_value();
  const auto expression = [&](int digits) {
    return (by_rate
                ? operand(time.tokens, digits) + " / (" + operand(time.tokens_per_s_per_gpu, digits)
                : operand(time.flops, digits) + " / (" + operand(board.given.peak, digits) + " x " +
                      operand(time.mfu, digits)) +
           " x 86400 x " + operand(*board.options.days, digits) + ")";
  };
  constexpr double kAgrees = 5e-4;
  int digits = 4;
  while (digits < 7 && std::fabs(reckoned(expression(digits)) / needed - 1) > kAgrees) {
    ++digits;
  }
  constexpr double kCountable = 10'000;
  return expression(digits) + " = " + (needed < kCountable ? fixed(needed, 1) : figure(needed)) +
         " GPUs";
}

/// The batch that this plan's layout would share over so many GPUs; 0 where it would not.
std::int64_t batch_that_shares(const Board& board, std::int64_t gpus) {
  const Layout& layout = board.layout;
  const std::int64_t ranks = layout.tp * layout.cp * layout.pp;
  const std::int64_t replicas = (gpus + ranks - 1) / ranks;
  return board.plan.feasible && replicas * ranks <= most_gpus(board) ? replicas : 0;
}

std::string shared_text(const Board& board, double whole, TrainingTime& time) {
  const std::string batch = count_text(board.job.global_batch_size, "sequence");
  const std::int64_t most = most_gpus(board);
  if (whole > static_cast<double>(most)) {
    return "more than the " + count_text(most, "GPU") + " that are looked at here";
  }
  const auto gpus = static_cast<std::int64_t>(whole);
  SearchAxes axes;
  axes.uneven_stages = true;
  time.deadline_layout = smallest_that_fits(board.job, axes, board.given, most, gpus);
  if (time.deadline_layout) {
    const Estimate& estimate = *time.deadline_layout;
    const std::int64_t shared = estimate.layout.gpus();
    return (shared == gpus ? "so many share " : "the fewest from there on that share ") + batch +
           (shared == gpus ? " as " : " are " + count_text(shared, "GPU") + ", as ") +
           degrees_text(estimate.layout) + ": MFU there is " + percent(estimate.mfu) +
           " by the closed form";
  }
  time.deadline_batch = batch_that_shares(board, gpus);
  return "no number of GPUs from there to " + with_commas(most) + " shares " + batch + " a step" +
         (time.deadline_batch > 0 ? ": a batch of " + count_text(time.deadline_batch, "sequence") +
                                        " would, one for each replica of this plan"
                                  : "");
}

}  // namespace

void add_deadline(const Board& board, TrainingTime& time, PlanStep& step) {
  const std::string days = figure(*board.options.days);
  step.arithmetic.push_back("in " + days + " days: " + needed_text(board, time));
  const double whole = std::ceil(*time.gpus_needed);
  const double nodes = std::ceil(whole / static_cast<double>(node_size(board)));
  step.decision += (step.decision.empty() ? "" : "; ") + count_text(whole, "GPU") + ", " +
                   count_text(nodes, "node") + " of " + std::to_string(node_size(board)) +
                   (whole == 1 ? ", keeps" : ", keep") + " a deadline of " + days +
                   " days if MFU stays equal; " + shared_text(board, whole, time);
}

}  // namespace foretrain
