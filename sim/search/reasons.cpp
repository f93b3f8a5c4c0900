#include "sim/search/reasons.h"

#include "sim/base/format.h"
#include "sim/search/way_out.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

/// What is beyond an integer's range is shown as its end.
constexpr double kLargestShown = 9e18;

std::string bytes(double value) {
  return human_bytes(std::llround(std::min(value, kLargestShown)));
}

/// Three significant figures: "70.6e9", "671e9".
std::string scientific(double value) {
  const double billions = value / 1e9;
  return fixed(billions, billions < 10 ? 2 : billions < 100 ? 1 : 0) + "e9";
}

/// Parts of a reason, one after the other.
class Sentences {
 public:
  void add(const std::string& part) { text_ += (text_.empty() ? "" : "; ") + part; }
  const std::string& joined() const { return text_; }

 private:
  std::string text_;
};

/// "70.6e9 parameters x 16 bytes = 1.130 TB of states: 15 GPUs of 80 GB or more".
std::string states_of(const Assumptions& assumptions, double bytes_each) {
  const double states = assumptions.parameters * bytes_each;
  const std::int64_t gpus =
      std::llround(std::min(std::ceil(states / assumptions.memory), kLargestShown));
  return fixed(bytes_each, bytes_each == std::floor(bytes_each) ? 0 : 1) +
         " bytes = " + bytes(states) + " of states, at least " + with_commas(gpus) + " " +
         plural("GPU", gpus) + " of " + bytes(assumptions.memory);
}

std::string states_reason(const SearchSubject& subject) {
  const Assumptions& given = subject.assumptions;
  const double each = given.weight_bytes + given.gradient_bytes + given.optimizer_bytes;
  std::string reason = scientific(given.parameters) + " parameters x " + states_of(given, each);
  if (given.gradient_bytes < 4) {
    reason += " (fp32 gradients: " + states_of(given, each - given.gradient_bytes + 4) + ")";
  }
  if (subject.job.gpus == 1) {
    return reason + "; here is 1 x " + bytes(given.memory);
  }
  return reason + "; here are " + with_commas(subject.job.gpus) + " x " + bytes(given.memory) +
         " = " + bytes(static_cast<double>(subject.job.gpus) * given.memory);
}

std::string recomputed(const Estimate& estimate) {
  return estimate.recompute_layers == 0
             ? ""
             : ", " + with_commas(estimate.recompute_layers) + " of " +
                   fixed(estimate.stage_layers, 0) + " " +
                   plural("layer", std::llround(estimate.stage_layers)) + " recomputed";
}

/// What to know of a layout that cannot be put to the simulation.
std::string unsimulated(const SearchSubject& subject, const Estimate& estimate) {
  const std::string why = why_not_simulated(subject.job, estimate, subject.assumptions);
  return why.empty() ? "" : " (" + why + ")";
}

std::string cluster_of(const SearchSubject& subject,
                       const SearchResult& result,
                       const Estimate& estimate) {
  const std::int64_t gpus = estimate.layout.gpus();
  return with_commas(gpus) + " " + plural("GPU", gpus) + " as " + to_string(estimate.layout) +
         ", " + bytes(estimate.memory.total()) + (gpus == 1 ? "" : " each") + recomputed(estimate) +
         (result.refutes(estimate.layout) ? " (does not fit when simulated)"
                                          : unsimulated(subject, estimate));
}

void add_smallest(const SearchSubject& subject, const SearchResult& result, Sentences& sentences) {
  sentences.add(result.smallest
                    ? "smallest cluster: " + cluster_of(subject, result, *result.smallest)
                    : "no cluster of up to " + with_commas(kLargestCluster) +
                          " GPUs holds this job with these axes");
  if (subject.axes.uneven_stages) {
    return;
  }
  SearchAxes uneven = subject.axes;
  uneven.uneven_stages = true;
  const std::optional<Estimate> other =
      smallest_that_fits(subject.job, uneven, subject.assumptions);
  if (other && (!result.smallest || other->layout.gpus() < result.smallest->layout.gpus())) {
    sentences.add("with uneven stages: " + cluster_of(subject, result, *other));
  }
}

std::string words_of(const std::vector<SearchChange>& changes) {
  std::string words;
  for (const SearchChange& change : changes) {
    words += (words.empty() ? "" : " ") + change.option +
             (change.value.empty() ? "" : " " + change.value);
  }
  return words;
}

/// What leaves out most of what would be possible otherwise, with its way out.
void add_binding(const SearchSubject& subject,
                 const Combinations& combinations,
                 const Sieved& sieved,
                 Sentences& sentences) {
  const std::string of_all = " of " + with_commas(combinations.count()) + " combinations";
  const std::optional<Binding> binding = binding_rules(subject, combinations);
  if (!binding) {
    for (std::size_t rule = 0; rule < sieved.breaking.size(); ++rule) {
      if (sieved.breaking[rule] > 0) {  // the GPUs', or that it is no layout of its own
        sentences.add(layout_rules()[rule].name(subject) + ": " +
                      with_commas(sieved.breaking[rule]) + of_all);
      }
    }
    return;
  }
  std::string names;
  for (const std::size_t rule : binding->rules) {
    names += (names.empty() ? "" : ", and ") + layout_rules()[rule].name(subject);
  }
  AskedSearch asked{subject.job, subject.axes, subject.assumptions};
  const std::string words = words_of(relaxed(*binding, asked));
  const bool alone = binding->rules.size() == 1;
  sentences.add(names + ": " + with_commas(binding->layouts) + of_all +
                (binding->layouts == 1 ? " breaks " : " break ") +
                (alone ? "this rule alone" : "these rules alone") +
                (words.empty() ? "" : ", but not with " + words));
}

