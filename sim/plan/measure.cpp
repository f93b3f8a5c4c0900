// What to measure: the plan beside the best of the search; or why nothing fits.
#include "sim/base/format.h"
#include "sim/plan/board.h"
#include "sim/plan/figures.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace foretrain {
namespace {

constexpr std::size_t kBest = 3;

/// Three figures, so that the column is straight: "5.31 s", "20.0 s", "104 s".
std::string step_text(double seconds) {
  return fixed(seconds, seconds < 9.995 ? 2 : seconds < 99.95 ? 1 : 0) + " s";
}

std::string candidate_text(const std::string& name, const Estimate& estimate, int width) {
  const std::string recomputed =
      estimate.recompute_layers > 0
          ? "  recompute " + figure(estimate.recompute_layers) + "/" + figure(estimate.stage_layers)
          : "";
  return pad(name, 10) + pad(degrees_text(estimate.layout), width) +
         pad(step_text(estimate.step_time_s), 9, true) + "  MFU " +
         pad(percent(estimate.mfu), 6, true) +
         pad(fixed(estimate.memory.total() / 1e9, 1) + " GB", 10, true) + recomputed;
}

/// Divisors of the batch around a dp: the greatest below it and the least above, as far as
/// clusters go.
std::vector<std::int64_t> divisors_around(std::int64_t batch, std::int64_t dp) {
  constexpr std::int64_t kMost = 1 << 20;
  std::vector<std::int64_t> list;
  for (std::int64_t below = std::min({batch, dp, kMost}); below > 0 && list.empty(); --below) {
    if (batch % below == 0) {
      list.push_back(below);
    }
  }
  const std::int64_t most = std::min(batch, kMost);
  std::int64_t above = dp + 1;
  while (above <= most && batch % above != 0) {
    ++above;
  }
  if (above <= most) {
    list.push_back(above);
  }
  return list;
}

/// What would make the batch shareable, GPUs or sequences; "" where that is not the matter.
std::string shareable_text(const Board& board) {
  const Layout& layout = board.layout;
  const std::int64_t batch = board.job.global_batch_size;
  const std::int64_t ranks = layout.tp * layout.cp * layout.pp;
  if (batch % layout.dp == 0) {
    return "";
  }
  std::string gpus;
  for (const std::int64_t dp : divisors_around(batch, layout.dp)) {
    Layout other = layout;
    other.dp = dp;
    if (board.estimator.estimate(other).fits) {
      gpus += (gpus.empty() ? "" : " or ") + with_commas(dp * ranks);
    }
  }
  const std::int64_t lower = batch / layout.dp * layout.dp;
  return "no layout on " + count_text(board.job.gpus, "GPU") + " shares this batch: take " +
         (gpus.empty() ? "" : gpus + (gpus == "1" ? " GPU, or " : " GPUs, or ")) + "a batch of " +
         (lower > 0 ? with_commas(lower) + " or " : std::string()) +
         count_text(lower + layout.dp, "sequence");
}

/// "1.13 TB of states, 8 GPUs have 576 GB to give"; the rule broken; or what binds the search.
std::string reason_nothing_fits(const Board& board) {
  const double total = bytes_per_parameter(board) * board.given.parameters;
  const double all = usable_bytes(board) * static_cast<double>(board.job.gpus);
  if (total > all) {
    return size_equation(
               operand(bytes_per_parameter(board)) + " x " + operand(board.given.parameters),
               total) +
           " of states, but " + count_text(board.job.gpus, "GPU") + " x " +
           size_text(usable_bytes(board)) + " = " + size_text(all);
  }
  return board.plan.reason.empty() ? board.found.reason : board.plan.reason;
}

}  // namespace

std::string degrees_text(const Layout& layout) {
  return "tp " + std::to_string(layout.tp) + " · cp " + std::to_string(layout.cp) + " · pp " +
         std::to_string(layout.pp) + " · dp " + std::to_string(layout.dp) +
         (layout.ep > 1 ? " · ep " + std::to_string(layout.ep) : "");
}

