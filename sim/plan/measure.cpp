// What to measure: the plan beside the best of the search; or why nothing fits.
#include "sim/base/format.h"
#include "sim/plan/board.h"
#include "sim/plan/figures.h"

#include <algorithm>
#include <vector>

namespace foretrain {
namespace {

constexpr std::size_t kBest = 3;

bool same_degrees(const Layout& a, const Layout& b) {
  return a.tp == b.tp && a.cp == b.cp && a.pp == b.pp && a.dp == b.dp && a.ep == b.ep;
}

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
         (gpus.empty() ? "" : gpus + " GPUs, or ") + "a batch of " +
         (lower > 0 ? with_commas(lower) + " or " : std::string()) +
         count_text(lower + layout.dp, "sequence");
}

/// "1.13 TB of states, 8 GPUs have 576 GB to give"; the rule broken; or what binds the search.
std::string reason_nothing_fits(const Board& board) {
  const double total = bytes_per_parameter(board) * board.given.parameters;
  const double all = usable_bytes(board) * static_cast<double>(board.job.gpus);
  if (total > all) {
    return figure(bytes_per_parameter(board)) + " x " + figure(board.given.parameters) + " = " +
           size_text(total) + " of states, but " + count_text(board.job.gpus, "GPU") + " x " +
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

void decide_measure(Board& board) {
  Plan& plan = board.plan;
  const std::vector<RankedLayout>& found = board.found.layouts;
  plan.ranked = static_cast<std::int64_t>(found.size());
  plan.best.assign(found.begin(),
                   found.begin() + static_cast<std::ptrdiff_t>(std::min(kBest, found.size())));
  for (const RankedLayout& layout : found) {
    if (same_degrees(layout.estimate.layout, plan.estimate.layout)) {
      plan.rank = layout.closed_form_rank;
    }
  }
  PlanStep step;
  step.title = "Measure";
  step.question = "Estimates only narrow the field: which layouts deserve a few dozen steps?";
  int width = display_width(degrees_text(plan.estimate.layout));
  for (const RankedLayout& layout : plan.best) {
    width = std::max(width, display_width(degrees_text(layout.estimate.layout)));
  }
  step.arithmetic.push_back(candidate_text("this plan", plan.estimate, width));
  for (std::size_t at = 0; at < plan.best.size(); ++at) {
    const Estimate& estimate = plan.best[at].estimate;
    if (!same_degrees(estimate.layout, plan.estimate.layout)) {
      step.arithmetic.push_back(
          candidate_text("search " + std::to_string(at + 1), estimate, width));
    }
  }
  const std::string among = " of " + count_text(plan.ranked, "layout") + " that fit";
  step.decision = plan.rank == 1 ? "measure this plan first: search also ranks it 1st" + among
                  : plan.rank > 1
                      ? "measure these: search ranks this plan " + ordinal(plan.rank) + among +
                            ", by closed form"
                      : "measure these: this plan lies outside the degrees that search looks at";
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
  if (plan.smallest && rule.empty()) {
    const Layout& layout = plan.smallest->layout;
    const std::int64_t gpus = layout.tp * layout.cp * layout.pp * layout.dp;
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