/// The closed form's memory limit less by as much as it misses of the simulated layout that takes
/// least: what fits then should fit when simulated.
Assumptions held_back(const Assumptions& given, const RankedLayout& nearest) {
  Assumptions held = given;
  const auto peak = static_cast<double>(nearest.simulated->memory_bytes);
  held.memory_fraction *= std::min(1.0, nearest.estimate.memory.total() / std::max(peak, 1.0));
  return held;
}

/// Whether it fits when simulated with every layer recomputed, where that is the search's to
/// choose.
bool fits_recomputed(const SearchSubject& subject, const RankedLayout& ranked) {
  const std::vector<std::int64_t>& asked = subject.axes.recompute_layers;
  const auto layers = static_cast<std::int64_t>(ranked.estimate.stage_layers);
  if (asked != std::vector<std::int64_t>{kRecomputeAsNeeded} ||
      ranked.estimate.recompute_layers >= layers) {
    return false;
  }
  Layout layout = ranked.estimate.layout;
  layout.recompute_layers = layers;
  const auto simulated =
      simulate_text(scenario_text(subject.job, layout, subject.assumptions, "search"));
  return simulated && !simulated->deadlock && simulated->fits != Fit::kNo;
}

void explain_all_refuted(const SearchSubject& subject, SearchResult& result) {
  const RankedLayout& nearest =
      *std::min_element(result.layouts.begin(),
                        result.layouts.end(),
                        [](const RankedLayout& a, const RankedLayout& b) {
                          return a.simulated->memory_bytes < b.simulated->memory_bytes;
                        });
  const auto fit = static_cast<std::int64_t>(result.layouts.size());
  Sentences sentences;
  sentences.add(fit == 1 ? "the only layout that the closed form fits does not fit when simulated"
                         : "the closed form fits " + with_commas(fit) +
                               " layouts, none of them fits when simulated");
  sentences.add("nearest: " + to_string(nearest.estimate.layout) + " peaks at " +
                human_bytes(nearest.simulated->memory_bytes) + " of " +
                human_bytes(nearest.simulated->memory_capacity) + " when simulated, at " +
                bytes(nearest.estimate.memory.total()) + " by the closed form");
  if (fits_recomputed(subject, nearest)) {
    sentences.add("with every layer recomputed it fits, simulated");
    result.way_out = {{"--recompute", "full"}};
    result.reason = sentences.joined();
    return;
  }
  const Assumptions held = held_back(subject.assumptions, nearest);
  result.smallest = smallest_that_fits(subject.job, subject.axes, held);
  std::int64_t gpus = 2 * subject.job.gpus;
  if (result.smallest) {
    const std::int64_t fewest = result.smallest->layout.gpus();
    gpus = fewest > subject.job.gpus ? fewest : gpus;
    sentences.add("smallest cluster, with as much held back: " +
                  cluster_of(subject, result, *result.smallest));
  }
  result.way_out = {{"--gpus", std::to_string(gpus)}};
  result.reason = sentences.joined();
}

}  // namespace

std::string memory_reason(const Estimate& estimate) {
  const EstimateMemory& memory = estimate.memory;
  return "needs " + bytes(memory.total()) + " of the " + bytes(estimate.memory_limit) +
         " a GPU may use, " + bytes(shortfall(estimate)) + " too much (weights " +
         bytes(memory.weights) + ", gradients " + bytes(memory.gradients) + ", optimizer " +
         bytes(memory.optimizer) + ", activations " + bytes(memory.activations) +
         recomputed(estimate) + ")";
}

std::string list_reason(const SearchSubject& subject,
                        const Combinations& combinations,
                        const Sieved& sieved,
                        const SearchResult& result) {
  Sentences sentences;
  const auto fit = static_cast<std::int64_t>(sieved.feasible.size());
  if (sieved.legal == 0) {
    sentences.add("none of " + with_commas(result.examined) + " combinations keeps every rule");
  } else if (fit == 0) {
    sentences.add(sieved.legal == 1
                      ? "the only legal layout does not fit in memory"
                      : "none of " + with_commas(sieved.legal) + " legal layouts fits in memory");
  } else {
    sentences.add("only " + with_commas(fit) + " of " + with_commas(result.examined) +
                  " combinations " + (fit == 1 ? "fits" : "fit"));
  }
  if (sieved.nearest) {
    sentences.add((fit == 0 ? "nearest: " : "the next best misses: ") +
                  to_string(sieved.nearest->layout) + unsimulated(subject, *sieved.nearest) + " " +
                  memory_reason(*sieved.nearest));
    if (fit == 0) {
      sentences.add(states_reason(subject));
    }
  }
  if (fit > 0 || sieved.legal == 0) {
    add_binding(subject, combinations, sieved, sentences);
  }
  add_smallest(subject, result, sentences);
  return sentences.joined();
}

void explain_refuted(const SearchSubject& subject, SearchResult& result) {
  const auto refuted = std::count_if(result.layouts.begin(),
                                     result.layouts.end(),
                                     [](const RankedLayout& ranked) { return ranked.refuted(); });
  if (refuted == 0) {
    return;
  }
  const RankedLayout* const best = result.best();
  if (best == nullptr) {
    explain_all_refuted(subject, result);
  } else if (!best->simulated) {
    const std::string why = best->not_simulated.empty()
                                ? "is the closed form's next, a larger --top simulates more"
                                : "cannot be simulated";
    result.reason +=
        (result.reason.empty() ? "" : "; ") +
        std::string(refuted == 1 ? "the only layout simulated does"
                                 : "the " + with_commas(refuted) + " layouts simulated do") +
        " not fit, and rank 1 " + why;
  }
}

}  // namespace foretrain
