#include "sim/search/sieve.h"

#include "sim/search/layout_rules.h"
#include "sim/search/parallel.h"

#include <algorithm>

namespace foretrain {
namespace {

/// Large enough that a thread is worth starting for the next one.
constexpr std::int64_t kChunk = 2048;

void keep_nearest(const Estimate& estimate, std::optional<Estimate>& nearest) {
  if (!nearest || shortfall(estimate) < shortfall(*nearest)) {
    nearest = estimate;
  }
}

/// As many layers as needed may be a number that stands beside it on the axis.
bool is_stated_too(const SearchAxes& axes, const Estimate& estimate) {
  const std::vector<std::int64_t>& stated = axes.recompute_layers;
  const auto holds = [&stated](std::int64_t layers) {
    return std::find(stated.begin(), stated.end(), layers) != stated.end();
  };
  const auto all = static_cast<std::int64_t>(estimate.stage_layers);
  const std::int64_t layers = estimate.recompute_layers;
  return estimate.layout.recompute_layers == kRecomputeAsNeeded &&
         (holds(layers) || (layers == all && holds(kRecomputeAll)));
}

Sieved sieve_range(const SearchSubject& subject,
                   const Estimator& estimator,
                   const Combinations& combinations,
                   std::int64_t first,
                   std::int64_t last) {
  Sieved sieved;
  sieved.breaking.resize(layout_rules().size());
  for (std::int64_t number = first; number < last; ++number) {
    const Layout layout = combinations.at(number, subject.job.gpus);
    if (const std::optional<std::size_t> broken = first_broken(subject, layout)) {
      ++sieved.breaking[*broken];
      continue;
    }
    ++sieved.legal;
    const Estimate estimate = estimator.estimate(layout);
    if (estimate.fits && is_stated_too(subject.axes, estimate)) {
      ++sieved.twins;
    } else if (estimate.fits) {
      sieved.feasible.push_back(estimate);
    } else {
      keep_nearest(estimate, sieved.nearest);
    }
  }
  return sieved;
}

void join(Sieved& part, Sieved& whole) {
  whole.feasible.insert(whole.feasible.end(),
                        std::make_move_iterator(part.feasible.begin()),
                        std::make_move_iterator(part.feasible.end()));
  for (std::size_t rule = 0; rule < part.breaking.size(); ++rule) {
    whole.breaking[rule] += part.breaking[rule];
  }
  whole.legal += part.legal;
  whole.twins += part.twins;
  if (part.nearest) {
    keep_nearest(*part.nearest, whole.nearest);
  }
}

}  // namespace

double shortfall(const Estimate& estimate) {
  return estimate.memory.total() - estimate.memory_limit;
}

Sieved sieve(const TrainingJob& job,
             const SearchAxes& axes,
             const Estimator& estimator,
             const Combinations& combinations,
             int threads) {
  const SearchSubject subject{job, axes, estimator.assumptions()};
  const std::int64_t count = combinations.count();
  const std::int64_t chunks = (count + kChunk - 1) / kChunk;
  std::vector<Sieved> parts(static_cast<std::size_t>(chunks));
  for_each_number(threads, chunks, [&](std::int64_t chunk) {
    parts[static_cast<std::size_t>(chunk)] = sieve_range(
        subject, estimator, combinations, chunk * kChunk, std::min(count, (chunk + 1) * kChunk));
  });
  Sieved whole;
  whole.breaking.resize(layout_rules().size());
  for (Sieved& part : parts) {
    join(part, whole);
  }
  return whole;
}

}  // namespace foretrain
