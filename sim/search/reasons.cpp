#include "sim/search/reasons.h"

#include "sim/base/format.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

std::string text(std::int64_t value) {
  return with_commas(value);
}

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
  return fixed(bytes_each, bytes_each == std::floor(bytes_each) ? 0 : 1) +
         " bytes = " + bytes(states) + " of states, at least " +
         text(std::llround(std::min(std::ceil(states / assumptions.memory), kLargestShown))) +
         " GPUs of " + bytes(assumptions.memory);
}

std::string states_reason(const SearchSubject& subject) {
  const Assumptions& given = subject.assumptions;
  const double each = given.weight_bytes + given.gradient_bytes + given.optimizer_bytes;
  std::string reason = scientific(given.parameters) + " parameters x " + states_of(given, each);
  if (given.gradient_bytes < 4) {
    reason += " (fp32 gradients: " + states_of(given, each - given.gradient_bytes + 4) + ")";
  }
  return reason + "; here are " + text(subject.job.gpus) + " x " + bytes(given.memory) + " = " +
         bytes(static_cast<double>(subject.job.gpus) * given.memory);
}

std::string recomputed(const Estimate& estimate) {
  return estimate.recompute_layers == 0
             ? ""
             : ", " + text(estimate.recompute_layers) + " of " + fixed(estimate.stage_layers, 0) +
                   " layers recomputed";
}

std::int64_t gpus_of(const Estimate& estimate) {
  const Layout& layout = estimate.layout;
  return layout.tp * layout.cp * layout.pp * layout.dp;
}

std::string cluster_of(const Estimate& estimate) {
  const std::int64_t gpus = gpus_of(estimate);
  return text(gpus) + " " + plural("GPU", gpus) + " as " + to_string(estimate.layout) + ", " +
         bytes(estimate.memory.total()) + " each" + recomputed(estimate);
}

void add_smallest(const SearchSubject& subject, const SearchResult& result, Sentences& sentences) {
  sentences.add(result.smallest ? "smallest cluster: " + cluster_of(*result.smallest)
                                : "no cluster of up to " + text(kLargestCluster) +
                                      " GPUs holds this job with these axes");
  if (subject.axes.uneven_stages) {
    return;
  }
  SearchAxes uneven = subject.axes;
  uneven.uneven_stages = true;
  const std::optional<Estimate> other =
      smallest_that_fits(subject.job, uneven, subject.assumptions);
  if (other && (!result.smallest || gpus_of(*other) < gpus_of(*result.smallest))) {
    sentences.add("with uneven stages: " + cluster_of(*other));
  }
}

/// The rule that leaves out most, with the count and a way out where there is one.
void add_rule(const SearchSubject& subject,
              const Sieved& sieved,
              std::int64_t examined,
              Sentences& sentences) {
  const auto most = std::max_element(sieved.breaking.begin(), sieved.breaking.end());
  if (*most == 0) {
    return;
  }
  const LayoutRule& rule = layout_rules()[static_cast<std::size_t>(most - sieved.breaking.begin())];
  sentences.add(rule.name(subject) + ": " + text(*most) + " of " + text(examined) +
                " combinations");
  for (std::size_t index = 0; index < sieved.breaking.size(); ++index) {
    const LayoutRule& other = layout_rules()[index];
    const std::string_view way = way_out(subject, other);
    if (sieved.breaking[index] > 0 && !way.empty()) {
      sentences.add(other.name(subject) + " (" + text(sieved.breaking[index]) +
                    "): " + std::string(way));
    }
  }
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
                        const Sieved& sieved,
                        const SearchResult& result) {
  Sentences sentences;
  const auto fit = static_cast<std::int64_t>(sieved.feasible.size());
  if (sieved.legal == 0) {
    sentences.add("none of " + text(result.examined) + " combinations keeps every rule");
  } else if (fit == 0) {
    sentences.add(sieved.legal == 1
                      ? "the only legal layout does not fit in memory"
                      : "none of " + text(sieved.legal) + " legal layouts fits in memory");
  } else {
    sentences.add("only " + text(fit) + " of " + text(result.examined) + " combinations " +
                  (fit == 1 ? "fits" : "fit"));
  }
  if (sieved.nearest) {
    sentences.add((fit == 0 ? "nearest: " : "the next best misses: ") +
                  to_string(sieved.nearest->layout) + " " + memory_reason(*sieved.nearest));
    if (fit == 0) {
      sentences.add(states_reason(subject));
    }
  }
  if (fit > 0 || sieved.legal == 0) {
    add_rule(subject, sieved, result.examined, sentences);
  }
  add_smallest(subject, result, sentences);
  return sentences.joined();
}

}  // namespace foretrain