namespace {

bool listed(const std::vector<RankedLayout>& list, const Estimate& estimate) {
  return std::any_of(list.begin(), list.end(), [&](const RankedLayout& layout) {
    return same_plan(layout.estimate, estimate);
  });
}

/// The place of the plan in the search, and the best of the search that were not refused.
void compare_with_search(Board& board) {
  Plan& plan = board.plan;
  plan.ranked = static_cast<std::int64_t>(board.found.layouts.size());
  for (const RankedLayout& layout : board.found.layouts) {
    if (same_plan(layout.estimate, plan.estimate)) {
      plan.rank = layout.closed_form_rank;
    }
    if (plan.best.size() < kBest && !is_refused(board, layout.estimate)) {
      plan.best.push_back(layout);
    }
  }
}

std::string measure_decision(const Board& board) {
  const Plan& plan = board.plan;
  const std::string among = " of " + count_text(plan.ranked, "layout") + " that fit";
  const std::string refused =
      board.refused.empty()
          ? ""
          : "; the simulation refused " +
                std::string(plan.rank == 2 ? "the one before it" : "what is not listed");
  if (plan.rank == 1) {
    return plan.ranked == 1 ? "measure this plan: search finds no other layout that fits"
                            : "measure this plan first: search also ranks it 1st" + among;
  }
  if (plan.rank > 1) {
    return "measure these: search ranks this plan " + ordinal(plan.rank) + among +
           ", by closed form" + refused;
  }
  return board.refused.empty()
             ? "measure these: this plan lies outside the degrees that search looks at"
             : "measure these: this plan recomputes more layers than search would, by closed form" +
                   refused;
}

}  // namespace

void decide_measure(Board& board) {
  Plan& plan = board.plan;
  compare_with_search(board);
  std::vector<std::pair<std::string, const Estimate*>> rows = {{"this plan", &plan.estimate}};
  for (const RankedLayout& layout : plan.best) {
    if (!same_plan(layout.estimate, plan.estimate)) {
      rows.emplace_back("search " + std::to_string(layout.closed_form_rank), &layout.estimate);
    }
  }
  for (const Estimate& offer : board.offered) {
    if (!same_plan(offer, plan.estimate) && !listed(plan.best, offer) &&
        !is_refused(board, offer)) {
      rows.emplace_back("offered", &offer);
    }
  }
  int width = 0;
  for (const auto& [name, estimate] : rows) {
    width = std::max(width, display_width(degrees_text(estimate->layout)));
  }
  PlanStep step;
  step.title = "Measure";
  step.question = "Estimates only narrow the field: which layouts deserve a few dozen steps?";
  for (const auto& [name, estimate] : rows) {
    step.arithmetic.push_back(candidate_text(name, *estimate, width));
  }
  step.decision = measure_decision(board);
  step.otherwise =
      "a profile of a few steps: it shows which share of the estimate (below) is wrong";
  plan.steps.push_back(std::move(step));
}

void explain_nothing_fits(Board& board) {
  Plan& plan = board.plan;
  const std::string rule = plan.reason;  // a rule that is broken: not for want of memory
  plan.reason = reason_nothing_fits(board);
  plan.nearest = board.found.nearest;
  plan.smallest = board.found.smallest;
  PlanStep step;
  step.title = "No layout";
  step.question = "What binds, and what is the smallest cluster that would do?";
  step.decision = rule.empty() ? "" : shareable_text(board);
  if (step.decision.empty() && !rule.empty()) {
    step.decision = "no layout: " + rule;
  }
  if (plan.nearest) {
    step.arithmetic.push_back("nearest: " + degrees_text(plan.nearest->layout) + " takes " +
                              size_text(plan.nearest->memory.total()) + " of " +
                              size_text(plan.nearest->memory_limit) +
                              " a GPU, every layer recomputed");
  }
  if (plan.smallest && !board.refused.empty()) {
    const Layout& layout = plan.smallest->layout;
    step.arithmetic.push_back("simulated on more GPUs: " + degrees_text(layout) + " fits");
    step.decision +=
        "; " + count_text(layout.gpus(), "GPU") + " hold this model, sequence and batch";
  } else if (plan.smallest && rule.empty()) {
    const Layout& layout = plan.smallest->layout;
    const std::int64_t gpus = layout.gpus();
    step.arithmetic.push_back("smallest: " + degrees_text(layout) + " takes " +
                              size_text(plan.smallest->memory.total()) + " a GPU on " +
                              count_text(gpus, "GPU"));
    step.decision = "no layout here; at least " + count_text(gpus, "GPU") +
                    " hold this model, sequence and batch";
  } else if (step.decision.empty()) {
    step.decision = "no layout here, and none on more of these GPUs either";
  }
  step.otherwise = "GPUs with more memory, a shorter sequence, another batch, ZeRO-3 or offloading";
  plan.steps.push_back(std::move(step));
}

}  // namespace foretrain
