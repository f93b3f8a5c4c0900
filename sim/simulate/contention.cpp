#include "sim/simulate/contention.h"

#include "sim/program/stretch.h"
#include "sim/simulate/beside.h"
#include "sim/simulate/parts.h"
#include "sim/simulate/watched.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace foretrain {
namespace {

/// Runs before the last one; what is then left to change is told.
constexpr int kPasses = 2;
/// Steps whose kernels lose less than this run no second time.
constexpr double kLittle = 0.005;
/// Above this many records of all classes, some stand for the others.
constexpr std::int64_t kMostRecords = 1'000'000;

/// Time over what of it was not lost, rounded up.
std::int64_t stretch_from(const Loss& loss) {
  if (loss.lost <= 0.0) {
    return kUnitFactor;
  }
  const double factor = loss.time / (loss.time - loss.lost) * static_cast<double>(kUnitFactor);
  return std::clamp(static_cast<std::int64_t>(std::ceil(factor)), kUnitFactor, kMostStretch);
}

/// Where a stretch settles that went from `before` to `now` and would go on to `next`: it swings,
/// so the secant's root.
std::int64_t settled(std::int64_t before, std::int64_t now, std::int64_t next) {
  const auto step = static_cast<double>(next - now);
  const double slope = before == now ? 0.0 : step / static_cast<double>(now - before);
  return slope < 0.0 && slope >= -1.0
             ? now + static_cast<std::int64_t>(std::ceil(step / (1.0 - slope)))
             : next;
}

class Passes {
 public:
  Passes(const ContentionModel& model,
         const std::vector<std::int32_t>& settled,
         RunOptions options,
         Program& folded)
      : model_(model),
        settled_(folded.blocks.size(), false),
        options_(std::move(options)),
        folded_(folded),
        watched_(folded, kMostRecords) {
    for (const std::int32_t block : settled) {
      settled_[static_cast<std::size_t>(block)] = true;
    }
    for (const Template& body : folded.templates) {
      before_.emplace_back(body.calls.size());
    }
    options_.evaluator = Evaluator::kAuto;
    options_.measured_steps = 1;
    options_.recorded_instances = watched_.instances();
  }

  /// Runs and stretches. False: another run would change little, or the program cannot end.
  bool next(ContentionOutcome& outcome) {
    const RunResult result = run(folded_, options_);
    const auto* timeline = std::get_if<Timeline>(&result);
    if (timeline == nullptr) {
      return false;
    }
    const Duration step = step_time(*timeline);
    Beside beside(model_, folded_, settled_);
    for (std::size_t first = 0; first < timeline->spans.size();) {
      std::size_t end = first;
      while (end < timeline->spans.size() &&
             timeline->spans[end].instance == timeline->spans[first].instance) {
        ++end;
      }
      const auto instance = static_cast<std::size_t>(timeline->spans[first].instance);
      const std::vector<Instant>& ends = timeline->instance_step_ends[instance];
      beside.add(std::span(timeline->spans).subspan(first, end - first), ends[1] - ends[0]);
      first = end;
    }
    const bool again = stretch(beside.losses(), outcome);
    outcome.step = runs_++ > 0 ? std::optional(step) : std::nullopt;
    return again;
  }

 private:
  /// Calls of one block share what they lose: which of them a transfer happens to meet moves with
  /// every pass, and along a pipeline the latest would win each time.
  std::vector<CallLoss> by_block(const Template& body, const std::vector<CallLoss>& losses) const {
    std::vector<CallLoss> sums(folded_.blocks.size());
    for (std::size_t c = 0; c < losses.size(); ++c) {
      CallLoss& sum = sums[static_cast<std::size_t>(body.calls[c].block)];
      sum.kernels.time += losses[c].kernels.time;
      sum.kernels.lost += losses[c].kernels.lost;
      sum.transfers.time += losses[c].transfers.time;
      sum.transfers.lost += losses[c].transfers.lost;
    }
    return sums;
  }

  bool stretch(const std::vector<std::vector<CallLoss>>& losses, ContentionOutcome& outcome) {
    bool changed = false;
    Loss kernels;
    for (std::size_t t = 0; t < losses.size(); ++t) {
      const auto told = static_cast<std::size_t>(watched_.template_for(static_cast<int>(t)));
      const std::vector<Call>& calls = folded_.templates[told].calls;
      const std::vector<CallLoss> means = by_block(folded_.templates[told], losses[told]);
      const std::vector<std::int32_t> likes = watched_.calls_for(static_cast<int>(t));
      for (std::size_t c = 0; c < losses[t].size(); ++c) {
        Call& call = folded_.templates[t].calls[c];
        const CallLoss loss =
            likes[c] < 0
                ? CallLoss{}
                : means[static_cast<std::size_t>(calls[static_cast<std::size_t>(likes[c])].block)];
        Stretches& before = before_[t][c];
        const Stretches now = stretches_of(call);
        call.kernel_stretch = settled(before.kernel, now.kernel, stretch_from(loss.kernels));
        call.transfer_stretch =
            settled(before.transfer, now.transfer, stretch_from(loss.transfers));
        changed = changed || now != stretches_of(call);
        before = now;
        kernels.time += losses[t][c].kernels.time;
        kernels.lost += losses[t][c].kernels.lost;
      }
    }
    outcome.slowed =
        kernels.time > kernels.lost ? kernels.lost / (kernels.time - kernels.lost) : 0.0;
    return changed && kernels.lost > kLittle * kernels.time;
  }

  const ContentionModel& model_;
  std::vector<bool> settled_;
  RunOptions options_;
  Program& folded_;
  Watched watched_;
  int runs_ = 0;
  std::vector<std::vector<Stretches>> before_;  ///< the stretches of the run before the last
};

/// Folding keeps templates, so their calls are the same.
void copy_stretches(const Program& from, Program& to) {
  for (std::size_t t = 0; t < from.templates.size(); ++t) {
    for (std::size_t c = 0; c < from.templates[t].calls.size(); ++c) {
      const Call& call = from.templates[t].calls[c];
      to.templates[t].calls[c].kernel_stretch = call.kernel_stretch;
      to.templates[t].calls[c].transfer_stretch = call.transfer_stretch;
    }
  }
}

}  // namespace

ContentionOutcome settle_contention(const Scenario& scenario,
                                    const std::vector<std::int32_t>& settled,
                                    const RunOptions& options,
                                    Program& full,
                                    Program& folded) {
  ContentionOutcome outcome;
  const ContentionModel model(scenario);
  if (!model.active()) {
    outcome.note =
        !model.unknown()
            ? ""
            : "kernels are not slowed by transfers beside them: the GPU's file states no "
              "multiprocessors and collective_multiprocessors";
    return outcome;
  }
  Passes passes(model, settled, options, folded);
  for (int pass = 0; pass < kPasses && passes.next(outcome); ++pass) {
  }
  copy_stretches(folded, full);
  return outcome;
}

}  // namespace foretrain
